//! An expression's words and signs.

use super::FilterError;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a value.
    Word,
    And,
    Or,
    Not,
    In,
    Open,
    Close,
    BraceOpen,
    BraceClose,
    Comma,
    Dash,
    Compare(Compare),
    /// Behind the last.
    End,
}

/// How a field is compared with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// A word or sign, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

/// Signs, longer ones before those that they begin with.
const SIGNS: [(&str, Kind); 17] = [
    ("&&", Kind::And),
    ("||", Kind::Or),
    ("==", Kind::Compare(Compare::Equal)),
    ("!=", Kind::Compare(Compare::NotEqual)),
    ("<=", Kind::Compare(Compare::LessEqual)),
    (">=", Kind::Compare(Compare::GreaterEqual)),
    ("<", Kind::Compare(Compare::Less)),
    (">", Kind::Compare(Compare::Greater)),
    ("!", Kind::Not),
    ("(", Kind::Open),
    (")", Kind::Close),
    ("{", Kind::BraceOpen),
    ("}", Kind::BraceClose),
    (",", Kind::Comma),
    ("-", Kind::Dash),
    // Not of the language: met by who comes from another.
    ("=", Kind::End),
    ("&", Kind::End),
];

const WORDS: [(&str, Kind); 4] = [("and", Kind::And), ("or", Kind::Or), ("not", Kind::Not), ("in", Kind::In)];

/// Names, numbers and addresses, with their prefix lengths.
const fn of_a_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '/')
}

/// The tokens of `text`, the last being [`Kind::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, FilterError> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        let word = rest.find(|c| !of_a_word(c)).unwrap_or(rest.len());
        let (kind, length) = if word > 0 {
            let known = WORDS.iter().find(|w| w.0 == &rest[..word]);
            (known.map_or(Kind::Word, |w| w.1), word)
        } else {
            sign(text, at, c)?
        };
        out.push(Token { kind, start: at, end: at + length });
        at += length;
    }
    out.push(Token { kind: Kind::End, start: text.trim_end().len(), end: text.len() });
    Ok(out)
}

fn sign(text: &str, at: usize, c: char) -> Result<(Kind, usize), FilterError> {
    let found = SIGNS.iter().find(|s| text[at..].starts_with(s.0));
    match found {
        Some(("=", _)) => Err(FilterError::new(text, at, at + 1, "write == to compare")),
        Some(("&", _)) => Err(FilterError::new(text, at, at + 1, "write && or and")),
        Some((sign, kind)) => Ok((*kind, sign.len())),
        None if c == '|' => Err(FilterError::new(text, at, at + 1, "write || or or")),
        None => {
            let problem = format!("{c:?} is no part of an expression");
            Err(FilterError::new(text, at, at + c.len_utf8(), problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_signs() {
        let kinds = |text: &str| tokens(text).unwrap().iter().map(|t| t.kind).collect::<Vec<_>>();
        use Kind::*;
        assert_eq!(kinds(" !(arp)\n"), [Not, Open, Word, Close, End]);
        assert_eq!(
            kinds("a<=1&&b!=2||not c"),
            [
                Word,
                Compare(super::Compare::LessEqual),
                Word,
                And,
                Word,
                Compare(super::Compare::NotEqual),
                Word,
                Or,
                Not,
                Word,
                End
            ]
        );
        assert_eq!(
            kinds("in{8000-8100,2001:db8::/32}"),
            [In, BraceOpen, Word, Dash, Word, Comma, Word, BraceClose, End]
        );
        assert_eq!(kinds(""), [End]);
    }

    #[test]
    fn what_is_not_of_the_language_is_named() {
        let wrong = |text| tokens(text).unwrap_err().problem().to_owned();
        assert_eq!(wrong("a = 1"), "write == to compare");
        assert_eq!(wrong("a & b"), "write && or and");
        assert_eq!(wrong("a | b"), "write || or or");
        assert_eq!(wrong("a == \"b\""), "'\"' is no part of an expression");
        assert_eq!(wrong("ß"), "'ß' is no part of an expression");
    }
}
