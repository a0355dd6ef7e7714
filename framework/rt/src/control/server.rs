//! The server's thread and its clients.

use std::io;
use std::os::unix::net::UnixListener as StdListener;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::message::{self, Id, MAX_LINE, Message};
use super::place::Place;
use super::seats::{Seat, Seats};
use super::{Code, Command, Refusal, Request, ServeError, SharedHost};

/// What a client may use, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Clients at once.
    pub clients: usize,
    /// How long a client may be silent between two requests.
    pub silence: Duration,
    /// How long a line may take from its first byte to its last.
    pub line: Duration,
    /// How long a client may take to read an answer.
    pub answer: Duration,
}

impl Default for Limits {
    /// 16 clients; five minutes of silence, ten seconds for a line, five for an answer.
    fn default() -> Self {
        let s = Duration::from_secs;
        Self { clients: 16, silence: s(300), line: s(10), answer: s(5) }
    }
}

/// How long clients whose request is being worked on are waited for at the end.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// How long to wait when no connection can be accepted, for want of file descriptors, say.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// A control socket that is served. Dropping it stops it.
#[derive(Debug)]
pub struct Control {
    place: Place,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Makes the socket at `path` and serves it.
    ///
    /// # Errors
    /// Another instance has it, something else is there, or the system does not let us.
    pub fn start(path: &Path, host: SharedHost, limits: Limits) -> Result<Self, ServeError> {
        let (place, listener) = Place::take(path)?;
        listener.set_nonblocking(true).map_err(ServeError::Thread)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // Those that carry out requests; each client has at most one.
            .max_blocking_threads(limits.clients.max(1))
            .thread_name("control")
            .build()
            .map_err(ServeError::Thread)?;
        let (stop, stopped) = watch::channel(false);
        let name = place.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let server = Arc::new(Server { host, limits, seats: Seats::new(limits.clients), stopped, name });
        let thread = Builder::new().name("control".to_owned()).spawn(move || server.run(runtime, listener));
        let thread = Some(thread.map_err(ServeError::Thread)?);
        tracing::info!("control socket {}", place.path().display());
        Ok(Self { place, stop, thread })
    }

    /// Where the socket is.
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Ends it: what is being worked on is answered, within a second. Whoever holds the host's lock meanwhile waits for
    /// that second in vain.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Server {
    host: SharedHost,
    limits: Limits,
    seats: Arc<Seats>,
    stopped: watch::Receiver<bool>,
    name: String,
}

/// What came of waiting for a line.
enum Heard {
    Line,
    End,
    /// The connection is to end, with these words.
    Last(Refusal),
}

impl Server {
    fn run(self: Arc<Self>, runtime: Runtime, listener: StdListener) {
        if let Err(e) = runtime.block_on(self.accept(listener)) {
            tracing::error!("control socket: {e}; it is closed");
        }
        // A change that is still being carried out goes on without us.
        runtime.shutdown_timeout(Duration::from_millis(100));
    }

