//! Ports by the names that configuration has for them.

use config::KeyError;

/// Names of ports, and their numbers.
#[derive(Clone, Copy, Debug)]
pub struct PortNames<'n>(pub &'n [(&'n str, u16)]);

impl PortNames<'_> {
    /// The number of port `name`.
    ///
    /// # Errors
    /// At `key`: there is no such port; with the one that was probably meant.
    pub fn number(&self, key: &str, name: &str) -> Result<u16, KeyError> {
        let found = self.0.iter().find(|p| p.0 == name).map(|p| p.1);
        found.ok_or_else(|| {
            let names = || self.0.iter().map(|p| p.0);
            let problem = match config::suggest(name, names()) {
                Some(near) => format!("there is no port {name}; did you mean {near}?"),
                None => {
                    format!("there is no port {name}; there are {}", names().collect::<Vec<_>>().join(", "))
                }
            };
            KeyError::new(key, problem)
        })
    }
    /// The numbers of ports `names`.
    ///
    /// # Errors
    /// As for [`PortNames::number`].
    pub fn numbers(&self, key: &str, names: &[&str]) -> Result<Vec<u16>, KeyError> {
        names.iter().map(|name| self.number(key, name)).collect()
    }
    /// All numbers.
    pub fn all(&self) -> Vec<u16> {
        self.0.iter().map(|p| p.1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_none_is_told_what_there_is() {
        let names = PortNames(&[("left", 4), ("right", 9)]);
        assert_eq!((names.numbers("ports", &["right", "left"]), names.all()), (Ok(vec![9, 4]), vec![4, 9]));
        let wrong = |name| names.number("ports", name).unwrap_err().to_string();
        assert_eq!(wrong("lift"), "ports: there is no port lift; did you mean left?");
        assert_eq!(wrong("up"), "ports: there is no port up; there are left, right");
    }
}
