//! How the control side speaks to a worker: messages, taken between two breaths and answered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;

use crate::worker::Worker;

/// How long a worker has to answer, and packets under way have to leave.
pub(crate) const DEADLINE: Duration = Duration::from_secs(2);
/// Messages that wait at most.
const ROOM: usize = 64;
/// How often the control side looks again.
pub(crate) const AGAIN: Duration = Duration::from_micros(200);

/// Something for a worker to do between two breaths.
type Command = Box<dyn FnOnce(&mut Worker) + Send>;

/// The control side of a worker's mailbox.
pub(crate) struct Mailbox {
    commands: ArrayQueue<Command>,
    waiting: AtomicBool,
    /// The worker, to wake it.
    thread: OnceLock<Thread>,
}

impl Mailbox {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            commands: ArrayQueue::new(ROOM),
            waiting: AtomicBool::new(false),
            thread: OnceLock::new(),
        })
    }

    /// The calling thread is the one that reads.
    pub fn is_mine(&self) {
        let _ = self.thread.set(std::thread::current());
    }
    /// Whether there is a message. A load of a line that nobody writes costs nothing.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }
    /// All messages, in order.
    pub fn take(&self) -> impl Iterator<Item = Command> {
        self.waiting.swap(false, Ordering::AcqRel);
        std::iter::from_fn(|| self.commands.pop())
    }

    /// Leaves a message; waits while the box is full. False if it still is `until` then.
    fn send(&self, mut command: Command, until: Instant) -> bool {
        while let Err(back) = self.commands.push(command) {
            if Instant::now() >= until {
                return false;
            }
            command = back;
            std::thread::sleep(AGAIN);
        }
        self.waiting.store(true, Ordering::Release);
        self.thread.get().inspect(|t| t.unpark());
        true
    }

    /// Has the worker do `f` between two breaths, whenever that is. False if there was no room for it `until` then.
    pub fn tell(&self, until: Instant, f: impl FnOnce(&mut Worker) + Send + 'static) -> bool {
        self.send(Box::new(f), until)
    }

    /// Has the worker do `f` with `payload` between two breaths, and waits for the answer.
    ///
    /// # Errors
    /// The payload, if the worker has not begun `until` then: it will not.
    pub fn ask<P, R>(
        &self,
        until: Instant,
        payload: P,
        f: impl FnOnce(&mut Worker, P) -> R + Send + 'static,
    ) -> Result<R, Option<P>>
    where
        P: Send + 'static,
        R: Send + 'static,
    {
        let slot = Arc::new(Mutex::new(Some(payload)));
        let take = |slot: &Mutex<Option<P>>| slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (to, from) = channel();
        let theirs = Arc::clone(&slot);
        let command = move |worker: &mut Worker| {
            // Whoever takes the payload decides whether this happens.
            if let Some(payload) = take(&theirs) {
                let _ = to.send(f(worker, payload));
            }
        };
        if !self.send(Box::new(command), until) {
            return Err(take(&slot));
        }
        match from.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(answer) => Ok(answer),
            Err(RecvTimeoutError::Disconnected) => Err(take(&slot)),
            Err(RecvTimeoutError::Timeout) => match take(&slot) {
                Some(payload) => Err(Some(payload)),
                // It has begun, and a message is short.
                None => from.recv().map_err(|_| None),
            },
        }
    }
}
