//! Loom's atomics, and orderings that a model check can weaken.
#![cfg(loom)]

pub(crate) use ::loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::Edge;

/// As without loom: one step of a wait for another thread.
pub(crate) fn wait(_steps: &mut u32) {
    ::loom::thread::yield_now();
}

std::thread_local! {
    static WEAKENED: core::cell::Cell<Option<Edge>> = const { core::cell::Cell::new(None) };
}

/// The ordering of `edge`, which is `is` unless a model check has weakened that edge.
pub(crate) fn edge(edge: Edge, is: Ordering) -> Ordering {
    if WEAKENED.get() == Some(edge) { Ordering::Relaxed } else { is }
}

/// Makes `edge` Relaxed in every ring that this thread checks from now on. For model checks that must fail.
pub fn weaken(edge: Edge) {
    WEAKENED.set(Some(edge));
}
