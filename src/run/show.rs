//! What a run says: a line a second, and a summary.

use core::fmt;

use rt::Status;

use crate::units::{Apart, rate};

/// What happened since the last second.
#[derive(Default)]
pub struct Progress {
    last: Option<Status>,
    now: Option<Status>,
}

impl Progress {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// A second later.
    pub fn update(&mut self, status: Status) {
        self.last = self.now.replace(status);
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(now) = &self.now else { return Ok(()) };
        let since = self.last.as_ref().map_or(0.0, |l| l.elapsed_s);
        let seconds = (now.elapsed_s - since).max(1e-3);
        write!(f, "{:6.1} s", now.elapsed_s)?;
        for p in &now.ports {
            let was = self.last.iter().flat_map(|l| &l.ports).find(|o| o.name == p.name);
            let per = |n: u64, was: Option<u64>| rate(n.saturating_sub(was.unwrap_or(0)) as f64 / seconds);
            let rx = per(p.rx.packets, was.map(|w| w.rx.packets));
            let tx = per(p.tx.packets, was.map(|w| w.tx.packets));
            write!(f, "   {} rx {rx} tx {tx}{}", p.name, if p.link.up { "" } else { " DOWN" })?;
        }
        Ok(())
    }
}

/// How a run ended, for people.
pub struct Summary<'s>(pub &'s Status);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.0;
        writeln!(
            f,
            "{:<12} {:>14} {:>14} {:>14} {:>14}  drops",
            "port", "rx packets", "rx bytes", "tx packets", "tx bytes"
        )?;
        for p in &s.ports {
            let missed = p.device.rx_missed.filter(|n| *n > 0).map(|n| ("missed by the device", n));
            let drops = p.drops.iter().map(|(r, n)| (*r, *n)).chain(missed);
            let numbers = [p.rx.packets, p.rx.bytes, p.tx.packets, p.tx.bytes].map(Apart);
            let [a, b, c, d] = numbers;
            writeln!(f, "{:<12} {a:>14} {b:>14} {c:>14} {d:>14}  {}", p.name, list(drops))?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "{:<12} {:<12} {:>14} {:>14} {:>14}  drops",
            "stage", "kind", "packets", "created", "cycles/packet"
        )?;
        for g in &s.stages {
            let cycles =
                g.cycles.map_or_else(String::new, |c| format!("{:.1}", c as f64 / g.packets.max(1) as f64));
            let drops = list(g.drops.iter().map(|(r, n)| (*r, *n)));
            writeln!(
                f,
                "{:<12} {:<12} {:>14} {:>14} {cycles:>14}  {drops}",
                g.name,
                g.kind,
                Apart(g.packets),
                Apart(g.created)
            )?;
        }
        writeln!(f)?;
        for w in &s.workers {
            let all = (w.cycles.idle + w.cycles.useful).max(1);
            let mean = w
                .cycles_per_packet
                .map_or_else(|| "no packet".to_owned(), |c| format!("{:.0} cycles a packet", c.mean));
            let core = w.core.map_or_else(|| "any core".to_owned(), |c| format!("core {c}"));
            writeln!(
                f,
                "worker {} ({}, {core}): {} packets, {mean}, {:.1} % idle",
                w.id,
                w.role,
                Apart(w.packets),
                w.cycles.idle as f64 / all as f64 * 100.0
            )?;
        }
        let c = &s.conservation;
        writeln!(
            f,
            "{} received + {} created = {} sent + {} consumed + {} held + {} dropped; unexplained: {}",
            Apart(c.received),
            Apart(c.created),
            Apart(c.sent),
            Apart(c.consumed),
            Apart(c.held),
            Apart(c.dropped),
            c.unexplained.map_or_else(|| "unknown".to_owned(), |n| Apart(n).to_string())
        )
    }
}

fn list<'r>(drops: impl Iterator<Item = (&'r str, u64)>) -> String {
    let all: Vec<_> = drops.map(|(reason, n)| format!("{reason} {}", Apart(n))).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}
