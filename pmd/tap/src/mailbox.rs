//! How a queue on its worker gets the interface that was made again.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// From the control side to one queue. Looking into an empty one is a load of a line that nobody writes.
#[derive(Default)]
pub struct Mailbox {
    waiting: AtomicBool,
    next: Mutex<Option<Arc<File>>>,
}

impl Mailbox {
    /// Leaves the file to go on with; one that nobody has taken is of no use any more.
    pub fn post(&self, file: Arc<File>) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        self.waiting.store(true, Ordering::Release);
    }
    /// Takes what was left.
    #[inline]
    pub fn take(&self) -> Option<Arc<File>> {
        if self.waiting.load(Ordering::Relaxed) { self.fetch() } else { None }
    }
    #[cold]
    fn fetch(&self) -> Option<Arc<File>> {
        self.waiting.store(false, Ordering::Relaxed);
        self.next.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
