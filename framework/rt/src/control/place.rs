//! The socket's place in the file system: whose it is, and what becomes of it.
//!
//! A lock (flock(2)) on `PATH.lock` says who owns `PATH`. The kernel lets go of it when its owner dies, however it dies, so
//! a socket without a locked lock file is nobody's and may go. Whoever has the lock may remove the lock file; whoever gets
//! a lock looks whether its file is still the one at the path.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use super::ServeError;

/// Longest path (unix(7): `sun_path` has 108 bytes, one of them a zero).
const LONGEST: usize = 107;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 64;
/// How often a lock file may be removed under our hands.
const TRIES: usize = 16;

/// A socket's place. Dropped, it leaves the file system as it was, but for folders that it made.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    lock_path: PathBuf,
    lock: File,
    /// Device and inode of the socket that we made.
    made: Option<(u64, u64)>,
}

impl Place {
    /// Takes the place at `path` and listens there.
    pub fn take(path: &Path) -> Result<(Self, UnixListener), ServeError> {
        let bad = || ServeError::BadPath { path: path.to_owned() };
        let path = std::path::absolute(path).map_err(|_| bad())?;
        if path.as_os_str().len() > LONGEST || path.file_name().is_none() {
            return Err(bad());
        }
        if let Some(dir) = path.parent() {
            // Folders that are there keep their mode.
            let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
            made.map_err(at(dir, "making the socket's folder"))?;
            if fs::metadata(dir).is_ok_and(|m| m.mode() & 0o022 != 0 && m.mode() & 0o1000 == 0) {
                tracing::warn!(
                    "{}: others may write here, and put a socket of theirs in place of ours",
                    dir.display()
                );
            }
        }
        let mut lock_path = path.clone().into_os_string();
        lock_path.push(".lock");
        let lock_path = PathBuf::from(lock_path);
        let lock = lock(&path, &lock_path)?;
        let mut place = Self { path, lock_path, lock, made: None };
        place.sign()?;
        place.clear()?;
        let listener = place.bind()?;
        Ok((place, listener))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes who we are into the lock file.
    fn sign(&mut self) -> Result<(), ServeError> {
        let pid = std::process::id();
        let written = self.lock.set_len(0).and_then(|()| writeln!(self.lock, "{pid}"));
        written.map_err(at(&self.lock_path, "writing the lock file"))
    }

    /// Removes what a dead process left.
    fn clear(&self) -> Result<(), ServeError> {
        let path = &self.path;
        match fs::symlink_metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(at(path, "looking for a socket")(e)),
            Ok(m) if !m.file_type().is_socket() => Err(ServeError::NotASocket { path: path.clone() }),
            // Somebody listens without the lock: another program, or one whose lock file was removed by hand.
            Ok(_) if answers(path) => Err(ServeError::Taken { path: path.clone(), pid: None }),
            Ok(_) => {
                tracing::info!("{}: removing the socket of a process that is gone", path.display());
                fs::remove_file(path).map_err(at(path, "removing an old socket"))
            }
        }
    }

    fn bind(&mut self) -> Result<UnixListener, ServeError> {
        let path = &self.path;
        let made = || -> rustix::io::Result<_> {
            let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
            // The file gets the mode that the socket has when it is bound: at no moment could others open it. A umask, which
            // is the whole process's, is not touched.
            rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR)?;
            bind(&fd, &SocketAddrUnix::new(path)?)?;
            Ok(fd)
        };
        let fd = made().map_err(|e| at(path, "making the socket")(e.into()))?;
        let m = fs::symlink_metadata(path).map_err(at(path, "looking at the socket"))?;
        self.made = Some((m.dev(), m.ino()));
        // Nothing answers before this.
        if m.mode() & 0o177 != 0 {
            return Err(ServeError::NotPrivate { path: path.clone(), mode: m.mode() & 0o777 });
        }
        listen(&fd, BACKLOG).map_err(|e| at(path, "listening")(e.into()))?;
        Ok(UnixListener::from(fd))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.made.is_some() && identity(&self.path) == self.made {
            let _ = fs::remove_file(&self.path);
        }
        if is_at(&self.lock, &self.lock_path) {
            let _ = fs::remove_file(&self.lock_path);
        }
    }
}

/// An error at `path` while doing `what`.
fn at(path: &Path, what: &'static str) -> impl Fn(io::Error) -> ServeError {
    move |source| ServeError::Place { path: path.to_owned(), what, source }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|m| (m.dev(), m.ino()))
}

fn is_at(file: &File, path: &Path) -> bool {
    file.metadata().is_ok_and(|m| identity(path) == Some((m.dev(), m.ino())))
}

/// Opens and locks the lock file of `path`.
fn lock(path: &Path, lock_path: &Path) -> Result<File, ServeError> {
    for _ in 0..TRIES {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
            .open(lock_path)
            .map_err(at(lock_path, "opening the lock file"))?;
        match file.try_lock() {
            Ok(()) if is_at(&file, lock_path) => return Ok(file),
            // Its owner removed it between our two calls.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = (&file).take(16).read_to_string(&mut text);
                return Err(ServeError::Taken { path: path.to_owned(), pid: text.trim().parse().ok() });
            }
            Err(TryLockError::Error(e)) => return Err(at(lock_path, "locking the lock file")(e)),
        }
    }
    Err(ServeError::Taken { path: path.to_owned(), pid: None })
}

/// Whether somebody listens on the socket at `path`. Does not wait: a full queue of connections is an answer, too.
fn answers(path: &Path) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let tried = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .and_then(|fd| connect(&fd, &SocketAddrUnix::new(path)?));
    matches!(tried, Ok(()) | Err(Errno::AGAIN))
}

#[cfg(test)]
mod tests;
