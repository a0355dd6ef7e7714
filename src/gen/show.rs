//! What a run of the generator says: a line a second, a summary, and one object.

use std::fmt;

use generator::{Counts, Latency, Profile, Throughput};
use rt::Status;
use serde::Serialize;

use super::ceiling::{Ceiling, frames};
use crate::run::Summary;
use crate::units::{Apart, rate};

/// The name of the port that frames leave by.
pub const TX: &str = "tx";
/// Results from this share of the ceiling on say more about the generator than about the port.
const LIMITED: f64 = 0.95;

/// How a run ended.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The status object.
    #[serde(flatten)]
    pub status: Status,
    /// What the generator adds to it.
    #[serde(rename = "gen")]
    pub figures: Figures,
}

/// What the generator made and saw. What cannot be known is null: where nothing can come back, all that has to come back.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// The driver that frames left by.
    pub tx: String,
    /// The driver that they came back by; null if they could not.
    pub rx: Option<String>,
    /// What frames there were.
    pub frames: String,
    /// What the generator could do at most, on the same core.
    pub ceiling: Ceiling,
    /// Whether the result says how fast the generator is, rather than the port: it is within 5 % of the ceiling.
    pub limited_by_generator: bool,
    /// Frames that were made and given to the port.
    pub sent: u64,
    /// Of those, frames that the port dropped before they left; the status says why. Where frames can come back, they are lost.
    pub dropped_by_tx: u64,
    /// Frames that came back, in whatever state.
    pub received: Option<u64>,
    /// Frames that did not come back.
    pub lost: Option<u64>,
    /// Frames that came back once more.
    pub duplicated: Option<u64>,
    /// Frames that came back after a later one of their flow (RFC 4737).
    pub reordered: Option<u64>,
    /// The largest extent of a reordered frame (RFC 4737, 4.2.1); null if there was none.
    pub reordering_extent_max: Option<u64>,
    /// The mean extent.
    pub reordering_extent_mean: Option<f64>,
    /// Frames that came back changed.
    pub corrupted: Option<u64>,
    /// Frames that came back so late that they may have come back before. They count as lost.
    pub too_late: Option<u64>,
    /// Frames that came in and were not sent.
    pub foreign: Option<u64>,
    /// How fast frames were to be sent, were sent, and came back.
    pub rate: Rates,
    /// Nanoseconds from when a frame was made until it was checked, by the processor's cycle counter.
    pub latency_ns: Option<LatencyNs>,
}

/// How fast frames were to be sent, were sent, and came back. Bits are those on the wire, with check sequences, preambles and gaps.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rates {
    /// Packets a second that were asked for; null for as many as can be.
    pub asked_packets_per_second: Option<f64>,
    /// The same in bits.
    pub asked_wire_bits_per_second: Option<f64>,
    /// Packets a second from the first that was sent to the last; null for fewer than two bursts.
    pub sent_packets_per_second: Option<f64>,
    /// The same in bits.
    pub sent_wire_bits_per_second: Option<f64>,
    /// Packets a second that came back.
    pub received_packets_per_second: Option<f64>,
    /// The same in bits.
    pub received_wire_bits_per_second: Option<f64>,
    /// Frames that were due, and so late that they were not sent at all.
    pub skipped: u64,
}

/// Nanoseconds. Quantiles are within 1.6 %.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LatencyNs {
    min: u64,
    mean: u64,
    p50: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

impl From<Latency> for LatencyNs {
    fn from(l: Latency) -> Self {
        Self { min: l.min, mean: l.mean, p50: l.p50, p99: l.p99, p999: l.p999, max: l.max }
    }
}

/// What a report is made of beside counts.
pub struct Basis {
    pub tx: String,
    /// `None` if nothing can come back.
    pub rx: Option<String>,
    pub profile: Profile,
    pub asked: Option<Throughput>,
    pub ceiling: Ceiling,
}

