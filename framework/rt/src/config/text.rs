//! The text of a configuration, and where everything stands in it.

use core::fmt;
use core::ops::Range;
use std::collections::HashMap;

use toml::Table;
use toml::de::{DeTable, DeValue};

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what would be right.
    pub message: String,
    /// The line's text.
    excerpt: String,
    /// Characters that are meant.
    width: usize,
}

/// Everything that is wrong with one file, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    file: String,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

impl ConfigError {
    /// A file that could not be read at all.
    pub fn unreadable(file: &str, e: &std::io::Error) -> Self {
        let message = format!("cannot be read: {e}");
        let problem = Problem { line: 0, column: 0, message, excerpt: String::new(), width: 0 };
        Self { file: file.to_owned(), problems: vec![problem] }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, p) in self.problems.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            if p.line == 0 {
                write!(f, "{}: {}", self.file, p.message)?;
                continue;
            }
            writeln!(f, "{}:{}:{}: {}", self.file, p.line, p.column, p.message)?;
            writeln!(f, "{:>5} | {}", p.line, p.excerpt)?;
            write!(f, "      | {}{}", " ".repeat(p.column - 1), "^".repeat(p.width.max(1)))?;
        }
        Ok(())
    }
}
impl core::error::Error for ConfigError {}

/// A configuration's text, parsed. Places are named by paths: `port[0].interface`.
#[derive(Clone, Debug)]
pub struct Text {
    file: String,
    source: String,
    table: Table,
    keys: HashMap<String, Range<usize>>,
    values: HashMap<String, Range<usize>>,
}

impl Text {
    /// Parses `source`, the contents of `file`.
    ///
    /// # Errors
    /// Where it is not TOML.
    pub fn parse(file: &str, source: &str) -> Result<Self, ConfigError> {
        let mut text = Self {
            file: file.to_owned(),
            source: source.to_owned(),
            table: Table::new(),
            keys: HashMap::new(),
            values: HashMap::new(),
        };
        let wrong = |text: &Self, e: &toml::de::Error| {
            let at = e.span().unwrap_or(0..0);
            text.error(vec![text.at(at, format!("not TOML: {}", e.message()))])
        };
        let spans = DeTable::parse(source).map_err(|e| wrong(&text, &e))?;
        text.note_table("", spans.get_ref());
        text.table = source.parse().map_err(|e| wrong(&text, &e))?;
        Ok(text)
    }

    /// The file's name.
    pub fn file(&self) -> &str {
        &self.file
    }
    /// What it says.
    pub const fn table(&self) -> &Table {
        &self.table
    }

    fn note_table(&mut self, path: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let path = join(path, key.get_ref());
            self.keys.insert(path.clone(), key.span());
            self.note(path, value.span(), value.get_ref());
        }
    }

    fn note(&mut self, path: String, span: Range<usize>, value: &DeValue<'_>) {
        match value {
            DeValue::Table(t) => self.note_table(&path, t),
            DeValue::Array(a) => {
                for (i, v) in a.iter().enumerate() {
                    self.note(format!("{path}[{i}]"), v.span(), v.get_ref());
                }
            }
            _ => {}
        }
        self.values.insert(path, span);
    }

    /// A problem with the value at `path`, or with what is nearest around it.
    pub fn problem(&self, path: &str, message: impl Into<String>) -> Problem {
        self.at(self.find(path, &self.values), message.into())
    }
    /// A problem with the key at `path`.
    pub fn key_problem(&self, path: &str, message: impl Into<String>) -> Problem {
        self.at(self.find(path, &self.keys), message.into())
    }

    fn find(&self, path: &str, first: &HashMap<String, Range<usize>>) -> Range<usize> {
        let mut path = path;
        loop {
            if let Some(span) = first.get(path).or_else(|| self.values.get(path)) {
                return span.clone();
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = &path[..end],
                None => return 0..0,
            }
        }
    }

    /// All of `problems`, by line.
    pub fn error(&self, mut problems: Vec<Problem>) -> ConfigError {
        problems.sort_by_key(|p| (p.line, p.column));
        ConfigError { file: self.file.clone(), problems }
    }

    fn at(&self, span: Range<usize>, message: String) -> Problem {
        let start = span.start.min(self.source.len());
        let before = self.source.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let excerpt = self.source.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
        let meant = self.source.get(span).unwrap_or_default().lines().next().unwrap_or_default();
        Problem {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message,
            // A tab would put the mark elsewhere.
            excerpt: excerpt.replace('\t', " "),
            width: meant.chars().count(),
        }
    }
}

/// `key` inside `path`.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_point_at_keys_and_values() {
        let text = Text::parse("a.toml", "version = 1\n[[port]]\nname = \"p0\"\n\tspeed = 7\n").unwrap();
        let p = text.problem("port[0].speed", "too fast");
        assert_eq!((p.line, p.column), (4, 10));
        let shown = text.error(vec![p, text.key_problem("port[0].name", "bad")]).to_string();
        assert_eq!(
            shown,
            "a.toml:3:1: bad\n    3 | name = \"p0\"\n      | ^^^^\n\
             a.toml:4:10: too fast\n    4 |  speed = 7\n      |          ^"
        );
    }

    #[test]
    fn what_is_missing_is_shown_at_what_is_around_it() {
        let text = Text::parse("a.toml", "\n[[port]]\nname = \"p0\"\n").unwrap();
        assert_eq!(text.problem("port[0].driver", "is missing").line, 2);
        assert_eq!(text.problem("worker[0].core", "is missing").line, 1);
    }

    #[test]
    fn what_is_not_toml_is_shown_where() {
        let e = Text::parse("a.toml", "a = 1\nb = [1,\nc=2").unwrap_err();
        assert_eq!((e.problems[0].line, e.problems[0].column), (3, 2));
        let e = Text::parse("a.toml", "a = 1\na = 2\n").unwrap_err();
        assert_eq!(e.problems[0].line, 2);
        assert!(e.to_string().contains("duplicate key"), "{e}");
    }
}
