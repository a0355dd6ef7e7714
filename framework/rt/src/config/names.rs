//! Names of ports, and their numbers.

use std::sync::Arc;

use config::KeyError;

/// The ports of a runtime by name: the place in the list is the number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortNames {
    there: Vec<Option<Arc<str>>>,
    /// Ports that were there, with their last numbers.
    gone: Vec<(Arc<str>, u16)>,
}

impl PortNames {
    /// These, numbered from 0.
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        Self { there: names.into_iter().map(|n| Some(n.into())).collect(), gone: Vec::new() }
    }
    /// The number of port `name`.
    pub fn number(&self, name: &str) -> Option<u16> {
        self.there.iter().position(|n| n.as_deref() == Some(name)).map(|i| i as u16)
    }
    /// The name of port `number`.
    pub fn name(&self, number: u16) -> Option<&Arc<str>> {
        self.there.get(usize::from(number))?.as_ref()
    }
    /// All names.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.there.iter().filter_map(|n| n.as_deref())
    }
    /// All names that ever were, with their numbers: what a configuration names stays readable when a port goes.
    pub fn ever(&self) -> impl Iterator<Item = (&str, u16)> {
        let there = self.iter().filter_map(|n| Some((n, self.number(n)?)));
        let gone = self.gone.iter().filter(|g| self.number(&g.0).is_none());
        there.chain(gone.map(|g| (&*g.0, g.1)))
    }
    /// All numbers.
    pub fn numbers(&self) -> Vec<u16> {
        (0..self.there.len() as u16).filter(|&n| self.name(n).is_some()).collect()
    }
    /// Adds `name` with `number`.
    pub fn add(&mut self, name: &str, number: u16) {
        let i = usize::from(number);
        if self.there.len() <= i {
            self.there.resize(i + 1, None);
        }
        self.there[i] = Some(name.into());
    }
    /// The number that the next port gets.
    pub const fn next(&self) -> u16 {
        self.there.len() as u16
    }
    /// Leaves the next number unused.
    pub fn skip(&mut self) {
        self.there.push(None);
    }
    /// Takes `name` out; its number stays unused.
    pub fn remove(&mut self, name: &str) {
        let Some(number) = self.number(name) else { return };
        self.gone.retain(|g| *g.0 != *name);
        self.gone.extend(self.there[usize::from(number)].take().map(|n| (n, number)));
    }
    /// The number of port `name`, which `key` names.
    ///
    /// # Errors
    /// No such port, with the one that was probably meant.
    pub fn find(&self, key: &str, name: &str) -> Result<u16, KeyError> {
        self.number(name).ok_or_else(|| KeyError::new(key, self.no_such(name)))
    }
    /// Says that there is no port `name`.
    pub fn no_such(&self, name: &str) -> String {
        match config::suggest(name, self.iter()) {
            Some(near) => format!("there is no port {name:?}; did you mean {near:?}?"),
            None if self.there.is_empty() => format!("there is no port {name:?}, nor any other"),
            None => {
                format!("there is no port {name:?}; there are {}", self.iter().collect::<Vec<_>>().join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_when_others_go() {
        let mut names = PortNames::new(["p0", "p1", "p2"]);
        names.remove("p1");
        names.add("late", 3);
        assert_eq!(names.numbers(), [0, 2, 3]);
        assert_eq!(names.ever().collect::<Vec<_>>(), [("p0", 0), ("p2", 2), ("late", 3), ("p1", 1)]);
        assert_eq!((names.number("p1"), names.number("late")), (None, Some(3)));
        assert_eq!(
            names.find("from", "pp2").unwrap_err().problem,
            "there is no port \"pp2\"; did you mean \"p2\"?"
        );
    }
}
