//! What the demo says: a line a second, a summary, and the status object.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ixgbe_defs::Queue;
use ixgbe_model::{Cause, Device, Direction};
use pcie::{AddressWidth, Parameters, Source, Transactions};
use rt::Status;
use serde::Serialize;

use super::traffic::Counts;
use super::{Frames, Options};
use crate::units::Apart;

/// What the generators sent and the checkers saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Frames that the generators sent.
    pub generated: u64,
    /// Frames that arrived once, unchanged and in the order of their flow.
    pub verified: u64,
    /// Frames that did not arrive.
    pub missing: u64,
    /// Frames that came after a later one of their flow.
    pub reordered: u64,
    /// Frames that came more than once.
    pub duplicated: u64,
    /// Frames that are not as they were sent.
    pub changed: u64,
}

/// What the devices' bus operations would take of a PCIe link. The operations and their bytes are counted by the
/// software devices, one by one; how they are cut into packets is modelled, and the link is not there.
#[derive(Clone, Debug, Serialize)]
pub struct LinkLoad {
    /// The link of each device.
    pub link: String,
    /// Always `model`.
    pub source: &'static str,
    /// Share of the link from the busier device to the host; more than 1 is more than the link could carry.
    pub upstream: f64,
    /// Share of the link from the host to the busier device.
    pub downstream: f64,
    /// Packets per second through a port, each way, at which a direction of its link would be full.
    pub ceiling_pps: f64,
}

/// One moment of the demo.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The status object.
    #[serde(flatten)]
    pub status: Status,
    /// What the demo adds to it.
    pub demo: Demo,
}

/// What the demo adds to the status object.
#[derive(Clone, Debug, Serialize)]
pub struct Demo {
    /// Sizes of frames.
    pub frames: String,
    /// Cores of the workers.
    pub worker_cores: Vec<usize>,
    /// The core of the devices, generators and checkers.
    pub device_core: Option<usize>,
    /// Packets per second received by all ports since the last report, or since the start in the last one.
    pub packets_per_second: f64,
    /// The generators' and checkers' view.
    pub checked: Checked,
    /// PCIe, modelled.
    pub pcie: Option<LinkLoad>,
    /// Since the last report, or since the start in the last one.
    #[serde(skip)]
    pub cycles: Cycles,
}

/// Where cycles went in an interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cycles {
    idle_share: Option<f64>,
    useful: Option<f64>,
    stage: Option<f64>,
}

/// The counts of one moment, for the differences.
#[derive(Default)]
struct Moment {
    elapsed: f64,
    packets: u64,
    idle: u64,
    useful: u64,
    stage: Option<u64>,
    /// By device: packets each way, and bus operations and their bytes by cause.
    bus: Vec<(u64, [(u64, u64); Cause::ALL.len()])>,
}

pub struct Show {
    frames: Frames,
    worker_cores: Vec<usize>,
    device_core: Option<usize>,
    link: pcie::Link,
    last: Moment,
}

fn sum(counts: &[Arc<Counts>], f: fn(&Counts) -> u64) -> u64 {
    counts.iter().map(|c| f(c)).sum()
}

impl Checked {
    fn new(counts: &[Arc<Counts>]) -> Self {
        // Arrivals first: a frame between the two loads must not look like one too many.
        let arrived = sum(counts, Counts::arrived);
        let generated = sum(counts, |c| c.generated.load(Ordering::Relaxed));
        let duplicated = sum(counts, |c| c.duplicated.load(Ordering::Relaxed));
        Self {
            generated,
            verified: sum(counts, |c| c.verified.load(Ordering::Relaxed)),
            missing: generated.saturating_sub(arrived - duplicated),
            reordered: sum(counts, |c| c.reordered.load(Ordering::Relaxed)),
            duplicated,
            changed: sum(counts, |c| c.changed.load(Ordering::Relaxed)),
        }
    }
    const fn is_clean(&self) -> bool {
        self.missing == 0 && self.reordered == 0 && self.duplicated == 0 && self.changed == 0
    }
}

impl Show {
    pub fn new(options: &Options, workers: &[usize], device_core: Option<usize>) -> Self {
        Self {
            frames: options.frames,
            worker_cores: workers.to_vec(),
            device_core,
            link: options.link,
            last: Moment::default(),
        }
    }

    /// What happened since the last report.
    pub fn report(&mut self, status: Status, counts: &[Arc<Counts>], devices: &[Device]) -> Report {
        let now = Moment::new(&status, devices);
        let last = core::mem::replace(&mut self.last, now);
        self.since(&last, status, counts)
    }

    /// The whole run, which took `ran`.
    pub fn finish(
        mut self,
        mut status: Status,
        counts: &[Arc<Counts>],
        devices: &[Device],
        ran: Duration,
    ) -> Report {
        status.elapsed_s = ran.as_secs_f64();
        self.last = Moment::new(&status, devices);
        self.since(&Moment::default(), status, counts)
    }

