//! Threads and cores as the kernel shows them: shares of CPU, who shares what.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::BenchError;

/// A logical core's number as the kernel counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Core(pub usize);

impl std::fmt::Display for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Pins the calling thread to `core`.
///
/// # Errors
/// [`BenchError::Core`] if the core is offline or outside the process's cpuset.
pub fn pin(core: Core) -> Result<(), BenchError> {
    Ok(topology::pin(core.0)?)
}

/// CPU time of the calling thread.
pub fn thread_time() -> Duration {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// What the scheduler has counted for a thread of any process (`/proc/PID/task/TID/schedstat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedStat {
    /// On a CPU.
    pub ran: Duration,
    /// Runnable, but waiting for a CPU.
    pub waited: Duration,
}

impl SchedStat {
    /// The counters of thread `tid` of `pid`; exact while the thread sleeps, else up to a tick old.
    pub fn read(pid: u32, tid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?)
    }

    /// The share of a core that the thread had of the time it wanted to run, from `before` to now.
    pub fn share_since(&self, before: &Self) -> f64 {
        self.ran.saturating_sub(before.ran).as_secs_f64() / self.wanted_since(before).as_secs_f64()
    }

    /// The time that the thread ran or waited for a core, from `before` to now.
    pub fn wanted_since(&self, before: &Self) -> Duration {
        self.ran.saturating_sub(before.ran) + self.waited.saturating_sub(before.waited)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut ns = text.split_whitespace().map(|n| n.parse().map(Duration::from_nanos));
        Some(Self { ran: ns.next()?.ok()?, waited: ns.next()?.ok()? })
    }
}

/// The first thread of `pid` whose `/proc/PID/task/TID/status` suits `wanted`.
pub fn find_thread(pid: u32, wanted: impl Fn(&str) -> bool) -> Option<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut ids = tasks.flatten().filter_map(|t| t.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|tid| fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).is_ok_and(|s| wanted(&s)))
}

/// The value of `key` in the text of a `status` file.
pub fn status_value<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    status.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
}

/// Numbers of a kernel list such as `0-3,8`.
pub fn parse_list(text: &str) -> Vec<usize> {
    let range = |part: &str| -> Option<std::ops::RangeInclusive<usize>> {
        let (a, b) = part.split_once('-').unwrap_or((part, part));
        Some(a.trim().parse().ok()?..=b.trim().parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// Cores this process may use.
pub fn allowed() -> Vec<Core> {
    topology::cores().into_iter().map(Core).collect()
}

/// Other logical cores on the same physical core.
pub fn siblings(core: Core) -> Vec<usize> {
    topology::siblings(core.0).into_iter().filter(|&c| c != core.0).collect()
}

/// Other logical cores on the same last-level cache; empty where the kernel does not know.
pub fn cache_mates(core: Core) -> Vec<usize> {
    let last = (0..8).rev().find(|i| cpu_file(core, &format!("cache/index{i}/shared_cpu_list")).is_some());
    let list =
        last.and_then(|i| cpu_file(core, &format!("cache/index{i}/shared_cpu_list"))).unwrap_or_default();
    parse_list(&list).into_iter().filter(|&c| c != core.0).collect()
}

fn cpu_file(core: Core, file: &str) -> Option<String> {
    fs::read_to_string(format!("/sys/devices/system/cpu/cpu{core}/{file}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lists() {
        assert_eq!(parse_list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(parse_list("5"), [5]);
        assert_eq!(parse_list("\n"), [0usize; 0]);
    }

    #[test]
    fn schedstat_fields_are_run_then_wait() {
        let s = SchedStat::parse("1500 2500 3\n").unwrap();
        assert_eq!((s.ran.as_nanos(), s.waited.as_nanos()), (1500, 2500));
        assert_eq!(SchedStat::parse("12"), None);
        let before = SchedStat { ran: Duration::from_nanos(750), waited: Duration::from_nanos(2250) };
        assert_eq!((s.share_since(&before), s.wanted_since(&before).as_nanos()), (0.75, 1000));
    }

    #[test]
    fn a_thread_is_found_by_its_name() {
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let named =
            std::thread::Builder::new().name("find-me".into()).spawn(move || wait.recv().is_err()).unwrap();
        let is = |name: &'static str| move |s: &str| status_value(s, "Name") == Some(name);
        // The kernel learns a thread's name from the thread itself.
        let found = (0..200).find_map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            find_thread(std::process::id(), is("find-me"))
        });
        assert!(found.is_some());
        drop(stop);
        assert!(named.join().unwrap());
        assert_eq!(find_thread(std::process::id(), is("find-me-not")), None);
    }

    #[test]
    fn a_busy_thread_accumulates_cpu_time_and_a_sleeping_one_does_not() {
        let before = thread_time();
        let mut x = 1u64;
        while thread_time() - before < Duration::from_millis(2) {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        let slept = thread_time();
        std::thread::sleep(Duration::from_millis(20));
        assert!(thread_time() - slept < Duration::from_millis(10));
    }
}