    async fn accept(self: &Arc<Self>, listener: StdListener) -> io::Result<()> {
        let listener = UnixListener::from_std(listener)?;
        let mut stopped = self.stopped.clone();
        loop {
            let stream = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stopped.wait_for(|s| *s) => break,
            };
            match stream {
                Ok((stream, _)) => drop(tokio::spawn(Arc::clone(self).welcome(stream))),
                Err(e) => {
                    tracing::warn!("control socket: no client can connect: {e}");
                    sleep(TRY_AGAIN).await;
                }
            }
        }
        drop(listener);
        let gone = async {
            while !self.seats.is_empty() {
                sleep(Duration::from_millis(2)).await;
            }
        };
        let _ = timeout(LAST_ANSWERS, gone).await;
        Ok(())
    }

    async fn welcome(self: Arc<Self>, stream: UnixStream) {
        // The mode keeps others out; this holds even if somebody opens the mode.
        let who = stream.peer_cred().map(|c| c.uid());
        let may = who.as_ref().is_ok_and(|&uid| uid == 0 || uid == rustix::process::geteuid().as_raw());
        let (read, mut write) = stream.into_split();
        let refusal = if !may {
            tracing::warn!(?who, "control socket: a client of another user was turned away");
            Refusal::new(Code::DENIED, "only the instance's own user and root may connect")
        } else if let Some(seat) = self.seats.take() {
            return self.serve(BufReader::with_capacity(8 << 10, read), write, &seat).await;
        } else {
            let message = format!("{} clients wait for answers; try again later", self.limits.clients);
            Refusal::new(Code::TOO_MANY_CLIENTS, message)
        };
        self.say(&mut write, &message::answer(&Id::default(), &Err(refusal))).await;
    }

    async fn serve(&self, mut read: impl AsyncBufRead + Unpin, mut write: OwnedWriteHalf, seat: &Seat) {
        let mut stopped = self.stopped.clone();
        let mut line = Vec::new();
        loop {
            let heard = tokio::select! {
                heard = self.listen(&mut read, &mut line) => heard,
                () = seat.told_to_leave() => Heard::Last(Refusal::new(
                    Code::TOO_MANY_CLIENTS,
                    "this connection was silent the longest and made room for another; connect again",
                )),
                _ = stopped.wait_for(|s| *s) => Heard::End,
            };
            match heard {
                Heard::End => return,
                Heard::Line if line.trim_ascii().is_empty() => {}
                Heard::Line => {
                    seat.heard(true);
                    let answer = self.answer(Message::read(&line)).await;
                    seat.heard(false);
                    if !self.say(&mut write, &answer).await {
                        return;
                    }
                }
                Heard::Last(refusal) => {
                    self.say(&mut write, &message::answer(&Id::default(), &Err(refusal))).await;
                    return;
                }
            }
        }
    }

    /// Waits for a line, and leaves it in `line` without its end.
    async fn listen(&self, read: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> Heard {
        line.clear();
        match timeout(self.limits.silence, read.fill_buf()).await {
            Ok(Ok(bytes)) if !bytes.is_empty() => {}
            Ok(_) => return Heard::End,
            Err(_) => {
                let message = format!("nothing was asked for {:?}; connect again", self.limits.silence);
                return Heard::Last(Refusal::new(Code::TOO_SLOW, message));
            }
        }
        // One more for the end of the line, and one to see that it is too long.
        let mut bounded = read.take(MAX_LINE as u64 + 2);
        match timeout(self.limits.line, bounded.read_until(b'\n', line)).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) => return Heard::End,
            Err(_) => {
                let message = format!("a line was begun and not ended within {:?}", self.limits.line);
                return Heard::Last(Refusal::new(Code::TOO_SLOW, message));
            }
        }
        // A last line need not have an end.
        line.pop_if(|b| *b == b'\n');
        if line.len() > MAX_LINE {
            let message = format!("a line has at most {MAX_LINE} bytes");
            return Heard::Last(Refusal::new(Code::LINE_TOO_LONG, message));
        }
        Heard::Line
    }

    async fn answer(&self, message: Message) -> Vec<u8> {
        let Message { id, request } = message;
        let result = match request {
            Ok(Request::Hello) => raw(self.hello()),
            Ok(Request::Status) => {
                let host = Arc::clone(&self.host);
                apart(move || {
                    let observation = host.lock().unwrap_or_else(PoisonError::into_inner).observe();
                    raw(observation.status)
                })
                .await
            }
            Ok(Request::Change(command)) => self.change(command).await,
            Err(refusal) => Err(refusal),
        };
        message::answer(&id, &result)
    }

    async fn change(&self, command: Command) -> Result<Box<RawValue>, Refusal> {
        let name = command.name();
        let host = Arc::clone(&self.host);
        let result = apart(move || {
            let done = host.lock().unwrap_or_else(PoisonError::into_inner).execute(command);
            done.and_then(raw)
        })
        .await;
        match &result {
            Ok(_) => tracing::info!("control socket: {name}: done"),
            Err(e) => tracing::warn!("control socket: {name}: {}: {e}", e.code),
        }
        result
    }

    fn hello(&self) -> serde_json::Value {
        serde_json::json!({
            "protocol": message::VERSION,
            "version": env!("CARGO_PKG_VERSION"),
            "name": self.name,
            "pid": std::process::id(),
            "commands": Request::NAMES,
        })
    }

    /// Writes a line; false if the client does not read it.
    async fn say(&self, write: &mut OwnedWriteHalf, line: &[u8]) -> bool {
        matches!(timeout(self.limits.answer, write.write_all(line)).await, Ok(Ok(())))
    }
}

/// Runs what may take a while on another thread.
async fn apart(
    work: impl FnOnce() -> Result<Box<RawValue>, Refusal> + Send + 'static,
) -> Result<Box<RawValue>, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Refusal::new(Code::FAILED, "the request broke off; see the log")))
}

fn raw(value: impl serde::Serialize) -> Result<Box<RawValue>, Refusal> {
    to_raw_value(&value).map_err(|e| Refusal::new(Code::FAILED, format!("the result is no JSON: {e}")))
}
