//! What being looked at costs.

use std::time::{Duration, Instant};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// From ten microseconds to a second.
const BOUNDS: [f64; 11] = [1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 2e-2, 1.0];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Found {
    /// Another request's observation was recent enough.
    Hit,
    /// The host was observed.
    Miss,
    /// The host did not answer in time.
    Failed,
}

impl EncodeLabelSet for Found {
    fn encode(
        &self,
        encoder: &mut prometheus_client::encoding::LabelSetEncoder<'_>,
    ) -> Result<(), std::fmt::Error> {
        let result = match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Failed => "failed",
        };
        [("result", result)].encode(encoder)
    }
}

/// Counts of the exporter itself.
#[derive(Clone, Debug)]
pub(super) struct Cost {
    scrapes: Family<Found, Counter>,
    observe: Histogram,
    render: Histogram,
}

impl Default for Cost {
    fn default() -> Self {
        let new = || Histogram::new(BOUNDS);
        Self { scrapes: Family::default(), observe: new(), render: new() }
    }
}

impl Cost {
    /// A request for what was observed.
    pub fn scraped(&self, found: Found) {
        self.scrapes.get_or_create(&found).inc();
    }
    /// Waiting for the host, and observing it.
    pub fn observed(&self, took: Duration) {
        self.observe.observe(took.as_secs_f64());
    }
    /// Runs `render`, and keeps how long that took.
    pub fn rendering<T>(&self, render: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = render();
        self.render.observe(start.elapsed().as_secs_f64());
        done
    }

    pub fn register(&self, to: &mut Registry) {
        to.register(
            "scrapes",
            "Requests for metrics or status, by whether a recent observation was there",
            self.scrapes.clone(),
        );
        to.register_with_unit(
            "scrape_observe",
            "Time to observe the host, with waiting for its lock",
            Unit::Seconds,
            self.observe.clone(),
        );
        to.register_with_unit(
            "scrape_render",
            "Time to write an observation as text",
            Unit::Seconds,
            self.render.clone(),
        );
    }
}
