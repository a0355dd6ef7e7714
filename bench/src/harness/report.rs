//! What a run prints: one table per class of core distance, ratios under it.

use std::fmt::Write as _;

use serde::Serialize;

use super::stats::{Ratio, Summary};
use super::{Blocks, Discard};
use crate::distance::Class;

/// One benchmark's result.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What was measured.
    pub title: String,
    /// What is counted: `packets`, `items`, `buffers`.
    pub unit: &'static str,
    /// One section per class, or one without a class for one-core benchmarks.
    pub sections: Vec<Section>,
    /// Round trips of the core pair between blocks, in ns.
    pub round_trip_ns: Option<Summary>,
}

/// Results of one class of core distance.
#[derive(Debug, Serialize)]
pub struct Section {
    /// The class; `None` for a one-core benchmark.
    pub class: Option<Class>,
    /// One row per candidate; empty if the class was not seen.
    pub rows: Vec<Row>,
    /// The ratios asked for, where pairs exist.
    pub ratios: Vec<Pair>,
}

/// One candidate's figures.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Items per second over the kept blocks.
    pub rate: Option<Summary>,
    /// TSC cycles per item at the median rate.
    pub cycles: Option<f64>,
    /// Blocks dropped because a polling thread lost its core.
    pub low_share: usize,
    /// Blocks dropped because the core distance changed.
    pub class_changed: usize,
}

/// A paired ratio.
#[derive(Debug, Serialize)]
pub struct Pair {
    /// Numerator.
    pub of: String,
    /// Denominator.
    pub to: String,
    /// The figure; `None` without a pair of kept blocks.
    pub ratio: Option<Ratio>,
}

impl Report {
    /// The report of `blocks`, with `ratios` by candidates' places. `tsc_hz` turns rates into cycles.
    pub fn new(
        title: &str,
        unit: &'static str,
        blocks: &Blocks,
        ratios: &[(usize, usize)],
        tsc_hz: u64,
    ) -> Self {
        let classes: &[Option<Class>] =
            if blocks.round_trips_ns.is_empty() { &[None] } else { &[Some(Class::Near), Some(Class::Far)] };
        Self {
            title: title.to_owned(),
            unit,
            sections: classes.iter().map(|&c| Section::new(blocks, c, ratios, tsc_hz)).collect(),
            round_trip_ns: Summary::of(&blocks.round_trips_ns),
        }
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let mut out = format!("\n{}\n", self.title);
        if let Some(t) = self.round_trip_ns {
            let Summary { median, min, max, .. } = t;
            let _ =
                writeln!(out, "core round trip between blocks: {median:.0} ns (min {min:.0}, max {max:.0})");
        }
        for section in &self.sections {
            section.text(self.unit, &mut out);
        }
        out
    }
}

impl Section {
    fn new(blocks: &Blocks, class: Option<Class>, ratios: &[(usize, usize)], tsc_hz: u64) -> Self {
        let row = |c: usize| {
            let rate = Summary::of(&blocks.rates(c, class));
            Row {
                name: blocks.names[c].clone(),
                rate,
                cycles: rate.map(|r| tsc_hz as f64 / r.median),
                low_share: blocks.discarded(c, Discard::LowShare),
                class_changed: blocks.discarded(c, Discard::ClassChanged),
            }
        };
        let rows: Vec<Row> = (0..blocks.names.len()).map(row).collect();
        if class.is_some() && rows.iter().all(|r| r.rate.is_none()) {
            return Self { class, rows: Vec::new(), ratios: Vec::new() };
        }
        let pair = |&(a, b): &(usize, usize)| Pair {
            of: blocks.names[a].clone(),
            to: blocks.names[b].clone(),
            ratio: Ratio::of(&blocks.ratios(a, b, class)),
        };
        Self { class, rows, ratios: ratios.iter().map(pair).collect() }
    }

    fn text(&self, unit: &str, out: &mut String) {
        if let Some(class) = self.class {
            let seen = if self.rows.is_empty() { ": not seen in this run" } else { "" };
            let _ = writeln!(out, "-- {class} cores{seen}");
        }
        if self.rows.is_empty() {
            return;
        }
        let wide = self.rows.iter().map(|r| r.name.len()).max().unwrap_or(0);
        let _ = writeln!(
            out,
            "{:<wide$} {:>10} {:>23} {:>10} {:>5} {:>9}",
            "",
            format!("M {unit}/s"),
            "quartiles",
            "cycles",
            "kept",
            "dropped"
        );
        for row in &self.rows {
            row.text(wide, out);
        }
        for pair in &self.ratios {
            pair.text(out);
        }
    }
}

impl Row {
    fn text(&self, wide: usize, out: &mut String) {
        let dropped = format!("{}+{}", self.low_share, self.class_changed);
        let Some(r) = self.rate else {
            let _ = writeln!(out, "{:<wide$} no block counted, dropped {dropped} (share + class)", self.name);
            return;
        };
        let _ = writeln!(
            out,
            "{:<wide$} {:>10.2} {:>11.2} .. {:>8.2} {:>10} {:>5} {dropped:>9}",
            self.name,
            r.median / 1e6,
            r.q1 / 1e6,
            r.q3 / 1e6,
            self.cycles.map_or("-".into(), |c| format!("{c:.2}")),
            r.n,
        );
    }
}

impl Pair {
    fn text(&self, out: &mut String) {
        let Self { of, to, ratio } = self;
        let _ = match ratio {
            Some(r) => writeln!(
                out,
                "{of} / {to} = {:.3}, 95 % interval {:.3} .. {:.3}, {} pairs",
                r.median, r.low, r.high, r.pairs
            ),
            None => writeln!(out, "{of} / {to}: no pair of kept blocks"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Block;

    fn blocks(class: Option<Class>) -> Blocks {
        let kept = |rate| Block::Kept { rate, class };
        Blocks {
            names: vec!["ours".into(), "peer".into()],
            rounds: vec![
                vec![kept(200e6), kept(100e6)],
                vec![kept(220e6), Block::Discarded { reason: Discard::LowShare, share: 0.5 }],
            ],
            round_trips_ns: class.map(|_| 55.0).into_iter().collect(),
        }
    }

    #[test]
    fn a_class_that_did_not_occur_is_said() {
        let text = Report::new("ring", "items", &blocks(Some(Class::Near)), &[(0, 1)], 2_600_000_000).text();
        assert!(text.contains("-- far cores: not seen in this run"), "{text}");
        assert!(text.contains("ours / peer = 2.000"), "{text}");
    }

    #[test]
    fn one_core_reports_have_no_class_and_give_cycles() {
        let report = Report::new("null", "packets", &blocks(None), &[(0, 1)], 2_100_000_000);
        assert_eq!(report.sections.len(), 1);
        assert_eq!(report.sections[0].rows[0].cycles, Some(10.0));
        assert_eq!(report.sections[0].rows[1].low_share, 1);
        assert!(!report.text().contains("cores"), "{}", report.text());
    }
}