impl Report {
    /// Of a run that is over.
    pub fn new(basis: Basis, counts: &Counts, status: Status) -> Self {
        let back = basis.rx.is_some();
        let seen = |n| back.then_some(n);
        let sent = counts.made_rate;
        let received = counts.arrived_rate.filter(|_| back);
        let limit = basis.ceiling.packets_per_second * LIMITED;
        let figures = Figures {
            frames: frames(&basis.profile),
            limited_by_generator: sent.is_some_and(|r| r.packets_per_second >= limit),
            sent: counts.made,
            dropped_by_tx: dropped_by_tx(&status),
            received: seen(counts.arrived),
            lost: seen(counts.missing()),
            duplicated: seen(counts.repeated),
            reordered: seen(counts.reordered),
            reordering_extent_max: counts.extent_max,
            reordering_extent_mean: counts.extent_mean,
            corrupted: seen(counts.changed),
            too_late: seen(counts.too_late),
            foreign: seen(counts.foreign),
            rate: Rates {
                asked_packets_per_second: basis.asked.map(|r| r.packets_per_second),
                asked_wire_bits_per_second: basis.asked.map(|r| r.wire_bits_per_second),
                sent_packets_per_second: sent.map(|r| r.packets_per_second),
                sent_wire_bits_per_second: sent.map(|r| r.wire_bits_per_second),
                received_packets_per_second: received.map(|r| r.packets_per_second),
                received_wire_bits_per_second: received.map(|r| r.wire_bits_per_second),
                skipped: counts.skipped,
            },
            latency_ns: counts.latency.map(Into::into),
            tx: basis.tx,
            rx: basis.rx,
            ceiling: basis.ceiling,
        };
        Self { status, figures }
    }
}

/// Frames that the port under test dropped, or that were dropped as it had no room for them.
fn dropped_by_tx(status: &Status) -> u64 {
    let tx = status.ports.iter().filter(|p| p.name == TX);
    tx.flat_map(|p| &p.queues).flat_map(|q| q.tx.drops.values()).sum()
}

/// Bits on the wire by second.
fn bits(per_second: f64) -> String {
    match per_second {
        b if b >= 1e9 => format!("{:.2} Gbit/s", b / 1e9),
        b if b >= 1e6 => format!("{:.2} Mbit/s", b / 1e6),
        b => format!("{:.2} kbit/s", b / 1e3),
    }
}

/// `1.2 us`, `3.45 ms`.
fn time(ns: u64) -> String {
    match ns as f64 {
        t if t >= 1e9 => format!("{:.2} s", t / 1e9),
        t if t >= 1e6 => format!("{:.2} ms", t / 1e6),
        t if t >= 1e3 => format!("{:.1} us", t / 1e3),
        t => format!("{t:.0} ns"),
    }
}

/// A rate in packets and bits; `unknown` for less than two bursts.
struct Speed(Option<f64>, Option<f64>);

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (Some(p), Some(b)) => write!(f, "{} packets, {} on the wire", rate(p), bits(b)),
            _ => f.write_str("too few to tell a rate"),
        }
    }
}

impl fmt::Display for Report {
    /// The summary.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let g = &self.figures;
        let way = g.rx.as_ref().map_or_else(|| "nowhere".to_owned(), Clone::clone);
        writeln!(f, "{:.1} s of {} by {}, back by {way}", self.status.elapsed_s, g.frames, g.tx)?;
        writeln!(f, "{}", g.ceiling.line())?;
        g.fmt_rates(f)?;
        for l in &self.status.lints {
            writeln!(f, "{}: {}", l.lint, l.message)?;
        }
        writeln!(f, "\n{}", Summary(&self.status))?;
        g.fmt_check(f)
    }
}

