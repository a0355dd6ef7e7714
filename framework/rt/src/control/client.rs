//! The other end of the socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::message::{self, VERSION};
use super::{Refusal, Request};

/// Longest answer that is read: a status has about 1 KiB for each queue.
const LONGEST: u64 = 64 << 20;

/// Why a client has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Nobody is there.
    #[error("{}: {source}; {}", path.display(), advice(source))]
    Connect {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The connection broke, or there was no answer in time.
    #[error("{}: {source}; the instance may have ended, or be busy: ask again", path.display())]
    Broken {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What came is no answer.
    #[error("{}: {problem}; is this the control socket of a Ringwright of this version?", path.display())]
    NoAnswer {
        /// The socket.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The instance said no.
    #[error(transparent)]
    Refused(Refusal),
}

fn advice(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => "no instance runs there",
        io::ErrorKind::PermissionDenied => "only the instance's own user and root may connect",
        _ => "is this a control socket?",
    }
}

/// A connection to an instance. One request at a time.
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    stream: BufReader<UnixStream>,
    next: u64,
}

#[derive(Deserialize)]
struct Answer<'a> {
    version: u64,
    id: Option<u64>,
    ok: bool,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Refusal>,
}

impl Client {
    /// Connects to the socket at `path`; each answer may take up to `patience`.
    ///
    /// # Errors
    /// [`ClientError::Connect`] if nobody is there.
    pub fn connect(path: &Path, patience: Duration) -> Result<Self, ClientError> {
        let connected = UnixStream::connect(path).and_then(|s| {
            s.set_read_timeout(Some(patience))?;
            s.set_write_timeout(Some(patience))?;
            Ok(s)
        });
        let stream = connected.map_err(|source| ClientError::Connect { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), stream: BufReader::new(stream), next: 1 })
    }

    /// Sends a request and waits for its result, a JSON object.
    ///
    /// # Errors
    /// The connection, the answer, or the instance's refusal.
    pub fn request(&mut self, request: &Request) -> Result<Box<RawValue>, ClientError> {
        let id = self.next;
        self.next += 1;
        let path = self.path.clone();
        let broken = |source| ClientError::Broken { path: path.clone(), source };
        // Whoever turned us away has closed the connection, but first said why.
        let sent = self.stream.get_mut().write_all(&message::ask(request, id));
        let mut line = Vec::new();
        let mut bounded = self.stream.by_ref().take(LONGEST);
        match bounded.read_until(b'\n', &mut line) {
            Ok(0) => return Err(broken(sent.err().unwrap_or(io::ErrorKind::UnexpectedEof.into()))),
            Ok(_) => {}
            Err(e) => return Err(broken(e)),
        }
        self.understand(&line, id)
    }

    fn understand(&self, line: &[u8], id: u64) -> Result<Box<RawValue>, ClientError> {
        let no = |problem: String| ClientError::NoAnswer { path: self.path.clone(), problem };
        let answer: Answer<'_> =
            serde_json::from_slice(line).map_err(|e| no(format!("not an answer: {e}")))?;
        match answer {
            Answer { error: Some(refusal), ok: false, .. } => Err(ClientError::Refused(refusal)),
            Answer { version, .. } if version != VERSION => {
                Err(no(format!("an answer of version {version}")))
            }
            Answer { id: Some(got), .. } if got != id => Err(no(format!("an answer to request {got}"))),
            Answer { result: Some(result), ok: true, .. } => Ok(result.to_owned()),
            _ => Err(no("an answer without a result".to_owned())),
        }
    }
}
