//! The driver's own keys.

use config::KeyError;
use port::PortError;
use toml::Table;
use wire::MacAddr;

use crate::NAME;
use crate::sys::NAME_LEN;

/// All of them.
pub const KNOWN: [&str; 5] = ["interface", "mtu", "mac", "persist", "up"];

/// The shortest and the longest network packet that a tap interface can be set to (tun.c, `MIN_MTU`; 65,535 less the
/// Ethernet header), and that fits the 16 bits of a frame's length with a VLAN tag.
const MTU: core::ops::RangeInclusive<u64> = 68..=65_517;

/// What the interface is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Its name, or a pattern with `%d`.
    pub interface: String,
    pub mtu: Option<u32>,
    pub mac: Option<[u8; 6]>,
    /// It stays after the port.
    pub persist: bool,
    /// The port takes it up.
    pub up: bool,
}

impl Keys {
    /// Reads and checks all keys.
    pub fn read(table: &Table) -> Result<Self, PortError> {
        Self::checked(table).map_err(|e| PortError::key(NAME, e))
    }

    fn checked(table: &Table) -> Result<Self, KeyError> {
        let keys = config::Keys::new(table, &KNOWN)?;
        let interface = keys.text("interface")?.unwrap_or("rw%d").to_owned();
        if let Some(problem) = name_problem(&interface) {
            return Err(KeyError::new("interface", format!("{interface:?} {problem}")));
        }
        let mtu = if keys.has("mtu") { Some(keys.number("mtu", 1500, MTU)? as u32) } else { None };
        let mac = match keys.text("mac")? {
            None => None,
            Some(text) => Some(mac(text)?),
        };
        Ok(Self { interface, mtu, mac, persist: keys.flag("persist", false)?, up: keys.flag("up", true)? })
    }
}

/// What the kernel does not take as a name (`dev_valid_name`, `dev_alloc_name`).
fn name_problem(name: &str) -> Option<String> {
    if name.is_empty() || name.len() > NAME_LEN {
        return Some(format!("is no name of an interface: 1 to {NAME_LEN} characters"));
    }
    let odd = |c: char| !c.is_ascii_graphic() || c == '/' || c == ':';
    if name == "." || name == ".." || name.contains(odd) {
        return Some("is no name of an interface: letters, digits, - and _".to_owned());
    }
    match name.split_once('%') {
        None => None,
        Some((_, after)) if after.starts_with('d') && !after.contains('%') => None,
        Some(_) => Some("has a % that is not one %d, for which the kernel puts a number".to_owned()),
    }
}

fn mac(text: &str) -> Result<[u8; 6], KeyError> {
    let wrong = |why: &str| KeyError::new("mac", format!("{text:?} {why}: write 02:00:00:00:00:01"));
    let mac: MacAddr = text.parse().map_err(|_| wrong("is no address"))?;
    let bytes = mac.bytes();
    if bytes[0] & 1 != 0 || bytes == [0; 6] { Err(wrong("is no address of one station")) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Result<Keys, String> {
        Keys::read(&text.parse().unwrap()).map_err(|e| e.to_string())
    }

    #[test]
    fn keys_are_read() {
        let default = Keys { interface: "rw%d".into(), mtu: None, mac: None, persist: false, up: true };
        assert_eq!(keys(""), Ok(default.clone()));
        let all = "interface = \"tap7\"\nmtu = 9000\nmac = \"02:00:00:00:00:07\"\npersist = true\nup = false";
        let mac = Some([2, 0, 0, 0, 0, 7]);
        let want = Keys { interface: "tap7".into(), mtu: Some(9000), mac, persist: true, up: false };
        assert_eq!(keys(all), Ok(want));
    }

    #[test]
    fn wrong_keys_say_what_would_be_right() {
        let wrong = |text: &str| keys(text).unwrap_err();
        assert!(wrong("interface = \"\"").contains("1 to 15 characters"));
        assert!(wrong("interface = \"sixteen-letters-\"").contains("1 to 15 characters"));
        for name in ["a b", "a/b", "..", "a:1", "ü"] {
            assert!(wrong(&format!("interface = {name:?}")).contains("letters, digits"), "{name}");
        }
        for name in ["a%s", "%d%d", "a%"] {
            assert!(wrong(&format!("interface = {name:?}")).contains("one %d"), "{name}");
        }
        assert!(wrong("mtu = 67").contains("from 68 to 65517"));
        assert!(wrong("mac = \"here\"").contains("is no address: write 02:"));
        assert!(wrong("mac = \"01:00:5e:00:00:01\"").contains("no address of one station"));
        assert!(wrong("mac = \"00:00:00:00:00:00\"").contains("no address of one station"));
        assert!(wrong("interfce = \"x\"").contains("did you mean interface?"));
    }
}
