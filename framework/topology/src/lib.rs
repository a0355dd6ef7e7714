//! What the machine has: cores, memory nodes, pages; and placing threads on it.
//!
//! - [`Node`] is a memory node, [`cores`], [`siblings`] and [`node_of_core`] say what lies where.
//! - [`PageSize`] and [`Pages`] are the pages that memory can lie on, with the kernel's counts of them.
//! - [`pin`] binds a thread to a core.
//!
//! Life of a placement:
//! 1. The control side asks what there is; the answers are the kernel's (sysfs, procfs), of this moment.
//! 2. It decides, and what it decides travels as a core's number, a [`Node`], a [`PageSize`].
//! 3. A thread binds itself as the first thing it does.
//!
//! Limits: control plane only, each call reads files; nothing here owns memory or knows a device.
#![forbid(unsafe_code)]

mod pages;

use core::fmt;
use std::fs;

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

pub use pages::{Bytes, PageSize, Pages};

/// A core that cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("binding a thread to core {core} (this process may use {there:?}): {source}")]
pub struct PinError {
    /// The core.
    pub core: usize,
    /// Cores that this process may use.
    pub there: Vec<usize>,
    /// The kernel's answer.
    pub source: std::io::Error,
}

/// A memory node. There is no default: whoever does not know passes `None`, which stays "unknown".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(u16);

impl Node {
    /// Node number `id` of the kernel. A negative id in sysfs means unknown: do not map it to 0.
    pub const fn new(id: u16) -> Self {
        Self(id)
    }
    /// The kernel's number.
    pub const fn id(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// Parses a kernel list such as `0-3,8`.
fn parse_list(text: &str) -> Vec<usize> {
    let mut all = Vec::new();
    for part in text.trim().split(',').filter(|p| !p.is_empty()) {
        let (a, b) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(a), Ok(b)) = (a.parse::<usize>(), b.parse::<usize>()) {
            all.extend(a..=b);
        }
    }
    all
}

fn read_list(path: &str) -> Option<Vec<usize>> {
    fs::read_to_string(path).ok().map(|t| parse_list(&t))
}

/// The machine's memory nodes; empty if the kernel does not say.
pub fn nodes() -> Vec<Node> {
    let ids = read_list("/sys/devices/system/node/online").unwrap_or_default();
    ids.into_iter().filter_map(|i| u16::try_from(i).ok()).map(Node).collect()
}

/// The node of a core, if the kernel says.
pub fn node_of_core(core: usize) -> Option<Node> {
    nodes().into_iter().find(|n| {
        read_list(&format!("/sys/devices/system/node/node{}/cpulist", n.0)).is_some_and(|c| c.contains(&core))
    })
}

/// The cores the calling thread may use; empty if the kernel does not say.
pub fn cores() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&i| set.is_set(i)).collect()
}

/// The core that the calling thread runs on, for the moment; for good if it is bound.
pub fn current_core() -> Option<usize> {
    Some(rustix::thread::sched_getcpu())
}

/// Hardware threads that share `core`'s execution units, `core` among them.
pub fn siblings(core: usize) -> Vec<usize> {
    read_list(&format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"))
        .unwrap_or_else(|| vec![core])
}

/// Binds the calling thread to `core`.
///
/// # Errors
/// If the process may not use that core; the error lists those it may.
pub fn pin(core: usize) -> Result<(), PinError> {
    let mut set = CpuSet::new();
    if core < CpuSet::MAX_CPU {
        set.set(core);
    }
    // The kernel refuses an empty set (sched_setaffinity(2), EINVAL).
    sched_setaffinity(None, &set).map_err(|e| PinError { core, there: cores(), source: e.into() })
}

/// Keeps the calling thread, and those that it will start, off `busy` cores; false, and nothing changes, if it may use no
/// others or the kernel does not let it.
pub fn keep_off(busy: &[usize]) -> bool {
    let others: Vec<usize> = cores().into_iter().filter(|c| !busy.contains(c)).collect();
    let mut set = CpuSet::new();
    others.iter().for_each(|&c| set.set(c));
    !others.is_empty() && sched_setaffinity(None, &set).is_ok()
}

/// Bytes of memory that can be had without driving others out, by the kernel's estimate.
pub fn available() -> Option<usize> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let kib = info.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?.trim().strip_suffix(" kB")?;
    kib.parse::<usize>().ok()?.checked_mul(1024)
}

/// Bytes that this process may lock.
pub fn memlock_limit() -> usize {
    let limit = getrlimit(Resource::Memlock).current;
    limit.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lists() {
        assert_eq!(parse_list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(parse_list("\n"), [0usize; 0]);
        assert_eq!(parse_list("7"), [7]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "system calls")]
    fn a_thread_lands_on_its_core_and_a_missing_core_is_named() {
        let core = *cores().last().expect("a thread runs somewhere");
        std::thread::spawn(move || {
            pin(core).unwrap();
            assert_eq!(cores(), [core]);
        })
        .join()
        .unwrap();
        for core in [1_000, CpuSet::MAX_CPU] {
            let e = pin(core).unwrap_err().to_string();
            assert!(e.contains(&format!("core {core} (")), "{e}");
        }
    }
}
