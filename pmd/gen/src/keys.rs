//! The driver's own keys.

use config::{KeyError, Keys};
use toml::{Table, Value};
use wire::MacAddr;

use crate::profile::{Addresses, MOST_FLOWS, Profile, prefix};

pub const KNOWN: [&str; 10] =
    ["flows", "size", "rate", "count", "burst", "catch_up", "src", "dst", "src_mac", "dst_mac"];

/// Reads and checks all keys.
pub fn read(cfg: &Table) -> Result<Profile, KeyError> {
    let keys = Keys::new(cfg, &KNOWN)?;
    let usual = Profile::default();
    let size = match cfg.get("size") {
        Some(Value::Integer(n)) => Some(n.to_string()),
        _ => keys.text("size")?.map(str::to_owned),
    };
    let rate = match cfg.get("rate") {
        Some(Value::Integer(n)) => Some(n.to_string()),
        _ => keys.text("rate")?.map(str::to_owned),
    };
    let net = |key: &str| keys.text(key)?.map(prefix).transpose().map_err(|e| KeyError::new(key, e));
    let mac = |key: &str, usual: MacAddr| {
        let text = keys.text(key)?.map(str::parse).transpose();
        text.map(|m| m.unwrap_or(usual)).map_err(|e: wire::MacAddrError| KeyError::new(key, e.to_string()))
    };
    Ok(Profile {
        flows: keys.number("flows", usual.flows.into(), 1..=MOST_FLOWS.into())? as u32,
        sizes: parsed("size", size)?.unwrap_or(usual.sizes),
        pace: parsed("rate", rate)?.unwrap_or(usual.pace),
        count: keys.has("count").then(|| keys.number("count", 0, 0..=i64::MAX as u64)).transpose()?,
        burst: keys.number("burst", usual.burst as u64, 1..=mem::BURST as u64)? as usize,
        catch_up: keys.time("catch_up", usual.catch_up)?,
        addresses: Addresses::new(net("src")?, net("dst")?).map_err(|e| KeyError::new("dst", e))?,
        src_mac: mac("src_mac", usual.src_mac)?,
        dst_mac: mac("dst_mac", usual.dst_mac)?,
    })
}

fn parsed<T: std::str::FromStr<Err = String>>(
    key: &str,
    text: Option<String>,
) -> Result<Option<T>, KeyError> {
    text.map(|t| t.parse()).transpose().map_err(|e| KeyError::new(key, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pace, Sizes};
    use config::Rate;
    use std::time::Duration;

    #[test]
    fn keys_are_read() {
        let p =
            read(&"size = 128\nrate = \"1Gbps\"\nflows = 3\ncount = 9\ncatch_up = \"5ms\"".parse().unwrap());
        let p = p.unwrap();
        assert_eq!((p.sizes, p.pace), (Sizes::one(128).unwrap(), Pace::At(Rate::Bits(1e9))));
        assert_eq!((p.flows, p.count, p.catch_up), (3, Some(9), Duration::from_millis(5)));
        let p = read(&"size = \"imix\"\nrate = 1000\nsrc = \"2001:db8::/64\"".parse().unwrap()).unwrap();
        assert_eq!((p.sizes.longest(), p.pace), (1518, Pace::At(Rate::Packets(1000.0))));
        assert!(matches!(p.addresses, Addresses::V6 { .. }));
    }

    #[test]
    fn wrong_keys_say_what_would_be_right() {
        for (text, says) in [
            ("sise = 64", "sise: is not known; did you mean size?"),
            ("size = true", "size: true is not a string"),
            ("size = 12", "size: a frame of 12 bytes: use 64"),
            ("rate = \"fast\"", "rate: \"fast\" is not a rate"),
            ("flows = 0", "flows: 0 is not a whole number from 1 to 65536"),
            ("burst = 65", "1 to 64"),
            ("count = -1", "count: -1"),
            ("catch_up = \"soon\"", "catch_up"),
            ("src = \"10.0.0.0/40\"", "src: \"10.0.0.0/40\" is no prefix"),
            ("src = \"10.0.0.0/8\"\ndst = \"2001:2::/64\"", "two of IPv4 or two of IPv6"),
            ("dst_mac = \"02:00\"", "dst_mac: \"02:00\" is no MAC address"),
        ] {
            let e = read(&text.parse().unwrap()).unwrap_err().to_string();
            assert!(e.contains(says), "{text}: {e}");
        }
    }
}
