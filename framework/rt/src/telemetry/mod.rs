//! Metrics and status over HTTP, for Prometheus and for people.
//!
//! - [`Exporter`] serves `/metrics`, `/api/v1/status`, `/healthz` and a page that says so, on a thread of its own.
//! - What other machines could reach is refused unless that is allowed.
//!
//! Life of a request:
//! 1. A connection takes one of a bounded number of places; when all are taken, the one that has been silent the longest
//!    is closed for it. Clients that send slowly, or do not read, cost their own place and nobody else's.
//! 2. If nobody has observed the host within the last 50 ms, it is observed: that is the only time its lock is held, by a
//!    thread that does nothing else. Workers are not involved; they publish their counts in any case.
//! 3. The answer is written once for all that ask within these 50 ms.
//!
//! What is unknown is absent, never 0. Counters never go backwards while the process lives: what a removed port had counted
//! stays, a device's own counts go on after it was reset.
//!
//! Limits: HTTP/1.1 without TLS or passwords, GET and HEAD only; see [`Limits`].

mod cost;
mod http;
mod metrics;
mod view;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use tokio::sync::watch;

use crate::control::{ServeError, SharedHost};

/// What a client may use, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// How long a request's head may take, and how long a connection may wait for the next one.
    pub head: Duration,
    /// How long a connection may live. After it, a request that is being answered gets a little longer.
    pub life: Duration,
    /// How long the host may take to be observed; a change that is being carried out comes first.
    pub host: Duration,
}

impl Default for Limits {
    /// 64 connections; twenty seconds for a head, a minute for a connection, five seconds for the host.
    fn default() -> Self {
        let s = Duration::from_secs;
        Self { connections: 64, head: s(20), life: s(60), host: s(5) }
    }
}

/// A server of metrics and status. Dropping it stops it.
#[derive(Debug)]
pub struct Exporter {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    /// Listens on `address` (port 0 takes a free one) and serves what `host` says. `allow_remote` lets other machines in, if
    /// the address is one that they can reach, and clients call this one by any name.
    ///
    /// # Errors
    /// [`ServeError::Remote`], [`ServeError::InUse`], or what the system says.
    pub fn start(
        address: SocketAddr,
        allow_remote: bool,
        host: SharedHost,
        limits: Limits,
    ) -> Result<Self, ServeError> {
        if !allow_remote && !address.ip().to_canonical().is_loopback() {
            return Err(ServeError::Remote { address });
        }
        let listener = TcpListener::bind(address).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => ServeError::InUse { address },
            _ => ServeError::Listen { address, source },
        })?;
        let ready = listener.set_nonblocking(true).and_then(|()| listener.local_addr());
        let address = ready.map_err(|source| ServeError::Listen { address, source })?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // The one that observes.
            .max_blocking_threads(1)
            .thread_name("telemetry")
            .build()
            .map_err(ServeError::Thread)?;
        let (stop, stopped) = watch::channel(false);
        let server =
            Arc::new(http::Server::new(host, limits, !address.ip().to_canonical().is_loopback(), stopped));
        let thread = Builder::new().name("telemetry".to_owned()).spawn(move || server.run(runtime, listener));
        let thread = Some(thread.map_err(ServeError::Thread)?);
        tracing::info!("metrics on http://{address}/metrics");
        Ok(Self { address, stop, thread })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it: requests that are being answered have a moment to be.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
