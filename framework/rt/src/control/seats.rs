//! Places for clients: as many as there may be, and who makes way when there are more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

/// All places of a server.
pub(crate) struct Seats {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    next: u64,
    by: BTreeMap<u64, Sitter>,
}

struct Sitter {
    /// When it last asked for something, or came.
    heard: Instant,
    /// Its request is being worked on.
    busy: bool,
    leave: Arc<Notify>,
}

impl Seats {
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: most.max(1), taken: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a newcomer. When all are taken, whoever has been silent the longest is told to leave; `None` if all are
    /// busy.
    pub fn take(self: &Arc<Self>) -> Option<Seat> {
        let mut taken = self.lock();
        if taken.by.len() >= self.most {
            let silent = taken.by.iter().filter(|(_, s)| !s.busy).min_by_key(|(_, s)| s.heard);
            let id = *silent?.0;
            if let Some(s) = taken.by.remove(&id) {
                s.leave.notify_one();
            }
        }
        let id = taken.next;
        taken.next += 1;
        let leave = Arc::new(Notify::new());
        taken.by.insert(id, Sitter { heard: Instant::now(), busy: false, leave: Arc::clone(&leave) });
        Some(Seat { seats: Arc::clone(self), id, leave })
    }

    /// Whether nobody is left.
    pub fn is_empty(&self) -> bool {
        self.lock().by.is_empty()
    }
}

/// A client's place; free when dropped.
pub(crate) struct Seat {
    seats: Arc<Seats>,
    id: u64,
    leave: Arc<Notify>,
}

impl Seat {
    /// A request came; while it is `busy` nobody is put in its place.
    pub fn heard(&self, busy: bool) {
        if let Some(s) = self.seats.lock().by.get_mut(&self.id) {
            (s.heard, s.busy) = (Instant::now(), busy);
        }
    }

    /// Returns when this client has to make way.
    pub async fn told_to_leave(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.lock().by.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(seat: &Seat) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(seat.told_to_leave()).poll(&mut context).is_ready()
    }

    #[test]
    fn whoever_was_silent_the_longest_makes_way() {
        let seats = Seats::new(3);
        let all: Vec<_> = (0..3).map(|_| seats.take().unwrap()).collect();
        all[0].heard(false);
        all[1].heard(true);
        let newcomer = seats.take().unwrap();
        assert_eq!([&all[0], &all[1], &all[2], &newcomer].map(leaves), [false, false, true, false]);
        all[0].heard(true);
        newcomer.heard(true);
        assert!(seats.take().is_none(), "all are busy");
        all[0].heard(false);
        let another = seats.take().unwrap();
        assert!(leaves(&all[0]));
        drop((all, newcomer, another));
        assert!(seats.is_empty());
    }
}
