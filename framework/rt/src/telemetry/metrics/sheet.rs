//! Metric families with their samples, as one scrape shows them.

use std::collections::BTreeMap;
use std::fmt;

use meter::Histogram;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// Names and values. Series of one family have different ones.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// Labels with these values, all of them known.
macro_rules! labels {
    ($($name:ident: $value:expr),* $(,)?) => { vec![$((stringify!($name), $value.to_string())),*] };
}
pub(crate) use labels;

/// What a family is called: `NAME_UNIT`, and `_total` for counters comes by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Title {
    /// Without its unit.
    pub name: &'static str,
    /// The last part of the name; empty for none.
    pub unit: &'static str,
    /// One sentence.
    pub help: &'static str,
}

impl Title {
    /// Without a unit.
    pub const fn plain(name: &'static str, help: &'static str) -> Self {
        Self { name, unit: "", help }
    }
    /// With one.
    pub const fn of(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self { name, unit, help }
    }
}

/// A gauge's value, as exact as it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Whole(u64),
    Real(f64),
}

/// A histogram's series.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Buckets {
    /// Upper bound (the last is infinite) and events in this bucket alone.
    pub buckets: Vec<(f64, u64)>,
    /// Sum of all values.
    pub sum: f64,
}

#[derive(Debug)]
enum Samples {
    Counter(BTreeMap<Labels, u64>),
    Gauge(BTreeMap<Labels, Number>),
    Histogram(BTreeMap<Labels, Buckets>),
}

/// All families, in the order in which they were first named.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    families: Vec<(Title, Samples)>,
}

impl Sheet {
    fn family(&mut self, title: Title, new: fn() -> Samples) -> &mut Samples {
        let same = |(t, _): &(Title, Samples)| (t.name, t.unit) == (title.name, title.unit);
        let at = self.families.iter().position(same).unwrap_or_else(|| {
            self.families.push((title, new()));
            self.families.len() - 1
        });
        &mut self.families[at].1
    }

    /// Adds `n` to a counter. Two counts of one name, as those of a port that came back, are one series.
    pub fn count(&mut self, title: Title, labels: Labels, n: u64) {
        if let Samples::Counter(all) = self.family(title, || Samples::Counter(BTreeMap::new())) {
            *all.entry(labels).or_default() += n;
        }
    }

    /// Sets a gauge.
    pub fn gauge(&mut self, title: Title, labels: Labels, value: Number) {
        if let Samples::Gauge(all) = self.family(title, || Samples::Gauge(BTreeMap::new())) {
            all.insert(labels, value);
        }
    }

    /// Adds events to a histogram. All series of a family have the same bounds.
    pub fn histogram(&mut self, title: Title, labels: Labels, add: Buckets) {
        if let Samples::Histogram(all) = self.family(title, || Samples::Histogram(BTreeMap::new())) {
            let sum = all.entry(labels).or_default();
            if sum.buckets.is_empty() {
                *sum = add;
                return;
            }
            sum.buckets.iter_mut().zip(&add.buckets).for_each(|(a, b)| a.1 += b.1);
            sum.sum += add.sum;
        }
    }

    /// Looks at every counter: `now` gets its name, unit and labels, and says what is shown.
    pub fn adjust(&mut self, mut now: impl FnMut(&Title, &Labels, u64) -> u64) {
        for (title, samples) in &mut self.families {
            if let Samples::Counter(all) = samples {
                all.iter_mut().for_each(|(labels, n)| *n = now(title, labels, *n));
            }
        }
    }
}

/// The events of `h` under bounds in other units: `bounds` are ascending, `scale` is the unit of one step of `h`.
///
/// A bucket of `h` is counted whole where its middle is, so that an event may be off by an eighth of its value. With
/// `sum: None` the sum is made of these middles.
pub(crate) fn rebucket(h: &Histogram, bounds: &[f64], scale: f64, sum: Option<f64>) -> Buckets {
    let mut buckets: Vec<_> = bounds.iter().copied().chain([f64::INFINITY]).map(|b| (b, 0)).collect();
    let mut estimate = 0.0;
    for (b, &n) in h.counts().iter().enumerate().filter(|(_, n)| **n > 0) {
        let middle = (Histogram::lower(b) as f64 + Histogram::lower(b + 1) as f64 - 1.0) / 2.0 * scale;
        let at = bounds.partition_point(|bound| *bound < middle);
        buckets[at].1 += n;
        estimate += middle * n as f64;
    }
    Buckets { buckets, sum: sum.unwrap_or(estimate) }
}

/// The buckets of `h` as they are, four to the octave.
pub(crate) fn exact(h: &Histogram, sum: f64) -> Buckets {
    let last = Histogram::BUCKETS - 1;
    let bound = |b| if b == last { f64::INFINITY } else { (Histogram::lower(b + 1) - 1) as f64 };
    Buckets { buckets: h.counts().iter().enumerate().map(|(b, &n)| (bound(b), n)).collect(), sum }
}

fn each<V>(
    mut family: MetricEncoder<'_>,
    all: &BTreeMap<Labels, V>,
    mut encode: impl FnMut(MetricEncoder<'_>, &V) -> fmt::Result,
) -> fmt::Result {
    all.iter().try_for_each(|(labels, v)| encode(family.encode_family(labels)?, v))
}

impl Collector for Sheet {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
        for (title, samples) in &self.families {
            let unit = (!title.unit.is_empty()).then(|| Unit::Other(title.unit.to_owned()));
            let kind = match samples {
                Samples::Counter(_) => MetricType::Counter,
                Samples::Gauge(_) => MetricType::Gauge,
                Samples::Histogram(_) => MetricType::Histogram,
            };
            let family = to.encode_descriptor(title.name, title.help, unit.as_ref(), kind)?;
            match samples {
                Samples::Counter(all) => {
                    each(family, all, |mut m, n| m.encode_counter::<NoLabelSet, _, u64>(n, None))?;
                }
                Samples::Gauge(all) => each(family, all, |mut m, v| match v {
                    Number::Whole(n) => m.encode_gauge(n),
                    Number::Real(x) => m.encode_gauge(x),
                })?,
                Samples::Histogram(all) => each(family, all, |mut m, h| {
                    let count = h.buckets.iter().map(|b| b.1).sum();
                    m.encode_histogram::<NoLabelSet>(h.sum, count, &h.buckets, None)
                })?,
            }
        }
        Ok(())
    }
}
