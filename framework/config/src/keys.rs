//! The keys of one table.

use core::ops::RangeInclusive;
use core::time::Duration;

use toml::{Table, Value};

use crate::units::{self, Rate};

/// What is wrong with a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct KeyError {
    /// The key.
    pub key: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl KeyError {
    /// `key` has `problem`.
    pub fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }
}

/// The known name that `name` was probably meant to be; `None` if none is near.
pub fn suggest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let far = (name.chars().count() / 3).max(1);
    let scored = known.into_iter().map(|k| (strsim::damerau_levenshtein(name, k), k));
    let near = scored.filter(|(d, k)| *d <= far || k.starts_with(name) && name.len() > 2);
    near.min_by_key(|(d, _)| *d).map(|(_, k)| k)
}

/// A table, with the keys that it may have.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'t> {
    table: &'t Table,
}

impl<'t> Keys<'t> {
    /// The keys of `table`, which may be those of `known` and no others.
    ///
    /// # Errors
    /// The first key that is not known, with the one that was probably meant.
    pub fn new(table: &'t Table, known: &[&str]) -> Result<Self, KeyError> {
        match table.keys().find(|k| !known.contains(&k.as_str())) {
            None => Ok(Self { table }),
            Some(key) => Err(KeyError::new(key, unknown(key, known))),
        }
    }

    /// Whether `key` is there.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The string at `key`, if any.
    ///
    /// # Errors
    /// Another type.
    pub fn text(&self, key: &str) -> Result<Option<&'t str>, KeyError> {
        self.read(key, "a string in quotes", Value::as_str)
    }

    /// The string at `key`; `what` says what it is for.
    ///
    /// # Errors
    /// Missing or empty, or another type.
    pub fn need_text(&self, key: &str, what: &str) -> Result<&'t str, KeyError> {
        self.text(key)?
            .filter(|s| !s.is_empty())
            .ok_or_else(|| KeyError::new(key, format!("is missing: {what}")))
    }

    /// The list of strings at `key`, if any.
    ///
    /// # Errors
    /// Another type.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<&'t str>>, KeyError> {
        self.read(key, "a list of strings: [\"a\", \"b\"]", |v| {
            v.as_array()?.iter().map(Value::as_str).collect()
        })
    }

    /// The list of pairs of strings at `key`, if any.
    ///
    /// # Errors
    /// Another type.
    pub fn pairs(&self, key: &str) -> Result<Option<Vec<[&'t str; 2]>>, KeyError> {
        let pair = |v: &'t Value| match v.as_array()?.as_slice() {
            [a, b] => Some([a.as_str()?, b.as_str()?]),
            _ => None,
        };
        self.read(key, "a list of pairs: [[\"a\", \"b\"]]", |v| v.as_array()?.iter().map(pair).collect())
    }

    /// The whole number at `key`, or `default`.
    ///
    /// # Errors
    /// Another type, or out of `range`.
    pub fn number(&self, key: &str, default: u64, range: RangeInclusive<u64>) -> Result<u64, KeyError> {
        let what = format!("a whole number from {} to {}", range.start(), range.end());
        let read =
            |v: &Value| v.as_integer().and_then(|n| u64::try_from(n).ok()).filter(|n| range.contains(n));
        Ok(self.read(key, &what, read)?.unwrap_or(default))
    }

    /// The whole numbers at `key`, if any: one, or a list.
    ///
    /// # Errors
    /// Another type, or one out of `range`.
    pub fn numbers(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<Vec<u64>>, KeyError> {
        let what = format!("whole numbers from {} to {}: [1, 2]", range.start(), range.end());
        let one =
            |v: &Value| v.as_integer().and_then(|n| u64::try_from(n).ok()).filter(|n| range.contains(n));
        self.read(key, &what, |v| match v {
            Value::Array(all) => all.iter().map(one).collect(),
            v => Some(vec![one(v)?]),
        })
    }

    /// The boolean at `key`, or `default`.
    ///
    /// # Errors
    /// Another type.
    pub fn flag(&self, key: &str, default: bool) -> Result<bool, KeyError> {
        Ok(self.read(key, "true or false", Value::as_bool)?.unwrap_or(default))
    }

    /// What the word at `key` stands for, or `default`.
    ///
    /// # Errors
    /// Another type, or a word that is not in `words`.
    pub fn word<T: Copy>(&self, key: &str, default: T, words: &[(&str, T)]) -> Result<T, KeyError> {
        let names: Vec<_> = words.iter().map(|w| w.0).collect();
        let what = format!("one of {}", quoted(&names));
        let read = |v: &Value| words.iter().find(|w| v.as_str() == Some(w.0)).map(|w| w.1);
        Ok(self.read(key, &what, read)?.unwrap_or(default))
    }

    /// The time at `key`, as `"50us"`, or `default`.
    ///
    /// # Errors
    /// Another type or form.
    pub fn time(&self, key: &str, default: Duration) -> Result<Duration, KeyError> {
        Ok(self.parsed(key, units::time)?.unwrap_or(default))
    }

    /// The rate at `key`, as `"1.5M"` (packets per second) or `"10Gbps"`, if any.
    ///
    /// # Errors
    /// Another type or form.
    pub fn rate(&self, key: &str) -> Result<Option<Rate>, KeyError> {
        self.parsed(key, units::rate)
    }

    /// The size at `key`, as `"2M"` or a plain number of bytes, if any.
    ///
    /// # Errors
    /// Another type or form.
    pub fn size(&self, key: &str) -> Result<Option<u64>, KeyError> {
        self.parsed(key, units::size)
    }

    /// A string, or a number as if it were one, handed to `parse`.
    fn parsed<T>(&self, key: &str, parse: fn(&str) -> Result<T, String>) -> Result<Option<T>, KeyError> {
        let text = match self.table.get(key) {
            None => return Ok(None),
            Some(Value::String(s)) => s.clone(),
            Some(Value::Integer(n)) => n.to_string(),
            Some(other) => return Err(KeyError::new(key, format!("{other} is not a string in quotes"))),
        };
        parse(&text).map(Some).map_err(|problem| KeyError::new(key, problem))
    }

    fn read<T>(
        &self,
        key: &str,
        what: &str,
        f: impl FnOnce(&'t Value) -> Option<T>,
    ) -> Result<Option<T>, KeyError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        f(value).map(Some).ok_or_else(|| KeyError::new(key, format!("{value} is not {what}")))
    }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|n| format!("{n:?}")).collect::<Vec<_>>().join(", ")
}

