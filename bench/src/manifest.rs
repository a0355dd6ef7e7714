//! What must be known to read a figure: machine, kernel, cores, memory, peers, revision.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use serde::Serialize;

use crate::cpu::{self, Core};
use crate::distance::Distance;

/// Printed before any result.
#[derive(Debug, Serialize)]
pub struct Manifest {
    /// Name of the processor.
    pub cpu: String,
    /// True under a hypervisor: cores may move, and the TSC may be scaled.
    pub virtual_machine: bool,
    /// Kernel name and release.
    pub kernel: String,
    /// TSC frequency.
    pub tsc_hz: u64,
    /// Logical cores that this process may use.
    pub allowed_cores: usize,
    /// The cores of the benchmark.
    pub cores: Vec<CoreUse>,
    /// Huge pages by size.
    pub huge_pages: Vec<HugePages>,
    /// Runnable tasks over the last minute before the run.
    pub load: String,
    /// What was done about priority.
    pub priority: String,
    /// Versions of peers and tools.
    pub peers: Vec<Peer>,
    /// The revision measured.
    pub commit: String,
    /// The compiler.
    pub rustc: &'static str,
    /// How it was built.
    pub profile: &'static str,
    /// Distance of the two cores at the start; `None` for a one-core benchmark.
    pub distance: Option<Distance>,
}

/// A core and what it shares.
#[derive(Debug, Serialize)]
pub struct CoreUse {
    /// The core.
    pub core: Core,
    /// What runs on it.
    pub runs: String,
    /// Logical cores on the same physical core.
    pub siblings: Vec<usize>,
    /// Logical cores on the same last-level cache, as far as the kernel knows.
    pub cache_mates: Vec<usize>,
}

/// Pages of one size.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct HugePages {
    /// Size of a page in KiB.
    pub kib: u64,
    /// Pages reserved.
    pub total: u64,
    /// Pages free at the start.
    pub free: u64,
}

/// Another program in the run.
#[derive(Clone, Debug, Serialize)]
pub struct Peer {
    /// Its name.
    pub name: &'static str,
    /// Its version and memory, or why it is not there.
    pub state: String,
}

impl Manifest {
    /// The manifest of this machine and build, for a benchmark that runs `runs` on these cores.
    pub fn new(
        runs: &[(Core, &str)],
        priority: String,
        peers: Vec<Peer>,
        distance: Option<Distance>,
    ) -> Self {
        let cpuinfo = read("/proc/cpuinfo");
        let core = |&(core, runs): &(Core, &str)| CoreUse {
            core,
            runs: runs.to_owned(),
            siblings: cpu::siblings(core),
            cache_mates: cpu::cache_mates(core),
        };
        Self {
            cpu: field(&cpuinfo, "model name").unwrap_or("unknown").to_owned(),
            virtual_machine: field(&cpuinfo, "flags").is_some_and(|f| f.contains(" hypervisor")),
            kernel: format!(
                "{} {}",
                read("/proc/sys/kernel/ostype").trim(),
                read("/proc/sys/kernel/osrelease").trim()
            ),
            tsc_hz: hw::tsc_hz(),
            allowed_cores: cpu::allowed().len(),
            cores: runs.iter().map(core).collect(),
            huge_pages: huge_pages(),
            load: read("/proc/loadavg").split(' ').next().unwrap_or("unknown").to_owned(),
            priority,
            peers,
            commit: commit(),
            rustc: env!("BENCH_RUSTC"),
            profile: if cfg!(debug_assertions) { "debug: figures mean nothing" } else { "release" },
            distance,
        }
    }

    /// The manifest as text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let vm = if self.virtual_machine { " (virtual machine)" } else { "" };
        let _ = writeln!(out, "cpu       {}{vm}, {} cores allowed", self.cpu, self.allowed_cores);
        let _ = writeln!(out, "kernel    {}, load {}, {}", self.kernel, self.load, self.priority);
        let _ = writeln!(out, "tsc       {:.3} MHz, measured", self.tsc_hz as f64 / 1e6);
        for c in &self.cores {
            let _ = writeln!(out, "core {:<4} {}; {}", c.core, c.runs, c.shares());
        }
        for p in &self.huge_pages {
            let _ = writeln!(out, "pages     {} of {} pages of {} KiB free", p.free, p.total, p.kib);
        }
        for p in &self.peers {
            let _ = writeln!(out, "peer      {}: {}", p.name, p.state);
        }
        if let Some(d) = self.distance {
            let t = d.round_trip_ns;
            let _ = writeln!(out, "distance  {}: {:.1} ns ({:.1} .. {:.1})", d.class, t.median, t.min, t.max);
        }
        let _ = writeln!(out, "build     {}, rustc {}, commit {}", self.profile, self.rustc, self.commit);
        out
    }
}

impl CoreUse {
    fn shares(&self) -> String {
        let list = |l: &[usize]| l.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let smt = match &self.siblings[..] {
            [] => "shares its physical core with none".to_owned(),
            s => format!("SHARES its physical core with {}", list(s)),
        };
        match &self.cache_mates[..] {
            [] => smt,
            c => format!("{smt}, last-level cache with {}", list(c)),
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|l| l.split_once(':').filter(|(k, _)| k.trim() == name).map(|(_, v)| v.trim()))
}

fn huge_pages() -> Vec<HugePages> {
    const DIR: &str = "/sys/kernel/mm/hugepages";
    let Ok(entries) = fs::read_dir(DIR) else { return Vec::new() };
    let pages = |name: &str| -> Option<HugePages> {
        let number = |file: &str| read(&format!("{DIR}/{name}/{file}")).trim().parse().ok();
        Some(HugePages {
            kib: name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?,
            total: number("nr_hugepages")?,
            free: number("free_hugepages")?,
        })
    };
    let mut all: Vec<_> = entries.flatten().filter_map(|e| pages(e.file_name().to_str()?)).collect();
    all.sort_unstable_by_key(|p| p.kib);
    all
}

fn commit() -> String {
    let git = |args: &[&str]| {
        let out = Command::new("git").arg("-C").arg(env!("CARGO_MANIFEST_DIR")).args(args).output().ok()?;
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
    };
    match git(&["rev-parse", "--short=12", "HEAD"]) {
        None => "unknown".into(),
        Some(c) if git(&["status", "--porcelain"]).is_some_and(|s| !s.is_empty()) => {
            format!("{c} with changes")
        }
        Some(c) => c,
    }
}
