//! Ports without a device: a source and sink, and a loopback pair. Driver name: `null`.
//!
//! - As a **source and sink** it receives frames that it makes itself, as fast as it is asked, and frees what is sent.
//!   This is what a graph costs without a device: the same measure as DPDK's `net_null`.
//! - As a **pair** (`peer = "NAME"`), what is sent on one port comes in on the other, in order, bounded by a ring that
//!   pushes back. The two may be on different workers.
//!
//! Keys of a port with `driver = "null"`:
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `frames` | `"length"` | `"length"`: only lengths are set, a frame's bytes are whatever its buffer held. `"udp"`: a whole Ethernet, IPv4 and UDP frame is written, see below |
//! | `size` | 64 | bytes of a frame as the field counts them, with the 4 of the check sequence: 64 is 60 in the buffer |
//! | `flows` | 1 | `"udp"` only: how many flows take turns, 1 to 65536 |
//! | `burst` | 32 | most frames of one call, 1 to 64 |
//! | `count` | none | frames in all, shared out among the queues; then nothing more comes |
//! | `peer` | none | the other port of a pair; none of the keys above go with it |
//!
//! A `"udp"` frame of flow `f` goes from 10.0.0.0 + `f`, port 1024 + `f` mod 32768, to 198.18.0.1 port 9 (RFC 2544
//! addresses, discard), without a UDP checksum (RFC 768 allows 0). Its payload starts with the flow (u32) and the
//! frame's number in its flow and queue (u64), both big endian.
//!
//! Life of a port:
//! 1. [`Null::open`] checks the keys; a pair is complete when both names have been opened.
//! 2. `start` hands out queues. A pair's link is up once both have started; until then what is sent is lost on the wire
//!    and counted as missed by the other port.
//! 3. `rx_off` ends the source, or takes the link down; what is in the ring can still be polled.
//! 4. `stop` frees what is left in the ring. Whoever of a pair stops last frees what is left both ways.
//!
//! Limits: source frames have one buffer; a source that finds the pool empty makes fewer frames and loses none, so
//! there is no `no_buffer` here (see the pool's misses); a pair belongs to one runtime's memory and has no offloads: what
//! wants one is dropped as `unsupported_offload`.
#![forbid(unsafe_code)]

mod frame;
mod keys;
mod pair;
mod source;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use port::{Driver, OpenEnv, OpenPort, PortError};

/// The driver's name.
const NAME: &str = "null";
/// Most queue pairs of a port.
const MAX_QUEUES: u16 = 16;

/// Opens source-and-sink ports and loopback pairs.
#[derive(Default)]
pub struct Null {
    pairs: Mutex<Vec<Weak<pair::Pair>>>,
}

impl Null {
    /// No pairs yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Driver for Null {
    fn name(&self) -> &'static str {
        NAME
    }

    fn keys(&self) -> &'static [&'static str] {
        &keys::Keys::KNOWN
    }

    fn open(&self, cfg: &toml::Table, env: &OpenEnv) -> Result<Box<dyn OpenPort>, PortError> {
        match keys::Keys::read(cfg, env)? {
            keys::Keys::Source(k) => Ok(Box::new(source::SourcePort::new(k, env))),
            keys::Keys::Pair { peer } => {
                let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(Box::new(pair::open(&mut pairs, &peer, env)?))
            }
        }
    }
}

/// What one queue pair counts for the control side: on a line of its own, each count with one writer.
#[derive(Default)]
#[repr(align(128))]
struct Counts {
    rx: AtomicU64,
    tx: AtomicU64,
}

impl Counts {
    fn sum(all: &[Arc<Self>], of: impl Fn(&Self) -> &AtomicU64) -> Option<u64> {
        Some(all.iter().map(|c| of(c).load(Ordering::Relaxed)).sum())
    }
}

/// Adds to a count that has no other writer.
#[inline]
fn add(to: &AtomicU64, n: usize) {
    to.store(to.load(Ordering::Relaxed) + n as u64, Ordering::Relaxed);
}

/// Whether a port receives.
type Gate = Arc<AtomicBool>;