    fn since(&self, last: &Moment, status: Status, counts: &[Arc<Counts>]) -> Report {
        let now = &self.last;
        let packets = (now.packets - last.packets) as f64;
        let (idle, useful) = ((now.idle - last.idle) as f64, (now.useful - last.useful) as f64);
        let seconds = now.elapsed - last.elapsed;
        let stage = now.stage.map(|s| s.saturating_sub(last.stage.unwrap_or(0)) as f64 / packets);
        let some = packets > 0.0;
        let demo = Demo {
            frames: self.frames.to_string(),
            worker_cores: self.worker_cores.clone(),
            device_core: self.device_core,
            packets_per_second: packets / seconds,
            checked: Checked::new(counts),
            pcie: self.load(last, seconds),
            cycles: Cycles {
                idle_share: (idle + useful > 0.0).then(|| idle / (idle + useful)),
                useful: some.then(|| useful / packets),
                stage: stage.filter(|_| some),
            },
        };
        Report { status, demo }
    }

    /// What the interval's bus operations would take of the link.
    fn load(&self, last: &Moment, seconds: f64) -> Option<LinkLoad> {
        let elapsed = Duration::try_from_secs_f64(seconds).ok()?;
        let mut load = LinkLoad {
            link: self.link.to_string(),
            source: Source::Model.name(),
            upstream: 0.0,
            downstream: 0.0,
            ceiling_pps: f64::INFINITY,
        };
        for (i, (packets, now)) in self.last.bus.iter().enumerate() {
            let (packets_before, before) = last.bus.get(i).copied().unwrap_or_default();
            let mut sum = Transactions::new(Source::Model, Parameters::usual(self.link));
            for ((cause, now), before) in CAUSES.iter().zip(now).zip(before) {
                // Addresses of the demo's memory lie below 4 GiB unless there is more of it than that.
                sum.estimate(*cause, AddressWidth::Bits32, now.0 - before.0, now.1 - before.1);
            }
            let u = sum.utilization(self.link, elapsed)?;
            load.upstream = load.upstream.max(u.upstream);
            load.downstream = load.downstream.max(u.downstream);
            let full = sum.ceiling(self.link, packets - packets_before)?;
            load.ceiling_pps = load.ceiling_pps.min(full.packets_per_second);
        }
        Some(load)
    }
}

/// The link's words for the device's causes, in the order of the latter's numbers.
const CAUSES: [pcie::Cause; Cause::ALL.len()] = [
    pcie::Cause::MmioWrite,
    pcie::Cause::MmioRead,
    pcie::Cause::DescRead,
    pcie::Cause::IndexRead,
    pcie::Cause::PayloadRead,
    pcie::Cause::PayloadWrite,
    pcie::Cause::CompletionWrite,
    pcie::Cause::IndexWrite,
    pcie::Cause::Interrupt,
];

/// A device's bus operations and their bytes, by cause, all queues together.
fn operations(device: &Device) -> [(u64, u64); Cause::ALL.len()] {
    let mut sum = [(0, 0); Cause::ALL.len()];
    let tallies = (0..=u8::MAX)
        .map_while(Queue::new)
        .flat_map(|q| [Direction::Rx, Direction::Tx].map(|d| device.tally(d, q)));
    for t in tallies {
        for (s, cause) in sum.iter_mut().zip(Cause::ALL) {
            s.0 += t.ops(cause);
            s.1 += t.bytes(cause);
        }
    }
    sum
}

impl Moment {
    fn new(status: &Status, devices: &[Device]) -> Self {
        Self {
            elapsed: status.elapsed_s,
            packets: status.ports.iter().map(|p| p.rx.packets).sum(),
            idle: status.workers.iter().map(|w| w.cycles.idle).sum(),
            useful: status.workers.iter().map(|w| w.cycles.useful).sum(),
            stage: status.stages.iter().map(|s| s.cycles).sum(),
            bus: status
                .ports
                .iter()
                .zip(devices)
                .map(|(p, d)| ((p.rx.packets + p.tx.packets) / 2, operations(d)))
                .collect(),
        }
    }
}

impl Report {
    /// True if every packet is accounted for and every frame arrived once, unchanged and in order.
    pub fn is_clean(&self) -> bool {
        self.status.conservation.unexplained == Some(0) && self.demo.checked.is_clean()
    }

