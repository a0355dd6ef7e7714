//! Cores and memory nodes, read from sysfs, and placing threads on them.

use core::fmt;
use std::fs;

use crate::HwError;
use crate::os;

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

pub(crate) fn on_node(node: Option<Node>) -> String {
    node.map_or_else(String::new, |n| format!(" on {n}"))
}

pub(crate) fn list(nodes: &[Node]) -> String {
    if nodes.is_empty() {
        return "no known nodes".to_owned();
    }
    let ids: Vec<_> = nodes.iter().map(|n| n.0.to_string()).collect();
    format!("node {}", ids.join(", "))
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

/// The cores this process may use.
pub fn cores() -> Vec<usize> {
    os::affinity()
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
pub fn pin(core: usize) -> Result<(), HwError> {
    os::pin(core).map_err(|source| HwError::Os {
        what: format!("binding a thread to core {core} (this process may use {:?})", cores()),
        source,
    })
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
        let e = pin(1_000).unwrap_err().to_string();
        assert!(e.contains("core 1000"), "{e}");
    }
}
