//! Those that forward from one interface to the other: ours, testpmd, the kernel's bridge.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use graph::OnFull;
use mem::Memory;
use port::{Driver, OpenEnv, PortConfig};
use rt::{Runtime, WorkerPlan};

use super::wires::{F, Wires};
use crate::BenchError;
use crate::cpu::{self, Core, SchedStat, parse_list};
use crate::harness::Share;
use crate::peers::{Lines, installed, output};
use crate::run::null::Work;

const TESTPMD: &str = "dpdk-testpmd";
const PATIENCE: Duration = Duration::from_secs(20);

/// Something that forwards frames from `f0` to `f1`.
pub trait Forwarder {
    /// Begins.
    ///
    /// # Errors
    /// Whatever keeps it from it.
    fn start(&mut self) -> Result<(), BenchError>;
    /// What the scheduler says of its thread.
    fn seen(&self) -> Option<SchedStat>;
    /// Ends. The interfaces are as before.
    ///
    /// # Errors
    /// If it lost a packet, or did not end.
    fn stop(&mut self) -> Result<(), BenchError>;
    /// What its thread is called in tables.
    fn thread(&self) -> &'static str {
        "forwarder"
    }
}

/// The share of its core that a forwarder had between two looks; 0 if it was not seen.
pub fn share(f: &dyn Forwarder, before: Option<SchedStat>) -> Share {
    let share = match (before, f.seen()) {
        (Some(before), Some(now)) if !now.wanted_since(&before).is_zero() => now.share_since(&before),
        _ => 0.0,
    };
    Share { thread: f.thread(), share }
}

/// The whole runtime, with the driver under test.
pub struct Ours {
    pub name: String,
    pub worker: Core,
    pub memory: Arc<Memory>,
    pub runtime: Option<Runtime>,
}

impl Forwarder for Ours {
    fn start(&mut self) -> Result<(), BenchError> {
        let mut runtime = Runtime::new(Arc::clone(&self.memory));
        for interface in F {
            let env = OpenEnv { memory: Arc::clone(&self.memory), name: interface.into() };
            let keys = toml::Table::from_iter([("interface".to_owned(), interface.into())]);
            let port = packet::Packet.open(&keys, &env)?;
            runtime.add_port(interface, port, PortConfig::new(0), OnFull::Drop);
        }
        let queues = vec![(0, 0), (1, 0)];
        runtime.start(vec![WorkerPlan {
            core: Some(self.worker.0),
            rx: queues.clone(),
            tx: queues,
            stages: 1,
            graph: Some(Box::new(|local| Work::Forward.graph(local))),
            ..WorkerPlan::default()
        }])?;
        self.runtime = Some(runtime);
        Ok(())
    }

    fn seen(&self) -> Option<SchedStat> {
        let me = std::process::id();
        let thread = cpu::find_thread(me, |s| cpu::status_value(s, "Name") == Some("worker-0"))?;
        SchedStat::read(me, thread)
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        let Some(mut runtime) = self.runtime.take() else { return Ok(()) };
        let status = runtime.stop();
        match status.conservation.unexplained {
            Some(0) => Ok(()),
            n => Err(BenchError::Unexplained {
                name: self.name.clone(),
                unexplained: n.unwrap_or(u64::MAX),
                account: format!("{:?}", status.conservation),
            }),
        }
    }
}

/// DPDK's testpmd over `net_af_packet`. Started for each block: its sockets would get every frame of the others' blocks.
pub struct Testpmd {
    worker: Core,
    main: Core,
    lines: Option<Lines>,
}

impl Testpmd {
    /// With its worker on one core and its main thread, which sleeps, on another.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn boxed(worker: Core, main: Core) -> Result<Box<dyn Forwarder>, String> {
        match installed(TESTPMD) {
            true => Ok(Box::new(Self { worker, main, lines: None })),
            false => Err("not installed; apt-get install dpdk-dev".to_owned()),
        }
    }
}