    /// The line of one second.
    pub fn line(&self) -> String {
        let d = &self.demo;
        let mut s =
            format!("{:5.1} s  {:6.2} M packets/s", self.status.elapsed_s, d.packets_per_second / 1e6);
        if let Some(useful) = d.cycles.useful {
            let _ = write!(s, "   {useful:4.0} cycles/packet");
            if let Some(stage) = d.cycles.stage {
                let _ = write!(s, " (switch {stage:.0}, rings and pools {:.0})", useful - stage);
            }
        }
        if let Some(idle) = d.cycles.idle_share {
            let _ = write!(s, "   idle {:2.0} %", idle * 100.0);
        }
        let _ = write!(s, "   drops {}", self.drops());
        if let Some(l) = &d.pcie {
            let _ =
                write!(s, "   {} up {:.0} % down {:.0} %", l.link, l.upstream * 100.0, l.downstream * 100.0);
        }
        s
    }

    fn drops(&self) -> u64 {
        let missed: u64 = self.status.ports.iter().filter_map(|p| p.device.rx_missed).sum();
        let at_rx: u64 =
            self.status.ports.iter().flat_map(|p| &p.queues).flat_map(|q| q.rx.drops.values()).sum();
        self.status.conservation.dropped + missed + at_rx
    }
}

fn cores_of(d: &Demo) -> String {
    let workers: Vec<_> = d.worker_cores.iter().map(ToString::to_string).collect();
    let device = d.device_core.map_or_else(|| "any".to_owned(), |c| c.to_string());
    format!("switch on core {}, devices and wires on core {device}", workers.join(", "))
}

impl fmt::Display for Report {
    /// The summary.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (s, d, c) = (&self.status, &self.demo, &self.status.conservation);
        writeln!(f, "{:.1} s of {}, {}", s.elapsed_s, d.frames, cores_of(d))?;
        writeln!(f, "{:.2} M packets/s received by both ports", d.packets_per_second / 1e6)?;
        for w in &s.workers {
            if let Some(cpp) = w.cycles_per_packet {
                let text = cycles_text(&cpp, d.cycles.stage);
                let idle = d.cycles.idle_share.unwrap_or(0.0) * 100.0;
                writeln!(f, "worker {}: {text}; idle {idle:.0} % of the time", w.id)?;
            }
        }
        if let Some(l) = &d.pcie {
            writeln!(
                f,
                "PCIe {} (modelled from the DMA that the devices counted): {:.0} % up, {:.0} % down; full at {:.1} M packets/s \
                 a port and way",
                l.link,
                l.upstream * 100.0,
                l.downstream * 100.0,
                l.ceiling_pps / 1e6
            )?;
        }
        for l in &s.lints {
            writeln!(f, "{}: {}", l.lint, l.message)?;
        }
        writeln!(f)?;
        writeln!(f, "{:<8}{:>18}{:>18}{:>12}   drops by reason", "port", "received", "sent", "drops")?;
        for p in &s.ports {
            let total: u64 = p.drops.values().sum::<u64>() + p.device.rx_missed.unwrap_or(0);
            write!(
                f,
                "{:<8}{:>18}{:>18}{:>12}   ",
                p.name,
                Apart(p.rx.packets),
                Apart(p.tx.packets),
                Apart(total)
            )?;
            let missed = p.device.rx_missed.filter(|&n| n > 0).map(|n| ("missed by the device", n));
            let mut all = p.drops.iter().map(|(r, n)| (*r, *n)).chain(missed).peekable();
            if all.peek().is_none() {
                write!(f, "none")?;
            }
            for (reason, n) in all {
                write!(f, "{reason} {} ", Apart(n))?;
            }
            writeln!(f)?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "accounts: received {} + created {} = sent {} + consumed {} + held {} + dropped {}; unexplained {}",
            Apart(c.received),
            Apart(c.created),
            Apart(c.sent),
            Apart(c.consumed),
            Apart(c.held),
            Apart(c.dropped),
            c.unexplained.map_or_else(|| "unknown".to_owned(), |n| Apart(n).to_string()),
        )?;
        let k = &d.checked;
        if k.generated == 0 {
            write!(f, "checker: no frame was sent: run for longer")
        } else if k.is_clean() {
            write!(f, "checker: each of {} frames arrived once, unchanged and in order", Apart(k.generated))
        } else {
            write!(
                f,
                "checker: of {} frames {} arrived once, unchanged and in order; missing {}, reordered {}, duplicated {}, \
                 changed {}",
                Apart(k.generated),
                Apart(k.verified),
                Apart(k.missing),
                Apart(k.reordered),
                Apart(k.duplicated),
                Apart(k.changed),
            )
        }
    }
}

fn cycles_text(c: &rt::CyclesPerPacket, stage: Option<f64>) -> String {
    let mut s = format!("{:.0} cycles/packet (median {:.0}, 99 % below {:.0}", c.mean, c.p50, c.p99);
    if let Some(stage) = stage {
        let _ = write!(s, "; switch {stage:.0}, rings and pools {:.0}", c.mean - stage);
    }
    s.push(')');
    s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_crates_have_the_same_words_for_causes() {
        let (link, device) = (CAUSES.map(pcie::Cause::name), Cause::ALL.map(Cause::name));
        assert_eq!(link, device);
    }
}
