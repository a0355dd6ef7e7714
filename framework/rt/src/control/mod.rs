//! The control socket: a running instance is asked and changed over a unix socket, one JSON object a line.
//!
//! - [`Host`] is what is behind it: something that can be observed, and that carries out a [`Command`] or gives a
//!   [`Refusal`].
//! - [`Control`] is the server: a thread of its own.
//! - [`Client`] is the other end; `ringwright ctl` is made of it.
//! - [`message`] is the format, byte for byte; `docs/control.md` describes it for others.
//!
//! Life of a server:
//! 1. [`Control::start`] takes a lock file beside the socket. Whoever has that lock owns the socket's name: a socket that
//!    a dead process left is removed. The socket is made with mode 0600.
//! 2. Clients of the same user, or root, connect; each sends requests and gets an answer to each, in order.
//! 3. Changes are carried out one at a time, in the order in which they come, by a thread that may wait for workers. The
//!    thread that serves the clients never waits for it.
//! 4. [`Control::stop`] (or dropping it) answers what was asked, ends the connections, and removes the socket if it is
//!    still the one it made.
//!
//! Limits: see [`Limits`]; when all places are taken, the client that has been silent the longest makes way. A change
//! goes on when the client that asked for it goes away.

mod client;
mod command;
mod error;
pub mod message;
mod place;
pub(crate) mod seats;
mod server;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::Value;

pub use client::{Client, ClientError};
pub use command::{Code, Command, QueueName, Refusal, Request};
pub use error::ServeError;
pub use server::{Control, Limits};

use crate::Status;

/// Everything that a runtime said about itself at one moment. All views (command line, API, metrics) are of this.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// The status object.
    pub status: Status,
    /// The counts that `status` was made from; histograms are only here.
    pub meters: meter::Snapshot,
}

/// What is behind the control socket and the exporter: a running instance.
///
/// Both calls are made with the host's mutex held, by threads that are no workers, and never at the same time.
pub trait Host: Send {
    /// What has been counted, all of one moment. Costs the workers nothing, and takes microseconds to a few milliseconds:
    /// each scrape makes this call.
    fn observe(&mut self) -> Observation;

    /// Carries out a change, and returns once it is in force. It may wait for workers, up to a few seconds; meanwhile
    /// other clients' changes and observations wait. The result is a JSON object, as `docs/control.md` has it.
    ///
    /// # Errors
    /// Why not, and what to do; then nothing has changed.
    fn execute(&mut self, command: Command) -> Result<Value, Refusal>;
}

/// A host that several servers share.
pub type SharedHost = Arc<Mutex<dyn Host>>;

/// The folder of sockets whose place nobody chose: `/run/ringwright` for root, else `$XDG_RUNTIME_DIR/ringwright`; `None` if
/// there is no such variable.
pub fn default_folder() -> Option<PathBuf> {
    let base = if rustix::process::geteuid().is_root() {
        PathBuf::from("/run")
    } else {
        PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty())?)
    };
    Some(base.join("ringwright"))
}