impl Forwarder for Testpmd {
    fn start(&mut self) -> Result<(), BenchError> {
        let mut command = Command::new("stdbuf");
        command.args(["-oL", TESTPMD, "-n", "2", "--no-pci", "--no-telemetry", "--in-memory", "-m", "256"]);
        command.args([
            "-l",
            &format!("{},{}", self.main, self.worker),
            "--main-lcore",
            &self.main.to_string(),
        ]);
        command.arg(format!("--file-prefix=ringwright-packet-{}", std::process::id()));
        for (i, interface) in F.iter().enumerate() {
            command.arg(format!("--vdev=net_af_packet{i},iface={interface}"));
        }
        command.args([
            "--",
            "-i",
            "--forward-mode=io",
            "--burst=32",
            "--nb-cores=1",
            "--total-num-mbufs=16384",
        ]);
        let mut lines = Lines::start(TESTPMD, command)?;
        lines.expect("both ports", PATIENCE, |l| l.starts_with("Checking link statuses").then_some(()))?;
        lines.tell("start")?;
        self.lines = Some(lines);
        Ok(())
    }

    fn seen(&self) -> Option<SchedStat> {
        let pid = self.lines.as_ref()?.pid();
        let thread = cpu::find_thread(pid, |s| {
            let value = |key| cpu::status_value(s, key).unwrap_or_default();
            value("Name").contains("worker") && parse_list(value("Cpus_allowed_list")) == [self.worker.0]
        })?;
        SchedStat::read(pid, thread)
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        if let Some(lines) = &mut self.lines {
            lines.tell("quit")?;
        }
        // Dropped only when it has ended.
        self.lines = None;
        Ok(())
    }
}

/// The kernel's bridge, with the receiving interface polled by a thread of its own (threaded NAPI).
pub struct Bridge {
    core: Core,
    netns: String,
    /// The thread that polls.
    thread: Option<u32>,
}

impl Bridge {
    /// With its polling thread on `core`.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn boxed(core: Core, wires: &Wires) -> Result<Box<dyn Forwarder>, String> {
        let bridge = Self { core, netns: wires.forwarder().to_owned(), thread: None };
        let script =
            "command -v bridge ethtool taskset renice >&2; ip link add br0 type bridge; ip link del br0";
        bridge.shell(script).map_err(|e| e.to_string())?;
        Ok(Box::new(bridge))
    }

    fn shell(&self, script: &str) -> Result<(), BenchError> {
        // `ip netns exec` also shows the namespace's own sysfs.
        let result = output(Command::new("ip").args(["netns", "exec", &self.netns, "sh", "-ec", script]));
        result.map(drop).map_err(|what| BenchError::Tool { tool: "bridge", what })
    }
}

impl Forwarder for Bridge {
    fn start(&mut self) -> Result<(), BenchError> {
        let [from, to] = F;
        self.shell(&format!(
            "ip link add br0 type bridge; ip link set {from} master br0; ip link set {to} master br0; ip link set br0 up
             bridge fdb add 02:00:00:00:00:bb dev {to} master static
             ethtool -K {from} gro on; echo 1 > /sys/class/net/{from}/threaded"
        ))?;
        let name = format!("napi/{from}-");
        self.thread = kernel_thread(&name);
        let Some(thread) = self.thread else {
            return Err(BenchError::Tool { tool: "bridge", what: format!("there is no thread {name}*") });
        };
        // As the other candidates' threads, which are in this program's session.
        self.shell(&format!("taskset -p -c {} {thread}; renice -n -20 -p {thread}", self.core))
    }

    fn seen(&self) -> Option<SchedStat> {
        let thread = self.thread?;
        SchedStat::read(thread, thread)
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        self.thread = None;
        let from = F[0];
        self.shell(&format!(
            "echo 0 > /sys/class/net/{from}/threaded; ethtool -K {from} gro off; ip link del br0"
        ))
    }
}

/// The kernel thread whose name begins with `name`; the youngest, if there are several.
fn kernel_thread(name: &str) -> Option<u32> {
    let all =
        fs::read_dir("/proc").ok()?.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let is = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c.starts_with(name));
    all.filter(is).max()
}
