//! What requests see: one observation, shared by all that come within a moment.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::cost::{Cost, Found};
use super::metrics::{self, Format, Memory, Sheet};
use crate::Status;
use crate::control::SharedHost;

/// How long an observation is as good as a new one.
const FRESH: Duration = Duration::from_millis(50);

/// An observation, and the texts made of it so far.
pub(super) struct View {
    at: Instant,
    status: Status,
    sheet: Arc<Sheet>,
    cost: Cost,
    openmetrics: OnceLock<Bytes>,
    text: OnceLock<Bytes>,
    json: OnceLock<Bytes>,
}

impl View {
    /// As metrics.
    pub fn metrics(&self, format: Format) -> Bytes {
        let made = match format {
            Format::OpenMetrics => &self.openmetrics,
            Format::Text => &self.text,
        };
        let make = || self.cost.rendering(|| metrics::render(&self.sheet, &self.cost, format));
        made.get_or_init(make).clone()
    }

    /// As a JSON object.
    pub fn status(&self) -> Bytes {
        let make = || {
            // A status has nothing that JSON cannot say.
            let mut text = serde_json::to_vec(&self.status).unwrap_or_default();
            text.push(b'\n');
            text.into()
        };
        self.json.get_or_init(|| self.cost.rendering(make)).clone()
    }
}

/// Where requests get their view.
pub(super) struct Window {
    host: SharedHost,
    latest: watch::Sender<Option<Arc<View>>>,
    wanted: Notify,
    memory: Arc<Mutex<Memory>>,
    cost: Cost,
    patience: Duration,
}

impl Window {
    /// Onto `host`, which has `patience` to answer.
    pub fn new(host: SharedHost, patience: Duration) -> Self {
        let latest = watch::Sender::new(None);
        let (memory, cost) = (Arc::default(), Cost::default());
        Self { host, latest, wanted: Notify::new(), memory, cost, patience }
    }

    /// A view that is at most [`FRESH`] old, or being made while this waits; `None` if the host does not answer in time.
    pub async fn view(&self) -> Option<Arc<View>> {
        if let Some(view) = self.latest.borrow().clone().filter(|v| v.at.elapsed() < FRESH) {
            self.cost.scraped(Found::Hit);
            return Some(view);
        }
        let mut latest = self.latest.subscribe();
        self.wanted.notify_one();
        let changed = timeout(self.patience, latest.changed()).await;
        let view = changed.ok().and_then(|_| latest.borrow().clone());
        self.cost.scraped(if view.is_some() { Found::Miss } else { Found::Failed });
        view
    }

    /// Observes whenever somebody asked; one observation at a time, however many ask.
    pub async fn keep(&self) {
        loop {
            self.wanted.notified().await;
            let (host, cost) = (Arc::clone(&self.host), self.cost.clone());
            let memory = Arc::clone(&self.memory);
            let looked = tokio::task::spawn_blocking(move || look(&host, &memory, cost)).await;
            match looked {
                Ok(view) => drop(self.latest.send_replace(Some(Arc::new(view)))),
                Err(_) => tracing::error!("metrics: the observation broke off"),
            }
        }
    }
}

/// Observes `host`, with its lock held no longer than that takes.
fn look(host: &SharedHost, memory: &Mutex<Memory>, cost: Cost) -> View {
    let start = Instant::now();
    let o = host.lock().unwrap_or_else(PoisonError::into_inner).observe();
    let at = Instant::now();
    cost.observed(at - start);
    let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
    let sheet = Arc::new(cost.rendering(|| metrics::sheet(&o, &mut memory)));
    let (openmetrics, text, json) = Default::default();
    View { at, status: o.status, sheet, cost, openmetrics, text, json }
}
