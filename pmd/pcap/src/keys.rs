//! The driver's own keys.

use std::path::PathBuf;

use config::{KeyError, Rate};
use port::PortError;
use toml::{Table, Value};

use crate::NAME;
use crate::read::MAX_FRAME;
use crate::write::Format;

/// All of them.
pub const KNOWN: [&str; 7] = ["read", "write", "format", "pace", "loop", "snaplen", "sync"];

/// How fast frames come in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PaceKey {
    /// As fast as they are asked for.
    Full,
    /// As they were captured.
    Recorded,
    /// So many in a second.
    Rate(Rate),
}

/// What is read, and how.
#[derive(Clone, Debug)]
pub struct ReadKeys {
    pub path: PathBuf,
    pub pace: PaceKey,
    /// How often the file is read; `None` for ever.
    pub passes: Option<u64>,
}

/// What is written, and how.
#[derive(Clone, Debug)]
pub struct WriteKeys {
    pub path: PathBuf,
    pub format: Format,
    /// Longest frame, in bytes.
    pub snaplen: u32,
    /// Whether stopping waits until the file is on the disk.
    pub sync: bool,
}

/// What a port is to do.
#[derive(Clone, Debug)]
pub struct Keys {
    pub read: Option<ReadKeys>,
    pub write: Option<WriteKeys>,
}

impl Keys {
    /// Reads and checks all keys.
    pub fn read(table: &Table) -> Result<Self, PortError> {
        Self::checked(table).map_err(|e| PortError::key(NAME, e))
    }

    fn checked(table: &Table) -> Result<Self, KeyError> {
        let keys = config::Keys::new(table, &KNOWN)?;
        let only_with = |needs: &str, those: &[&str]| match those.iter().find(|k| keys.has(k)) {
            Some(key) if !keys.has(needs) => Err(KeyError::new(*key, format!("goes with `{needs}` only"))),
            _ => Ok(()),
        };
        only_with("read", &["pace", "loop"])?;
        only_with("write", &["format", "snaplen", "sync"])?;
        if !keys.has("read") && !keys.has("write") {
            return Err(KeyError::new(
                "read",
                "is missing: the capture to read; or give `write`, the capture to write",
            ));
        }
        let read = path(&keys, "read", "/dev/stdin")?
            .map(|path| Ok::<_, KeyError>(ReadKeys { path, pace: pace(&keys)?, passes: passes(table)? }))
            .transpose()?;
        let write = path(&keys, "write", "/dev/stdout")?.map(|path| write_keys(&keys, path)).transpose()?;
        Ok(Self { read, write })
    }
}

fn write_keys(keys: &config::Keys<'_>, path: PathBuf) -> Result<WriteKeys, KeyError> {
    let by_name = if path.extension().is_some_and(|e| e == "pcapng") { Format::Ng } else { Format::Classic };
    Ok(WriteKeys {
        format: keys.word("format", by_name, &[("pcap", Format::Classic), ("pcapng", Format::Ng)])?,
        snaplen: keys.number("snaplen", MAX_FRAME.into(), 14..=MAX_FRAME.into())? as u32,
        sync: keys.flag("sync", true)?,
        path,
    })
}

fn path(keys: &config::Keys<'_>, key: &str, standard: &str) -> Result<Option<PathBuf>, KeyError> {
    match keys.text(key)? {
        Some("") => Err(KeyError::new(key, "is empty; write the path of a capture")),
        Some("-") => Err(KeyError::new(key, format!("\"-\" is not a path; write \"{standard}\""))),
        other => Ok(other.map(PathBuf::from)),
    }
}

fn pace(keys: &config::Keys<'_>) -> Result<PaceKey, KeyError> {
    match keys.text("pace").unwrap_or(None) {
        Some("full") => Ok(PaceKey::Full),
        Some("recorded") => Ok(PaceKey::Recorded),
        _ => {
            let what =
                |e: KeyError| KeyError::new("pace", format!("{}; or \"full\" or \"recorded\"", e.problem));
            Ok(keys.rate("pace").map_err(what)?.map_or(PaceKey::Full, PaceKey::Rate))
        }
    }
}

fn passes(table: &Table) -> Result<Option<u64>, KeyError> {
    match table.get("loop") {
        None | Some(Value::Boolean(false)) => Ok(Some(1)),
        Some(Value::Boolean(true)) => Ok(None),
        Some(Value::Integer(n @ 1..)) => Ok(Some(n.unsigned_abs())),
        Some(other) => {
            Err(KeyError::new("loop", format!("{other} is neither true, false nor a number of passes")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Keys {
        Keys::read(&text.parse().unwrap()).unwrap()
    }
    fn wrong(text: &str) -> String {
        Keys::read(&text.parse().unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn defaults_and_names_decide() {
        let k = keys("read = \"a.pcap\"\nwrite = \"b.pcapng\"");
        let (r, w) = (k.read.unwrap(), k.write.unwrap());
        assert_eq!((r.pace, r.passes), (PaceKey::Full, Some(1)));
        assert_eq!((w.format, w.snaplen, w.sync), (Format::Ng, MAX_FRAME, true));
        let w = keys("write = \"b.pcapng\"\nformat = \"pcap\"\nsnaplen = 96\nsync = false").write.unwrap();
        assert_eq!((w.format, w.snaplen, w.sync), (Format::Classic, 96, false));
        assert_eq!(keys("write = \"/dev/stdout\"").write.unwrap().format, Format::Classic);
        let r = |t: &str| keys(&format!("read = \"a\"\n{t}")).read.unwrap();
        assert_eq!(r("loop = true").passes, None);
        assert_eq!(r("loop = 3").passes, Some(3));
        assert_eq!(r("pace = \"recorded\"").pace, PaceKey::Recorded);
        assert_eq!(r("pace = \"1.5M\"").pace, PaceKey::Rate(Rate::Packets(1.5e6)));
        assert_eq!(r("pace = \"10Gbps\"").pace, PaceKey::Rate(Rate::Bits(1e10)));
        assert_eq!(r("pace = 1000").pace, PaceKey::Rate(Rate::Packets(1e3)));
    }

    #[test]
    fn wrong_keys_say_what_would_be_right() {
        assert!(wrong("").contains("read: is missing: the capture to read; or give `write`"));
        assert!(wrong("read = \"-\"").contains("write \"/dev/stdin\""));
        assert!(wrong("write = \"\"").contains("write: is empty"));
        assert!(wrong("write = \"a\"\npace = \"full\"").contains("pace: goes with `read` only"));
        assert!(wrong("read = \"a\"\nsync = true").contains("sync: goes with `write` only"));
        assert!(wrong("read = \"a\"\nloop = 0").contains("0 is neither true, false nor a number of passes"));
        assert!(wrong("read = \"a\"\npace = \"fast\"").contains("10Gbps; or \"full\" or \"recorded\""));
        assert!(wrong("read = \"a\"\npace = true").contains("\"full\" or \"recorded\""));
        assert!(wrong("write = \"a\"\nsnaplen = 3").contains("from 14 to 262144"));
        assert!(wrong("write = \"a\"\nformat = \"erf\"").contains("one of \"pcap\", \"pcapng\""));
        assert!(wrong("raed = \"a\"").contains("did you mean read?"));
    }
}
