//! The file that is read: once, several times, or for ever; or a pipe.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

use port::PortError;
use rustix::fs::{Advice, OFlags, fadvise};

use crate::claims::{Claim, Claims};
use crate::keys::ReadKeys;
use crate::read::{CaptureReader, Next, ReadError};
use crate::wrong;

/// A file or a pipe. A pipe never keeps its reader waiting.
pub struct Input {
    file: File,
    /// A pipe that nobody has opened for writing yet: its end is not the end.
    waiting: bool,
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.file.read(buffer) {
            Ok(0) if self.waiting => Err(ErrorKind::WouldBlock.into()),
            other => {
                // Bytes, or a writer that has none yet.
                self.waiting &=
                    !other.as_ref().map_or_else(|e| e.kind() == ErrorKind::WouldBlock, |n| *n > 0);
                other
            }
        }
    }
}

/// Frames of a capture, as often as asked.
pub struct Source {
    reader: CaptureReader<Input>,
    /// Passes after this one; `None` for ever.
    left: Option<u64>,
    /// Frames of this pass so far.
    frames: u64,
    /// First and last stamp of this pass, as in the file.
    span: Option<(u64, u64)>,
    /// Added to the stamps: what the passes before took.
    shift: u64,
    _claim: Option<Claim>,
}

impl Source {
    /// Opens the file and reads its header, and what else comes before the first frame. Of a pipe nothing is read yet.
    pub fn open(keys: &ReadKeys, claims: &Claims) -> Result<Self, PortError> {
        let shown = keys.path.display();
        let io = |e: io::Error| wrong("read", format!("{shown} {}", ReadError::from(e)));
        // For a file the flag means nothing; for a pipe it keeps opening and reading from waiting.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(&keys.path);
        let file = file.map_err(io)?;
        let meta = file.metadata().map_err(io)?;
        if meta.is_dir() {
            return Err(wrong("read", format!("{shown} is a folder, not a capture")));
        }
        let claim = claims.claim(&meta, false).map_err(|_| {
            wrong("read", format!("{shown} is written by another port; it would read what it writes"))
        })?;
        let fifo = meta.file_type().is_fifo();
        if !meta.is_file() && keys.passes != Some(1) {
            return Err(wrong("loop", format!("{shown} cannot be read a second time")));
        }
        let _ = fadvise(&file, 0, None, Advice::Sequential); // a wish
        let left = keys.passes.map(|n| n - 1);
        let reader = CaptureReader::new(Input { file, waiting: fifo });
        let mut source = Self { reader, left, frames: 0, span: None, shift: 0, _claim: claim };
        if meta.is_file() {
            source.reader.peek().map_err(|e| wrong("read", format!("{shown} {e}")))?;
        }
        Ok(source)
    }

    /// The next frame; its stamp goes on rising when the file begins again.
    ///
    /// # Errors
    /// As [`CaptureReader::peek`]; there is no other pass then.
    #[inline]
    pub fn peek(&mut self) -> Result<Next<'_>, ReadError> {
        while matches!(self.reader.peek()?, Next::End) && self.rewind()? {}
        let shift = self.shift;
        Ok(match self.reader.peek()? {
            Next::Frame(mut f) => {
                f.time = f.time.map(|t| t.saturating_add(shift));
                Next::Frame(f)
            }
            other => other,
        })
    }

    /// Passes the frame that `peek` showed.
    #[inline]
    pub fn advance(&mut self) {
        if let Ok(Next::Frame(f)) = self.reader.peek() {
            self.frames += 1;
            if let Some(t) = f.time {
                let (first, last) = self.span.unwrap_or((t, t));
                self.span = Some((first, last.max(t)));
            }
        }
        self.reader.advance();
    }

    /// Starts the next pass, if there is one. A pass without frames is the last.
    #[cold]
    fn rewind(&mut self) -> Result<bool, ReadError> {
        if self.left == Some(0) || self.frames == 0 {
            return Ok(false);
        }
        self.left = self.left.map(|n| n - 1);
        // From the last frame to the first of the next pass it is as long as between two frames on average.
        let span = self.span.map_or(0, |(first, last)| last.saturating_sub(first));
        let gap = span / (self.frames - 1).max(1);
        self.shift = self.shift.saturating_add(span).saturating_add(gap);
        (self.frames, self.span) = (0, None);
        self.reader.source().file.rewind()?;
        self.reader.restart();
        Ok(true)
    }
}