impl Figures {
    fn fmt_rates(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let r = &self.rate;
        if let (Some(p), Some(b)) = (r.asked_packets_per_second, r.asked_wire_bits_per_second) {
            writeln!(f, "asked     {}", Speed(Some(p), Some(b)))?;
        }
        writeln!(f, "sent      {}", Speed(r.sent_packets_per_second, r.sent_wire_bits_per_second))?;
        if self.rx.is_some() {
            let speed = Speed(r.received_packets_per_second, r.received_wire_bits_per_second);
            writeln!(f, "received  {speed}")?;
        }
        if r.skipped > 0 {
            writeln!(f, "late: {} frames were not sent, as they could not be in time", Apart(r.skipped))?;
        }
        if self.dropped_by_tx > 0 {
            writeln!(f, "dropped by the sending port: {}", Apart(self.dropped_by_tx))?;
        }
        if self.limited_by_generator {
            writeln!(f, "limited by the generator: within 5 % of its ceiling; the port may be faster")?;
        }
        if let Some(l) = &self.latency_ns {
            let [min, mean, p50, p99, p999, max] = [l.min, l.mean, l.p50, l.p99, l.p999, l.max].map(time);
            writeln!(
                f,
                "latency   min {min}, mean {mean}, median {p50}, 99 % below {p99}, 99.9 % below {p999}, max {max}"
            )?;
        }
        Ok(())
    }

    fn fmt_check(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(received), Some(lost)) = (self.received, self.lost) else {
            return write!(f, "checker: {} frames sent; what became of them is unknown", Apart(self.sent));
        };
        let hint = if self.sent > 0 && received == 0 {
            "nothing came back: is there a loop or a reflector at the other end?\n         "
        } else {
            ""
        };
        let or_none = |n: Option<u64>| n.unwrap_or(0);
        let (duplicated, reordered) = (or_none(self.duplicated), or_none(self.reordered));
        let (corrupted, too_late) = (or_none(self.corrupted), or_none(self.too_late));
        if self.sent > 0 && lost + duplicated + reordered + corrupted + too_late == 0 {
            write!(f, "checker: each of {} frames came back once, unchanged and in order", Apart(self.sent))?;
        } else {
            let share = if self.sent > 0 { lost as f64 / self.sent as f64 * 100.0 } else { 0.0 };
            write!(f, "checker: {hint}of {} frames {} lost ({share:.4} %), ", Apart(self.sent), Apart(lost))?;
            let [a, b, c] = [reordered, duplicated, corrupted].map(Apart);
            write!(f, "{a} reordered, {b} duplicated, {c} corrupted")?;
        }
        self.fmt_rest(f)
    }

    fn fmt_rest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(max), Some(mean)) = (self.reordering_extent_max, self.reordering_extent_mean) {
            write!(f, "\nreordering: extent {mean:.1} on average, {max} at most")?;
        }
        if let Some(late) = self.too_late.filter(|n| *n > 0) {
            write!(
                f,
                "\n{} came too late to tell whether for the first time; they count as lost",
                Apart(late)
            )?;
        }
        if let Some(foreign) = self.foreign.filter(|n| *n > 0) {
            write!(f, "\nforeign: {}", Apart(foreign))?;
        }
        Ok(())
    }
}

/// The line of one second.
pub struct Progress {
    back: bool,
    last: (f64, Counts),
    now: (f64, Counts),
}

impl Progress {
    /// Nothing yet. `back`: whether frames can come back.
    pub fn new(back: bool) -> Self {
        Self { back, last: Default::default(), now: Default::default() }
    }
    /// `seconds` after the start.
    pub fn update(&mut self, seconds: f64, counts: Counts) {
        self.last = std::mem::replace(&mut self.now, (seconds, counts));
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((before, was), (now, is)) = (&self.last, &self.now);
        let per_second = |a: u64, b: u64| rate(b.saturating_sub(a) as f64 / (now - before).max(1e-3));
        write!(f, "{now:6.1} s   sent {}", per_second(was.made, is.made))?;
        if self.back {
            write!(f, "   received {}", per_second(was.arrived, is.arrived))?;
            write!(f, "   not back {}   reordered {}", Apart(is.missing()), Apart(is.reordered))?;
            write!(f, "   duplicated {}   corrupted {}", Apart(is.repeated), Apart(is.changed))?;
            if is.foreign > 0 {
                write!(f, "   foreign {}", Apart(is.foreign))?;
            }
            if let Some(l) = &is.latency {
                write!(f, "   latency {} (99 % below {})", time(l.p50), time(l.p99))?;
            }
        }
        if is.skipped > 0 {
            write!(f, "   late {}", Apart(is.skipped))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
