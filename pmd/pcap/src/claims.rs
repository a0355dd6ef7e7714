//! Which files the ports of one driver read and write.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};

/// A file, whatever its path (`st_dev`, `st_ino`).
type Id = (u64, u64);

#[derive(Default)]
struct Use {
    readers: Vec<Id>,
    writers: Vec<Id>,
}

/// All files in use.
#[derive(Clone, Default)]
pub struct Claims(Arc<Mutex<Use>>);

/// A file that is in use as long as this is held.
pub struct Claim {
    id: Id,
    writes: bool,
    all: Claims,
}

/// The file is in use in a way that does not go with this one.
pub struct InUse;

impl Claims {
    /// Claims a file to be read, by as many as like; or to be written, by one that nobody reads. What is no file, such as
    /// a pipe or `/dev/null`, needs no claim.
    pub fn claim(&self, meta: &Metadata, writes: bool) -> Result<Option<Claim>, InUse> {
        if !meta.is_file() {
            return Ok(None);
        }
        let id = (meta.dev(), meta.ino());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.writers.contains(&id) || writes && all.readers.contains(&id) {
            return Err(InUse);
        }
        let list = if writes { &mut all.writers } else { &mut all.readers };
        list.push(id);
        Ok(Some(Claim { id, writes, all: self.clone() }))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        let list = if self.writes { &mut all.writers } else { &mut all.readers };
        if let Some(i) = list.iter().position(|id| *id == self.id) {
            list.swap_remove(i);
        }
    }
}
