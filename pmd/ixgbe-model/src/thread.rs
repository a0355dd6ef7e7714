//! Engines on a thread of their own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use crate::engine::Engine;
use crate::wire::Wire;

/// Idle rounds before the thread lets others have its core.
const PATIENCE: u32 = if cfg!(miri) { 1 } else { 4096 };

/// Steps `engines` in turn until `stop` is set: several devices on one thread.
pub fn run<W: Wire>(engines: &mut [Engine<W>], stop: &AtomicBool) {
    let mut idle = 0;
    while !stop.load(Ordering::Relaxed) {
        let moved: usize = engines.iter_mut().map(Engine::step).sum();
        idle = if moved > 0 { 0 } else { idle + 1 };
        if idle >= PATIENCE {
            idle = 0;
            std::thread::yield_now();
        } else if idle > 0 {
            core::hint::spin_loop();
        }
    }
}

/// A thread that runs devices. Dropping it stops the thread and the devices with it.
pub struct ModelThread<W> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Engine<W>>>>,
}

/// Runs `engines` on a new thread named `name`; `pin` is called on it first, to bind it to a core.
///
/// # Errors
/// If the system has no thread to give.
pub fn spawn<W: Wire + 'static>(
    name: &str,
    mut engines: Vec<Engine<W>>,
    pin: impl FnOnce() + Send + 'static,
) -> io::Result<ModelThread<W>> {
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&stop);
    let thread = Builder::new().name(name.into()).spawn(move || {
        pin();
        run(&mut engines, &theirs);
        engines
    })?;
    Ok(ModelThread { stop, thread: Some(thread) })
}

impl<W> ModelThread<W> {
    /// Stops the thread and gives the engines back, with their wires.
    ///
    /// # Panics
    /// If a wire panicked on the thread.
    pub fn stop(mut self) -> Vec<Engine<W>> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("there until it is stopped");
        thread.join().expect("a wire of the model panicked")
    }
}

impl<W> Drop for ModelThread<W> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(t) = self.thread.take() {
            // A panic of the thread has been reported by itself.
            let _ = t.join();
        }
    }
}
