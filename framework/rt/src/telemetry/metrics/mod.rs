//! From an observation to metrics. `docs/metrics.md` has the list.

mod ports;
mod sheet;
mod whole;
mod workers;

use std::collections::HashMap;
use std::sync::Arc;

use hyper::body::Bytes;
use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::registry::Registry;

use super::cost::Cost;
use crate::control::Observation;
pub(super) use sheet::Sheet;
use sheet::{Labels, Title};

/// What every name begins with.
const PREFIX: &str = "ringwright";

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus text format 0.0.4.
    Text,
}

/// Metrics of `observation`. To be called for each in turn: `memory` holds what was shown before.
pub(super) fn sheet(observation: &Observation, memory: &mut Memory) -> Sheet {
    let mut sheet = Sheet::default();
    whole::fill(observation, &mut sheet);
    ports::fill(observation, &mut sheet);
    workers::fill(observation, &mut sheet);
    sheet.adjust(|title, labels, n| memory.shown(title, labels, n));
    sheet
}

/// As text, with the metrics of the exporter itself.
pub(super) fn render(sheet: &Arc<Sheet>, cost: &Cost, format: Format) -> Bytes {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Arc::clone(sheet)));
    cost.register(&mut registry);
    let mut out = String::with_capacity(64 << 10);
    // A string takes everything, so there is no error to handle.
    let _ = match format {
        Format::OpenMetrics => text::encode(&mut out, &registry),
        Format::Text => prometheus_text::encode(&mut out, &registry),
    };
    out.into()
}

/// What was shown before, of those counters that would go backwards by themselves.
#[derive(Debug, Default)]
pub(super) struct Memory(HashMap<(&'static str, &'static str, Labels), Past>);

#[derive(Clone, Copy, Debug, Default)]
struct Past {
    /// The count when it was last seen.
    last: u64,
    /// What went before it.
    before: u64,
}

impl Memory {
    /// A device and a ring between workers count from 0 when their port comes back; an estimate may become smaller. Neither
    /// is shown: those counts go on, an estimate waits.
    fn shown(&mut self, title: &Title, labels: &Labels, now: u64) -> u64 {
        let device = [ports::DEVICE, ports::DEVICE_GOOD, ports::DEVICE_MISSED, ports::DEVICE_BAD];
        let estimate = (title.name, title.unit) == (workers::STAGE, "cycles");
        let ring = labels.iter().any(|l| l.0 == "from");
        if !estimate && !ring && !device.contains(&title.name) {
            return now;
        }
        let past = self.0.entry((title.name, title.unit, labels.clone())).or_default();
        if estimate {
            past.last = past.last.max(now);
            return past.last;
        }
        if now < past.last {
            past.before += past.last;
        }
        past.last = now;
        past.before + now
    }
}

#[cfg(test)]
mod tests;
