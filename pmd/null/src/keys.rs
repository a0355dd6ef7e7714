//! The driver's own keys.

use port::{OpenEnv, PortError};
use toml::{Table, Value};

use crate::NAME;

/// What a source writes into its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// Nothing.
    Length,
    /// Headers, flow and number.
    Udp,
}

/// The keys of a source.
#[derive(Clone, Copy, Debug)]
pub struct SourceKeys {
    /// What is written.
    pub frames: Frames,
    /// Bytes in the buffer.
    pub len: u16,
    /// Flows that take turns.
    pub flows: u32,
    /// Most frames of one call.
    pub burst: usize,
    /// Frames in all.
    pub count: Option<u64>,
}

/// What a port is to be.
#[derive(Debug)]
pub enum Keys {
    /// Source and sink.
    Source(SourceKeys),
    /// One end of a pair.
    Pair {
        /// The other.
        peer: String,
    },
}

/// Bytes of the frame check sequence: counted in `size`, not in the buffer.
const FCS: u16 = 4;
/// The shortest Ethernet frame (IEEE 802.3, 3.2.7).
const SHORTEST: u16 = 64;

fn wrong(key: &'static str, problem: impl Into<String>) -> PortError {
    PortError::Config { driver: NAME, key: key.to_owned(), problem: problem.into() }
}

fn number(cfg: &Table, key: &'static str, default: u64, min: u64, max: u64) -> Result<u64, PortError> {
    match cfg.get(key) {
        None => Ok(default),
        Some(Value::Integer(n)) if (min..=max).contains(&u64::try_from(*n).unwrap_or(u64::MAX)) => {
            Ok(*n as u64)
        }
        Some(other) => Err(wrong(key, format!("{other} is not a whole number from {min} to {max}"))),
    }
}

impl Keys {
    pub const KNOWN: [&str; 6] = ["frames", "size", "flows", "burst", "count", "peer"];

    /// Reads and checks all keys.
    pub fn read(cfg: &Table, env: &OpenEnv) -> Result<Self, PortError> {
        config::Keys::new(cfg, &Self::KNOWN).map_err(|e| PortError::key(NAME, e))?;
        if let Some(peer) = cfg.get("peer") {
            let Some(peer) = peer.as_str() else {
                return Err(wrong("peer", format!("{peer} is not the name of a port")));
            };
            if let Some(other) = cfg.keys().find(|k| *k != "peer") {
                return Err(wrong("peer", format!("goes without {other:?}: a pair makes no frames")));
            }
            if *peer == *env.name {
                return Err(wrong("peer", "a port cannot be its own peer"));
            }
            return Ok(Self::Pair { peer: peer.into() });
        }
        let frames = match cfg.get("frames") {
            None => Frames::Length,
            Some(v) => match v.as_str() {
                Some("length") => Frames::Length,
                Some("udp") => Frames::Udp,
                _ => return Err(wrong("frames", format!("{v} is neither \"length\" nor \"udp\""))),
            },
        };
        if frames == Frames::Length && cfg.contains_key("flows") {
            return Err(wrong("flows", "only frames = \"udp\" has flows"));
        }
        let longest = env.memory.layout().room() + FCS;
        let size = number(cfg, "size", SHORTEST.into(), SHORTEST.into(), longest.into())?;
        Ok(Self::Source(SourceKeys {
            frames,
            len: size as u16 - FCS,
            flows: number(cfg, "flows", 1, 1, 65_536)? as u32,
            burst: number(cfg, "burst", 32, 1, mem::BURST as u64)? as usize,
            count: cfg.get("count").map(|_| number(cfg, "count", 0, 0, i64::MAX as u64)).transpose()?,
        }))
    }
}