fn unknown(key: &str, known: &[&str]) -> String {
    match suggest(key, known.iter().copied()) {
        Some(near) => format!("is not known; did you mean {near}?"),
        None if known.is_empty() => "is not known: there are no keys here".to_owned(),
        None => format!("is not known; there are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn unknown_keys_name_what_was_probably_meant() {
        let known = ["interface", "fanout", "queues"];
        let wrong = |text| Keys::new(&table(text), &known).unwrap_err().to_string();
        assert_eq!(wrong("interfce = 1"), "interfce: is not known; did you mean interface?");
        assert_eq!(wrong("fan = 1"), "fan: is not known; did you mean fanout?");
        assert_eq!(wrong("zzz = 1"), "zzz: is not known; there are interface, fanout, queues");
        assert!(Keys::new(&table("queues = 1"), &known).is_ok());
    }

    #[test]
    fn values_are_read_or_refused_with_what_would_be_right() {
        let t = table(
            "n = 5\ns = \"x\"\nb = true\nt = \"50us\"\nr = \"1.5M\"\nl = [\"a\", \"b\"]\nz = \"2M\"\nv = [1, 2]",
        );
        let k = Keys::new(&t, &["n", "s", "b", "t", "r", "l", "z", "v"]).unwrap();
        assert_eq!(k.number("n", 1, 0..=9), Ok(5));
        assert_eq!(k.number("absent", 1, 0..=9), Ok(1));
        assert_eq!(
            k.number("n", 1, 0..=4).unwrap_err().to_string(),
            "n: 5 is not a whole number from 0 to 4"
        );
        assert_eq!(
            k.pairs("l").unwrap_err().problem,
            "[\"a\", \"b\"] is not a list of pairs: [[\"a\", \"b\"]]"
        );
        assert_eq!(k.numbers("v", 1..=4), Ok(Some(vec![1, 2])));
        assert_eq!(k.numbers("n", 1..=9), Ok(Some(vec![5])));
        assert_eq!(k.text("s"), Ok(Some("x")));
        assert_eq!(k.texts("l"), Ok(Some(vec!["a", "b"])));
        assert_eq!(k.flag("b", false), Ok(true));
        assert_eq!(k.flag("n", false).unwrap_err().problem, "5 is not true or false");
        assert_eq!(k.time("t", Duration::ZERO), Ok(Duration::from_micros(50)));
        assert_eq!(k.rate("r"), Ok(Some(Rate::Packets(1_500_000.0))));
        assert_eq!(k.size("z"), Ok(Some(2 << 20)));
        assert_eq!(k.size("n"), Ok(Some(5)));
        assert_eq!(k.word("s", 0, &[("x", 7), ("y", 8)]), Ok(7));
        assert_eq!(k.word("s", 0, &[("y", 8)]).unwrap_err().to_string(), "s: \"x\" is not one of \"y\"");
        assert_eq!(
            k.need_text("gone", "the interface to use").unwrap_err().to_string(),
            "gone: is missing: the interface to use"
        );
    }
}
