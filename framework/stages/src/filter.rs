//! Which packets pass, by an expression over their headers.
//!
//! ```text
//! tcp.port in {80, 443, 8000-8100} and not ipv4.src == 10.0.0.0/8
//! arp or (vlan.id == 20 and eth.dst == 01:00:5e:00:00:00/25)
//! ```
//!
//! **Syntax.** `FIELD == VALUE`, with `!= < <= > >=` for numbers and `== !=` for addresses; `FIELD in {VALUE, FIRST-LAST, ...}`, braces only
//! needed for more than one; a field that is yes or no alone, as `tcp.syn`; a protocol alone, for packets that have it. These are joined by
//! `and` (`&&`), `or` (`||`), `not` (`!`) and brackets; `not` binds most, `or` least. `==` is never left out.
//!
//! **Values.** Numbers are decimal or `0x`; some have names (`eth.type == arp`, `ipv4.proto == tcp`, `arp.op == request`). Addresses are
//! `10.0.0.1`, `2001:db8::1`, `02:00:00:00:00:01`; with a prefix length, as `10.0.0.0/8` or `33:33:00:00:00:00/16`, all that begin so.
//!
//! | names | are |
//! |---|---|
//! | `len` | bytes of the frame, without check sequence |
//! | `eth.src` `eth.dst` `eth.multicast` `eth.type` | the type is the one behind all tags; multicast is yes or no |
//! | `vlan.id` `vlan.pcp` | of the outermost tag, also of one that the device took out |
//! | `arp.op` `arp.sha` `arp.spa` `arp.tha` `arp.tpa` | sender's and target's hardware and protocol addresses |
//! | `ipv4.src` `ipv4.dst` `ipv4.addr` `ipv4.proto` `ipv4.ttl` `ipv4.dscp` `ipv4.fragment` `ipv4.len` | a fragment is any part of a datagram: yes or no |
//! | `ipv6.src` `ipv6.dst` `ipv6.addr` `ipv6.next` `ipv6.hops` | `next` is what follows the extension headers |
//! | `tcp.src` `tcp.dst` `tcp.port` `tcp.flags` `tcp.syn` `tcp.ack` `tcp.fin` `tcp.rst` | flags are the byte of eight, and yes or no |
//! | `udp.src` `udp.dst` `udp.port`, `icmp.type` `icmp.code`, `icmpv6.type` `icmpv6.code` | |
//! | `vlan` `arp` `ipv4` `ipv6` `tcp` `udp` `icmp` `icmpv6` | the packet has it |
//!
//! **What a packet does not have.** A comparison of a field that the packet does not have is false, `!=` too: `tcp.port != 80` passes no UDP.
//! `not (tcp.port == 80)` is true of all that is not TCP to or from port 80, UDP and ARP included. `ipv4.addr`, `ipv6.addr` and `.port` mean either
//! end: `==` and the others are true if they are of one, `!=` if the value is neither.
//!
//! A header counts when it is whole and its lengths fit the frame. Only the first part of a datagram has ports; the others are `tcp` or `udp` all the
//! same, by what IP says. Of ARP there is only that for IPv4 over Ethernet. No more is looked at than the expression asks for.
//!
//! **Limits.** At most 4096 bytes, 256 comparisons, and 32 brackets inside each other; two VLAN tags and eight IPv6 extension headers are stepped over;
//! tunnels are not looked into. Headers must lie in the first buffer, and are moved there if they are short and do not.

mod error;
mod facts;
mod fields;
mod lex;
mod parse;
mod program;
mod values;

use config::{KeyError, Keys};
use graph::{Exits, Leads, Stage};
use mem::{Batch, Flags, Pkt};
use meter::DropReason;
use toml::Table;

use crate::exits;
pub use error::FilterError;
use facts::Facts;
use program::Program;

exits! {
    /// Ways out of [`Filter`].
    FilterExit {
        /// What the expression is true of.
        Pass = "pass" => Leads::Open,
        /// The rest: dropped, unless it is joined to something.
        Fail = "fail" => Leads::Drop(DropReason::Filtered),
    }
}

/// Bytes that hold two tags, and IPv4 and TCP with all their options.
const HEADERS: usize = 14 + 2 * 4 + 60 + 60;

/// What a filter is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterConfig {
    /// What passes.
    pub expression: String,
}

impl FilterConfig {
    /// Its keys.
    pub const KEYS: &'static [&'static str] = &["expression"];

    /// From the keys of `table`.
    ///
    /// # Errors
    /// An unknown key, or none at all.
    pub fn read(table: &Table) -> Result<Self, KeyError> {
        let keys = Keys::new(table, Self::KEYS)?;
        let what = "what passes, as \"ipv4.dst == 10.0.0.0/8 and tcp\"";
        Ok(Self { expression: keys.need_text("expression", what)?.to_owned() })
    }
}

/// An expression, compiled: a stage, and a thing to ask about frames.
///
/// ```
/// # use ringwright_stages::Filter;
/// let filter = Filter::new("eth.type == arp or tcp.port == 443")?;
/// # let mut frame = [0u8; 60];
/// frame[12..14].copy_from_slice(&[0x08, 0x06]);
/// assert!(filter.matches(&frame));
/// # Ok::<(), ringwright_stages::FilterError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Filter {
    program: Program,
    passed: u64,
    failed: u64,
}

impl Filter {
    /// Compiles `expression`.
    ///
    /// # Errors
    /// What is wrong with it, where, and what was probably meant.
    pub fn new(expression: &str) -> Result<Self, FilterError> {
        Ok(Self { program: Program::new(&parse::parse(expression)?), passed: 0, failed: 0 })
    }

    /// Whether the expression is true of an Ethernet frame without its check sequence.
    #[inline]
    pub fn matches(&self, frame: &[u8]) -> bool {
        self.ask(frame, frame.len(), None)
    }
    /// Whether it is true of a packet; of one in several buffers, by its first.
    #[inline]
    pub fn matches_packet(&self, packet: &Pkt<'_>) -> bool {
        let tag = packet.flags().has(Flags::VLAN).then(|| packet.ext().vlan);
        self.ask(packet.bytes(), packet.total_len(), tag)
    }
    #[inline]
    fn ask(&self, front: &[u8], len: usize, tag: Option<u16>) -> bool {
        self.program.run(&Facts::of(front, len, tag, self.program.wants, self.program.depth))
    }
}

/// Brings the headers of a packet of several buffers together, if its first does not hold them.
#[cold]
fn gather(packet: &mut Pkt<'_>) {
    packet.pull(packet.total_len().min(HEADERS));
}

impl Stage for Filter {
    type Exit = FilterExit;
    const KIND: &'static str = "filter";

    fn process(&mut self, batch: &mut Batch, exits: &mut Exits<'_, FilterExit>) {
        let mut fail = 0u64;
        for (i, mut p) in batch.iter_mut().enumerate() {
            if p.flags().has(Flags::CHAIN) && p.len() < HEADERS {
                gather(&mut p);
            }
            fail |= u64::from(!self.matches_packet(&p)) << i;
        }
        let failed = u64::from(fail.count_ones());
        self.failed += failed;
        self.passed += batch.len() as u64 - failed;
        let most = if failed == batch.len() as u64 { FilterExit::Fail } else { FilterExit::Pass };
        exits.set_all(most);
        while fail != 0 && most == FilterExit::Pass {
            exits.set(fail.trailing_zeros() as usize, FilterExit::Fail);
            fail &= fail - 1;
        }
    }

    fn notes(&self) -> Vec<(&'static str, u64)> {
        vec![("passed", self.passed), ("failed", self.failed)]
    }
}
