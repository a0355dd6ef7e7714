//! The file that is written, or the pipe.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use port::PortError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use crate::claims::{Claim, Claims};
use crate::wrong;

/// How long a pipe is waited for before whoever waits looks up.
const LOOK_UP: Duration = Duration::from_millis(20);

/// Where records go.
pub enum Output {
    /// A file: it ends with a whole record.
    File {
        file: Arc<File>,
        /// Its length, up to the last whole record.
        len: u64,
        _claim: Option<Claim>,
    },
    /// A pipe or a device: what is written is written.
    Stream(File),
    /// A pipe that nobody reads yet.
    Pipe(PathBuf),
}

/// How much was written before something went wrong.
pub struct Failed {
    /// Bytes.
    pub written: usize,
    pub error: io::Error,
}

impl Output {
    /// Opens the file; what was in it is gone. Of a pipe only the path is looked at, so that nobody waits.
    pub fn open(path: &Path, claims: &Claims) -> Result<Self, PortError> {
        let shown = path.display();
        let io = |e: io::Error| wrong("write", format!("{shown} cannot be written: {}", said(&e)));
        if std::fs::metadata(path).is_ok_and(|m| m.file_type().is_fifo()) {
            return Ok(Self::Pipe(path.into()));
        }
        // Not emptied before it is known to be nobody else's.
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(io)?;
        let meta = file.metadata().map_err(io)?;
        if !meta.is_file() {
            return Ok(Self::Stream(file));
        }
        let taken = |who: &str| wrong("write", format!("{shown} is in use by {who}; write another file"));
        let claim = claims.claim(&meta, true).map_err(|_| taken("another port"))?;
        if matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)) {
            return Err(taken("another process that writes a capture"));
        }
        file.set_len(0).map_err(io)?;
        Ok(Self::File { file: Arc::new(file), len: 0, _claim: claim })
    }

    /// The file itself, unless it is a pipe or a device.
    pub fn file(&self) -> Option<Arc<File>> {
        match self {
            Self::File { file, .. } => Some(Arc::clone(file)),
            _ => None,
        }
    }

    /// Opens a pipe if somebody reads it now.
    pub fn try_open(&mut self) -> io::Result<bool> {
        let Self::Pipe(path) = self else { return Ok(true) };
        match OpenOptions::new().write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path) {
            Ok(file) => {
                *self = Self::Stream(file);
                Ok(true)
            }
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Writes all of `bytes`, which are whole records up to each of `ends`. When something goes wrong, what a file has of
    /// the record that it was in goes again. Gives up waiting for a pipe once `give_up` says so.
    pub fn write(&mut self, bytes: &[u8], ends: &[usize], give_up: impl Fn() -> bool) -> Result<(), Failed> {
        match self {
            Self::File { file, len, .. } => {
                let done = write_all(&mut &**file, bytes, || Err(ErrorKind::WouldBlock.into()));
                let written = done.as_ref().map_or_else(|f| f.written, |()| bytes.len());
                let whole = whole(written, ends);
                *len += whole as u64;
                if whole < written {
                    // If this fails as well, a reader finds the last record cut.
                    let _ = file.set_len(*len);
                }
                done
            }
            Self::Stream(file) => {
                let waits = file.try_clone();
                write_all(file, bytes, || {
                    if give_up() {
                        return Err(ErrorKind::TimedOut.into());
                    }
                    let waits = waits.as_ref().map_err(|e| io::Error::from(e.kind()))?;
                    let time = Timespec::try_from(LOOK_UP).ok();
                    poll(&mut [PollFd::new(waits, PollFlags::OUT)], time.as_ref())?;
                    Ok(())
                })
            }
            Self::Pipe(_) => Err(Failed { written: 0, error: ErrorKind::NotConnected.into() }),
        }
    }
}

/// Bytes of the records that end within the first `written`.
pub fn whole(written: usize, ends: &[usize]) -> usize {
    ends.iter().copied().take_while(|end| *end <= written).last().unwrap_or(0)
}

fn write_all(to: &mut impl Write, bytes: &[u8], wait: impl Fn() -> io::Result<()>) -> Result<(), Failed> {
    let mut written = 0;
    while written < bytes.len() {
        let error = match to.write(&bytes[written..]) {
            Ok(0) => ErrorKind::WriteZero.into(),
            Ok(n) => {
                written += n;
                continue;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == ErrorKind::WouldBlock => match wait() {
                Ok(()) => continue,
                Err(e) => e,
            },
            Err(e) => e,
        };
        return Err(Failed { written, error });
    }
    Ok(())
}

/// Whether a file has no name any more.
pub fn is_deleted(meta: &Metadata) -> bool {
    meta.nlink() == 0
}

/// An error of the system without its number.
pub fn said(e: &io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// What to do about an error of the system.
pub fn advice(e: &io::Error) -> &'static str {
    match e.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room, or write to another disk",
        ErrorKind::FileTooLarge => {
            "raise the limit on the size of files (ulimit -f), or write to another file system"
        }
        ErrorKind::BrokenPipe => "whoever read the pipe has gone",
        ErrorKind::TimedOut => "whoever reads the pipe takes nothing",
        _ => "see to the disk, or write to another",
    }
}
