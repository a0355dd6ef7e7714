//! Why a server did not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Start errors of the control socket and of the exporter; each says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Another instance has the socket.
    #[error(
        "{}: {} has this control socket; stop that instance (`ringwright ctl --socket {} shutdown`) or set another \
         telemetry.control",
        path.display(), who(pid), path.display()
    )]
    Taken {
        /// The socket.
        path: PathBuf,
        /// Whose it is, if that is known.
        pid: Option<u32>,
    },
    /// Something other than a socket is in its place.
    #[error("{}: there is something that is no socket; remove it or set another telemetry.control", path.display())]
    NotASocket {
        /// The place.
        path: PathBuf,
    },
    /// A path that no socket can have (unix(7): `sun_path` has 108 bytes).
    #[error("{}: a socket's path has 1 to 107 bytes and ends in a file name; set a shorter telemetry.control", path.display())]
    BadPath {
        /// The path.
        path: PathBuf,
    },
    /// The socket could be used by others.
    #[error("{}: the file system does not keep the socket's mode (wanted 600, got {mode:o}); use another folder", path.display())]
    NotPrivate {
        /// The socket.
        path: PathBuf,
        /// The mode it has.
        mode: u32,
    },
    /// The system did not do what the socket needs.
    #[error("{}: {what}: {source}; check the folder's owner and rights or set another telemetry.control", path.display())]
    Place {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// An address that other machines reach, without leave.
    #[error(
        "{address} may be reached by other machines, and there is no password: use 127.0.0.1 or set telemetry.allow_remote = true"
    )]
    Remote {
        /// The address.
        address: SocketAddr,
    },
    /// Somebody listens there.
    #[error(
        "{address} is in use: another instance or program listens there; set another telemetry.listen, or \"\" for none"
    )]
    InUse {
        /// The address.
        address: SocketAddr,
    },
    /// The system does not let us listen.
    #[error("listening on {address}: {source}; set another telemetry.listen, or \"\" for none")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// No thread, or nothing to wait with.
    #[error("starting a server's thread: {0}; check the limits of processes and open files (`ulimit -a`)")]
    Thread(io::Error),
}

fn who(pid: &Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}
