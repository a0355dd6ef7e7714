//! What a run prints: one table per class of core distance, comparisons under it.

use std::fmt::Write as _;

use serde::Serialize;

use super::stats::{Interval, Summary};
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
    /// The comparisons asked for.
    pub comparisons: Vec<Comparison>,
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

/// What is compared, by the places of two candidates.
#[derive(Clone, Copy, Debug)]
pub enum Compare {
    /// The first's rate over the second's.
    Ratio(usize, usize),
    /// The first's cycles per item less the second's.
    Cost(usize, usize),
}

/// A paired comparison.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// What the figure is: `ratio`, or `cost` in cycles per item.
    pub kind: &'static str,
    /// The first.
    pub of: String,
    /// The second.
    pub to: String,
    /// The figure; `None` without a pair of kept blocks.
    pub value: Option<Interval>,
}

impl Report {
    /// The report of `blocks`, with `compare` under each table. `tsc_hz` turns rates into cycles.
    pub fn new(title: &str, unit: &'static str, blocks: &Blocks, compare: &[Compare], tsc_hz: u64) -> Self {
        // Without a block that counts, no class was seen or not seen: the rows say why.
        let has_classes = !blocks.round_trips_ns.is_empty() && blocks.has_kept();
        let classes: &[Option<Class>] =
            if has_classes { &[Some(Class::Near), Some(Class::Far)] } else { &[None] };
        Self {
            title: title.to_owned(),
            unit,
            sections: classes.iter().map(|&c| Section::new(blocks, c, compare, tsc_hz)).collect(),
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
    fn new(blocks: &Blocks, class: Option<Class>, compare: &[Compare], tsc_hz: u64) -> Self {
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
            return Self { class, rows: Vec::new(), comparisons: Vec::new() };
        }
        let comparisons = compare.iter().map(|&c| Comparison::new(blocks, class, c, tsc_hz as f64)).collect();
        Self { class, rows, comparisons }
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
        for comparison in &self.comparisons {
            comparison.text(out);
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

impl Comparison {
    fn new(blocks: &Blocks, class: Option<Class>, compare: Compare, tsc_hz: f64) -> Self {
        let (kind, a, b) = match compare {
            Compare::Ratio(a, b) => ("ratio", a, b),
            Compare::Cost(a, b) => ("cost", a, b),
        };
        let figure = |(x, y): (f64, f64)| match compare {
            Compare::Ratio(..) => x / y,
            Compare::Cost(..) => tsc_hz / x - tsc_hz / y,
        };
        let values: Vec<f64> = blocks.pairs(a, b, class).into_iter().map(figure).collect();
        let (of, to) = (blocks.names[a].clone(), blocks.names[b].clone());
        Self { kind, of, to, value: Interval::of(&values) }
    }

    fn text(&self, out: &mut String) {
        let Self { kind, of, to, value } = self;
        let (sign, unit) = if *kind == "ratio" { ("/", "") } else { ("-", " cycles") };
        let _ = match value {
            Some(v) => writeln!(
                out,
                "{of} {sign} {to} = {:.3}{unit}, 95 % interval {:.3} .. {:.3}, {} pairs",
                v.median, v.low, v.high, v.pairs
            ),
            None => writeln!(out, "{of} {sign} {to}: no pair of kept blocks"),
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
    fn a_run_in_which_nothing_counts_says_why_and_nothing_of_classes() {
        let lost = Block::Discarded { reason: Discard::LowShare, share: 0.5 };
        let blocks = Blocks {
            names: vec!["ours".into()],
            rounds: vec![vec![lost.clone()], vec![lost]],
            round_trips_ns: vec![55.0],
        };
        let text = Report::new("demo", "packets", &blocks, &[], 2_100_000_000).text();
        assert!(text.contains("ours no block counted, dropped 2+0") && !text.contains("cores"), "{text}");
    }

    #[test]
    fn a_class_that_did_not_occur_is_said() {
        let text = Report::new(
            "ring",
            "items",
            &blocks(Some(Class::Near)),
            &[Compare::Ratio(0, 1), Compare::Cost(0, 1)],
            2_600_000_000,
        )
        .text();
        assert!(text.contains("-- far cores: not seen in this run"), "{text}");
        assert!(text.contains("ours / peer = 2.000"), "{text}");
    }

    #[test]
    fn one_core_reports_have_no_class_and_give_cycles() {
        let report = Report::new(
            "null",
            "packets",
            &blocks(None),
            &[Compare::Ratio(0, 1), Compare::Cost(0, 1)],
            2_100_000_000,
        );
        assert_eq!(report.sections.len(), 1);
        assert_eq!(report.sections[0].rows[0].cycles, Some(10.0));
        assert_eq!(report.sections[0].rows[1].low_share, 1);
        let cost = report.sections[0].comparisons[1].value.unwrap();
        assert_eq!(
            (cost.median, cost.pairs),
            (2.1e9 / 200e6 - 21.0, 1),
            "only the round in which both count"
        );
        assert!(!report.text().contains("cores"), "{}", report.text());
    }
}
