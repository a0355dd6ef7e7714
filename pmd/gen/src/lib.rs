//! A port that makes traffic and checks what comes back. Driver name: `gen`.
//!
//! - What it **receives** are frames that it makes: Ethernet, IPv4 or IPv6, and UDP, with right checksums, of flows that take turns.
//! - What is **sent** to it is compared with what was made, counted, and freed: lost, reordered, repeated, changed, foreign, and
//!   how long it took.
//! - [`GenPort`] is the port, made from a [`Profile`] or by the driver [`Gen`] from keys; [`Handle`] holds it, lets it go and
//!   reads its [`Counts`].
//!
//! Keys of a port with `driver = "gen"`:
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `flows` | 64 | how many flows take turns, 1 to 65536; each queue has a range of them |
//! | `size` | 64 | bytes of a frame with the 4 of the check sequence: a number, `"64:7,594:4"` (sizes with weights), or `"imix"` |
//! | `rate` | `"max"` | `"1M"` packets a second, `"10Gbps"` on the wire, or as fast as asked |
//! | `count` | none | frames in all, shared out among the queues; then nothing more comes |
//! | `burst` | 32 | most frames of one call, 1 to 64 |
//! | `catch_up` | `"1ms"` | how late a frame may be made; what is later is let go and counted |
//! | `src`, `dst` | halves of 198.18.0.0/15 | prefixes that flows are between (RFC 2544; IPv6: RFC 5180) |
//! | `src_mac`, `dst_mac` | 02:00:00:00:00:01, :02 | Ethernet addresses |
//!
//! Flow `f` goes from station `f` of `src`, port 1024 + `f` mod 64512, to station `f` of `dst`, port 9 (discard). The payload begins
//! with 18 bytes, big endian: a magic that only this run has (32 bits), the flow (16), the frame's number in its flow (40), the
//! moment it was made (40: ticks of the processor's cycle counter, which cores of a machine share), and a check over these (16). The
//! rest is a piece of a random pattern, another for each number. A 64-byte frame over IPv4 has room for the 18 bytes and no more;
//! over IPv6 84 bytes are the least.
//!
//! What is checked: tag, pattern, lengths, the IPv4 header's and the UDP checksum. Ethernet addresses, TTL, and whatever else a
//! bridge or router may change with right checksums, is not. A frame changed beyond recognition is foreign, and the one that it was
//! is missing. Reordering is as in RFC 4737, 3.3 and 4.2.1, by flow.
//!
//! Life of a port:
//! 1. [`Gen::open`] or [`GenPort::new`] checks the profile.
//! 2. `start` draws a magic and hands out queues. Frames are made from then on, unless [`Handle::hold`] was called before.
//! 3. At a rate, each frame is due a fixed time after the one before, whenever that was made: there is no drift. What is late is
//!    made up for, in bursts, up to `catch_up`; what is later is counted as skipped.
//! 4. `rx_off` ends making. What comes back is checked until the worker has drained.
//! 5. `stop` logs the counts; they can be read until the next start.
//!
//! Limits: frames have one buffer, those that come back may have several. Order and repetitions are told by each transmit queue
//! for itself: let all frames of a flow come to one. A flow's window is 65,536 frames for up to 64 flows and 256 for 65,536: what is
//! later than that is counted as too late to tell. Latency includes the wait in this port's bursts and in batches on the way. A pool
//! that is empty makes frames late.
#![forbid(unsafe_code)]

mod check;
mod control;
mod counts;
mod frame;
mod ip;
mod keys;
mod latency;
mod pace;
mod pattern;
mod profile;
mod run;
mod sink;
mod sizes;
mod source;
mod tag;
mod window;

use std::sync::atomic::{AtomicU64, Ordering};

use port::{Driver, OpenEnv, OpenPort, PortError};

pub use control::{GenPort, Handle};
pub use counts::{Counts, Throughput};
pub use ipnet::IpNet;
pub use latency::Latency;
pub use profile::{Addresses, MOST_FLOWS, Pace, Profile, prefix};
pub use sizes::Sizes;

/// The driver's name.
pub const NAME: &str = "gen";
/// Most queue pairs of a port.
const MAX_QUEUES: u16 = 16;

/// Opens ports that make and check traffic.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gen;

impl Driver for Gen {
    fn name(&self) -> &'static str {
        NAME
    }

    fn keys(&self) -> &'static [&'static str] {
        &keys::KNOWN
    }

    fn open(&self, cfg: &toml::Table, env: &OpenEnv) -> Result<Box<dyn OpenPort>, PortError> {
        let profile = keys::read(cfg).map_err(|e| PortError::key(NAME, e))?;
        Ok(Box::new(GenPort::new(profile, env)?))
    }
}

/// Adds to a count that has no other writer.
#[inline]
fn add(to: &AtomicU64, n: impl TryInto<u64>) {
    let n = n.try_into().unwrap_or(0);
    to.store(to.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}
