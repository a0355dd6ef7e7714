//! From an expression to a tree of tests.

use super::FilterError;
use super::facts::{From, Has, Load};
use super::fields::{Field, Type, field, protocol, unknown};
use super::lex::{Compare, Kind, Token, tokens};
use super::values::{self, Range, examples, joined};

/// Most bytes of an expression.
pub(super) const MAX_LENGTH: usize = 4096;
/// Most brackets, and `not`s, inside each other.
pub(super) const MAX_NESTING: usize = 32;
/// Most comparisons and protocol names.
pub(super) const MAX_TESTS: usize = 256;

/// What is asked of a packet.
#[derive(Debug)]
pub(super) enum Tree {
    Test(Test),
    Not(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
}

/// One comparison: whether a packet has a field, and its value is in a set, or is in none of it.
#[derive(Debug)]
pub(super) struct Test {
    pub needs: Has,
    pub loads: &'static [Load],
    pub ranges: Vec<Range>,
    pub outside: bool,
}

/// What any packet has: the value does not matter.
const ANYTHING: &[Load] = &[Load { from: From::Length, at: 0, width: 4, shift: 0, mask: u64::MAX }];

/// Reads an expression.
///
/// # Errors
/// What is wrong with it, and where.
pub(super) fn parse(text: &str) -> Result<Tree, FilterError> {
    if text.len() > MAX_LENGTH {
        let problem =
            format!("{} bytes are too many: use at most {MAX_LENGTH}, or several filters", text.len());
        return Err(FilterError::new(text, MAX_LENGTH, MAX_LENGTH, problem));
    }
    let tokens = tokens(text)?;
    let mut parser = Parser { text, tokens, at: 0, nesting: 0, tests: 0 };
    if parser.peek().kind == Kind::End {
        return Err(
            parser.wrong("there is nothing here: write what shall pass, as ipv4.dst == 10.0.0.0/8 and tcp")
        );
    }
    let tree = parser.any()?;
    match parser.peek().kind {
        Kind::End => Ok(tree),
        Kind::Close => Err(parser.wrong("nothing was opened that this could close")),
        _ => Err(parser.wrong("and, or, or the end is missing before this")),
    }
}

struct Parser<'t> {
    text: &'t str,
    /// The last is [`Kind::End`].
    tokens: Vec<Token>,
    at: usize,
    nesting: usize,
    tests: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Token {
        self.tokens[self.at]
    }
    fn next(&mut self) -> Token {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }
    fn take(&mut self, kind: Kind) -> bool {
        let found = self.peek().kind == kind;
        if found {
            self.next();
        }
        found
    }
    fn word(&self, token: Token) -> &'t str {
        &self.text[token.start..token.end]
    }
    fn error(&self, token: Token, problem: impl Into<String>) -> FilterError {
        FilterError::new(self.text, token.start, token.end, problem)
    }
    /// An error at the next token.
    fn wrong(&self, problem: &str) -> FilterError {
        self.error(self.peek(), problem)
    }

    fn any(&mut self) -> Result<Tree, FilterError> {
        self.chain(Kind::Or, Self::all, Tree::Or)
    }
    fn all(&mut self) -> Result<Tree, FilterError> {
        self.chain(Kind::And, Self::one, Tree::And)
    }
    fn chain(
        &mut self,
        between: Kind,
        part: fn(&mut Self) -> Result<Tree, FilterError>,
        make: fn(Vec<Tree>) -> Tree,
    ) -> Result<Tree, FilterError> {
        let first = part(self)?;
        if self.peek().kind != between {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.take(between) {
            parts.push(part(self)?);
        }
        Ok(make(parts))
    }

    fn one(&mut self) -> Result<Tree, FilterError> {
        let token = self.next();
        match token.kind {
            Kind::Not => {
                let inner = self.nested(token, Self::one)?;
                Ok(Tree::Not(Box::new(inner)))
            }
            Kind::Open => {
                let inner = self.nested(token, Self::any)?;
                if self.take(Kind::Close) { Ok(inner) } else { Err(self.wrong("a ) is missing")) }
            }
            Kind::Word => self.test(token),
            _ => Err(self.error(token, "a field, a protocol, not, or ( is missing here")),
        }
    }
    fn nested(
        &mut self,
        token: Token,
        part: fn(&mut Self) -> Result<Tree, FilterError>,
    ) -> Result<Tree, FilterError> {
        if self.nesting == MAX_NESTING {
            return Err(self.error(token, format!("more than {MAX_NESTING} inside each other")));
        }
        self.nesting += 1;
        let tree = part(self);
        self.nesting -= 1;
        tree
    }

    fn test(&mut self, token: Token) -> Result<Tree, FilterError> {
        self.tests += 1;
        if self.tests > MAX_TESTS {
            return Err(self
                .error(token, format!("more than {MAX_TESTS} comparisons: use lists, or several filters")));
        }
        let name = self.word(token);
        let compare = self.comparison();
        if let (Some(needs), None) = (protocol(name), compare) {
            return Ok(Tree::Test(Test {
                needs,
                loads: ANYTHING,
                ranges: vec![(0, u128::MAX)],
                outside: false,
            }));
        }
        let Some(field) = field(name) else { return Err(self.error(token, unknown(name))) };
        let (ranges, outside) = match compare {
            None => (self.alone(field, token)?, false),
            Some(None) => (self.values(field)?, false),
            Some(Some(compare)) => (self.compared(field, compare)?, compare == Compare::NotEqual),
        };
        Ok(Tree::Test(Test { needs: field.needs, loads: field.loads, ranges: joined(ranges), outside }))
    }
    /// How the next value is compared, `Some(None)` for `in`; `None` if no value follows.
    fn comparison(&mut self) -> Option<Option<Compare>> {
        let compare = match self.peek().kind {
            Kind::Compare(compare) => Some(compare),
            Kind::In => None,
            _ => return None,
        };
        self.next();
        Some(compare)
    }

    /// A field without a comparison.
    fn alone(&self, field: &Field, token: Token) -> Result<Vec<Range>, FilterError> {
        let (name, next) = (field.name, self.peek());
        match next.kind {
            Kind::Word => {
                Err(self.error(next, format!("== is missing before this: {name} == {}", self.word(next))))
            }
            Kind::BraceOpen => {
                Err(self.error(next, format!("in is missing before this: {name} in {{ ... }}")))
            }
            _ if field.kind == Type::Flag => Ok(vec![(1, field.max())]),
            _ => Err(self.error(token, format!("{name} must be compared: it is {}", examples(field.kind)))),
        }
    }

    fn compared(&mut self, field: &Field, compare: Compare) -> Result<Vec<Range>, FilterError> {
        let equal = matches!(compare, Compare::Equal | Compare::NotEqual);
        let sign = self.tokens[self.at - 1];
        if !equal && field.kind != Type::Number {
            let problem = format!("{} has no order: compare it by ==, != or in", field.name);
            return Err(self.error(sign, problem));
        }
        if self.peek().kind == Kind::BraceOpen {
            return Err(self.error(sign, format!("write in before a list: {} in {{ ... }}", field.name)));
        }
        let (first, last) = self.value(field)?;
        let range = match compare {
            Compare::Equal | Compare::NotEqual => Some((first, last)),
            Compare::Less => first.checked_sub(1).map(|n| (0, n)),
            Compare::LessEqual => Some((0, last)),
            Compare::Greater => Some((last + 1, field.max())).filter(|r| r.0 <= r.1),
            Compare::GreaterEqual => Some((first, field.max())),
        };
        range.map(|r| vec![r]).ok_or_else(|| {
            let problem = format!("no {} can be: it is 0 to {}", field.name, field.max());
            self.error(Token { end: self.tokens[self.at - 1].end, ..sign }, problem)
        })
    }

    fn value(&mut self, field: &Field) -> Result<Range, FilterError> {
        let token = self.next();
        if token.kind != Kind::Word {
            return Err(self.error(
                token,
                format!("a value is missing here: {} is {}", field.name, examples(field.kind)),
            ));
        }
        values::value(field, self.word(token)).map_err(|problem| self.error(token, problem))
    }

    /// What follows `in`: a list, or a single range.
    fn values(&mut self, field: &Field) -> Result<Vec<Range>, FilterError> {
        if !self.take(Kind::BraceOpen) {
            return Ok(vec![self.range(field)?]);
        }
        let mut ranges = vec![self.range(field)?];
        while self.take(Kind::Comma) {
            ranges.push(self.range(field)?);
        }
        if self.take(Kind::BraceClose) { Ok(ranges) } else { Err(self.wrong("a comma or } is missing here")) }
    }
    fn range(&mut self, field: &Field) -> Result<Range, FilterError> {
        let token = self.peek();
        let (first, end) = self.value(field)?;
        if !self.take(Kind::Dash) {
            return Ok((first, end));
        }
        let (_, last) = self.value(field)?;
        let whole = Token { end: self.tokens[self.at - 1].end, ..token };
        if field.kind == Type::Flag {
            return Err(self.error(whole, format!("{} is {}", field.name, examples(field.kind))));
        }
        if last < first {
            return Err(self.error(whole, "the last of a range comes before its first"));
        }
        Ok((first, last))
    }
}
