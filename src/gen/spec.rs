//! Ports on the command line: `DRIVER[:KEY=VALUE[,KEY=VALUE]...]`.

use std::str::FromStr;

use toml::{Table, Value};

/// A driver, and what its port is told.
#[derive(Clone, Debug, PartialEq)]
pub struct PortSpec {
    /// The driver's name.
    pub driver: String,
    /// Its keys, as a configuration would have them.
    pub keys: Table,
}

/// Where frames come back.
#[derive(Clone, Debug, PartialEq)]
pub enum Back {
    /// Nowhere.
    None,
    /// By this port.
    Port(PortSpec),
}

impl FromStr for Back {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        if s == "none" { Ok(Self::None) } else { s.parse().map(Self::Port) }
    }
}

impl FromStr for PortSpec {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let form = "write DRIVER or DRIVER:KEY=VALUE,KEY=VALUE, as packet:interface=eth1 or null:peer=rx";
        let (driver, rest) = s.split_once(':').map_or((s, None), |(d, r)| (d, Some(r)));
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if driver.is_empty() || !driver.chars().all(is_name) {
            return Err(format!("{driver:?} is no name of a driver: {form}"));
        }
        let mut keys = Table::new();
        for pair in rest.map(pairs).into_iter().flatten() {
            let (key, value) =
                pair.split_once('=').ok_or_else(|| format!("{pair:?} has no value: {form}"))?;
            let key = key.trim();
            if key.is_empty() {
                return Err(format!("{pair:?} has no key: {form}"));
            }
            if keys.insert(key.to_owned(), read(value.trim())).is_some() {
                return Err(format!("{key} is there twice"));
            }
        }
        Ok(Self { driver: driver.to_owned(), keys })
    }
}

/// Apart at commas, but not at those in quotes or brackets.
fn pairs(s: &str) -> Vec<&str> {
    let (mut quoted, mut depth) = (false, 0);
    s.split(|c| {
        match c {
            '"' => quoted = !quoted,
            '[' if !quoted => depth += 1,
            ']' if !quoted => depth -= 1,
            _ => {}
        }
        c == ',' && !quoted && depth == 0
    })
    .collect()
}

/// As in a configuration where that is a whole number, a boolean, a list, or in quotes; everything else is a string as it stands.
fn read(value: &str) -> Value {
    match value.parse() {
        Ok(v @ (Value::Integer(_) | Value::Boolean(_) | Value::Array(_) | Value::String(_))) => v,
        _ => Value::String(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(s: &str) -> PortSpec {
        s.parse().unwrap_or_else(|e| panic!("{s}: {e}"))
    }

    #[test]
    fn drivers_and_keys_are_read() {
        let table = |s: &str| s.parse::<Table>().unwrap();
        assert_eq!(spec("null"), PortSpec { driver: "null".into(), keys: Table::new() });
        assert_eq!(spec("packet:interface=eth1").keys, table("interface = \"eth1\""));
        let s = spec(
            "ixgbe:device=0000:01:00.0,queues=4,wait=true,rate=1.5,name=\"a,b\",list=[1,2],at=2001-01-01",
        );
        let want = "device = \"0000:01:00.0\"\nqueues = 4\nwait = true\nrate = \"1.5\"\nname = \"a,b\"\n\
                    list = [1, 2]\nat = \"2001-01-01\"";
        assert_eq!((s.driver.as_str(), s.keys), ("ixgbe", table(want)));
        assert_eq!(spec("pcap: write = a=b.pcap ").keys, table("write = \"a=b.pcap\""));
        assert_eq!(spec("pcap:write=").keys, table("write = \"\""), "the driver says what it makes of it");
        assert_eq!(spec("x:k=1\nj = 2").keys, table("k = \"1\\nj = 2\""), "one value, not two keys");
        assert_eq!(spec("x:k=1 # one").keys, table("k = \"1 # one\""));
    }

    #[test]
    fn what_is_no_port_says_what_one_is() {
        for (wrong, says) in [
            ("", "\"\" is no name of a driver"),
            (":interface=eth1", "no name of a driver"),
            ("Packet", "\"Packet\" is no name"),
            ("eth0.5", "\"eth0.5\" is no name"),
            ("packet:", "\"\" has no value"),
            ("packet:eth1", "\"eth1\" has no value"),
            ("packet:=eth1", "\"=eth1\" has no key"),
            ("packet:interface=eth1,", "\"\" has no value"),
            ("null:peer=a,peer=b", "peer is there twice"),
        ] {
            let e = wrong.parse::<PortSpec>().unwrap_err();
            assert!(e.contains(says), "{wrong}: {e}");
        }
    }

    #[test]
    fn frames_may_come_back_nowhere() {
        assert_eq!("none".parse(), Ok(Back::None));
        assert_eq!("null".parse(), Ok(Back::Port(spec("null"))));
        assert!("none:x".parse::<Back>().is_err());
    }
}
