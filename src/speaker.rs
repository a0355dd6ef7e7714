//! Lines on stderr, from a thread of their own: a reader that does not read holds nobody else up.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::log::{self, Format};

/// Lines that may wait to be written; what comes when there are more is not written at all.
const WAITING: usize = 64;
/// How long the last lines are given at the end.
const PATIENCE: Duration = Duration::from_millis(500);

enum Said {
    Line(Vec<u8>),
    End,
}

/// Owns the thread.
pub struct Speaker {
    lines: SyncSender<Said>,
    done: Receiver<()>,
    format: Format,
}

impl Speaker {
    /// Starts it; lines look like `format`. Without a thread nothing is said.
    pub fn new(format: Format) -> Self {
        let (lines, waiting) = sync_channel(WAITING);
        let (end, done) = sync_channel(1);
        let _ = thread::Builder::new().name("stderr".to_owned()).spawn(move || {
            while let Ok(Said::Line(line)) = waiting.recv() {
                // If nobody can be told, the work goes on all the same: unlike `eprintln!` this does not panic.
                let _ = io::stderr().write_all(&line);
            }
            let _ = end.send(());
        });
        Self { lines, done, format }
    }

    /// What others speak with.
    pub fn voice(&self) -> Voice {
        Voice { lines: self.lines.clone(), format: self.format }
    }

    /// Waits until what was said is written, but not for long.
    pub fn finish(self) {
        if self.lines.try_send(Said::End).is_ok() {
            let _ = self.done.recv_timeout(PATIENCE);
        }
    }
}

/// Says lines.
#[derive(Clone)]
pub struct Voice {
    lines: SyncSender<Said>,
    format: Format,
}

impl Voice {
    /// One line.
    pub fn say(&self, line: impl Display) {
        let line = match self.format {
            Format::Text => format!("{line}\n"),
            Format::Json => log::object(&line),
        };
        let _ = self.lines.try_send(Said::Line(line.into_bytes()));
    }
}

/// As the log writes: each call is a whole line.
impl Write for Voice {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = self.lines.try_send(Said::Line(line.to_vec()));
        Ok(line.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
