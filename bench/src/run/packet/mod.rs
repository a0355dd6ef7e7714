//! `packet`: forwarding between two veth pairs through packet sockets, beside testpmd's `net_af_packet` and the kernel's
//! bridge.
//!
//! A generator in one namespace sends into a cable, a forwarder in the next takes frames from one cable to another, and in
//! the third the kernel counts what arrives and drops it. All is the same for all candidates but for the forwarder; each is
//! started for its block and stopped after it. Counted are packets that the receiving interface received, by the kernel.
//!
//! What shares a core: veth receives on the core that sent. So the generator's core also runs the kernel's receiving into the
//! forwarder's rings, and the forwarder's core the kernel's receiving at the last interface. The bridge has the receiving side
//! of its first interface moved to the forwarder's core (threaded NAPI), without which one core would do everything.

mod forwarders;
mod wires;

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use super::{Output, Timing};
use crate::BenchError;
use crate::cpu::Core;
use crate::distance;
use crate::harness::report::{Compare, Report};
use crate::harness::stats::Summary;
use crate::harness::{Candidate, Reading};
use crate::manifest::{Manifest, Peer};
use crate::peers::packet_gen::Generator;
use crate::run::pool;
use crate::session;
use forwarders::{Bridge, Forwarder, Ours, Testpmd};
use wires::Wires;

/// Buffers in the pool: the default of a configuration.
const BUFFERS: usize = 16_384;
/// Blocks to keep, and how long one lasts, unless asked otherwise.
const ROUNDS: u32 = 5;
const BLOCK: Duration = Duration::from_secs(1);
/// Before a block counts, and how long the generator goes on after it.
const WARMUP: Duration = Duration::from_millis(200);
const TAIL: Duration = Duration::from_millis(100);

/// Options.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    timing: Timing,
    /// Frame size in bytes with the check sequence
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(64..=1518), value_name = "SIZE")]
    frame: u16,
}

/// Measures.
///
/// # Errors
/// Of the machine or of a peer, and [`BenchError::Unexplained`].
pub fn run(args: &Args) -> Result<ExitCode, BenchError> {
    let (timing, json) = (args.timing.or(ROUNDS, BLOCK), args.timing.json);
    let priority = session::raise();
    let (forwarder, generating) = timing.pair()?;
    let wires = Rc::new(Wires::new()?);
    let apart = distance::measure(forwarder, generating)?;
    let (forwarders, peers) = forwarders(timing.no_peers, &wires, (forwarder, generating))?;
    let cores = [
        (forwarder, "forwarder, and the kernel's receiving at the far end"),
        (generating, "generator, and the kernel's receiving at the near end"),
    ];
    let manifest = Manifest::new(&cores, priority, peers, Some(apart));
    let tsc_hz = manifest.tsc_hz;
    let mut output = Output::new("packet", manifest, json);
    let generator = Generator::start(wires.sender(), wires::A, generating, args.frame - 4)
        .map_err(|what| BenchError::Peer { peer: "packet_gen", what })?;
    let generator = Rc::new(RefCell::new(generator));
    let alone = ceiling(&generator, &timing)?;
    let compare: Vec<_> = (1..forwarders.len()).map(|i| Compare::Ratio(0, i)).collect();
    let mut all: Vec<Box<dyn Candidate>> = Vec::new();
    for (name, forwarder) in forwarders {
        let (wires, generator) = (Rc::clone(&wires), Rc::clone(&generator));
        all.push(Box::new(Forwarding { name: name.to_owned(), forwarder, wires, generator }));
    }
    let title = format!("packet: veth to veth, one forwarding core, {}-byte frames", args.frame);
    let blocks = timing.measure(&title, Some((forwarder, generating)), &mut all)?;
    if !json {
        println!("generator alone, nobody listening: {:.2} M packets/s at most", alone.median / 1e6);
    }
    output.add(Report::new(&title, "packets", &blocks, &compare, tsc_hz), json);
    output.finish(json);
    Ok(ExitCode::SUCCESS)
}

/// A forwarder, and what it is called.
type Named = (&'static str, Box<dyn Forwarder>);

/// All forwarders that can be had, ours first, and what the manifest says of them and of those that cannot.
fn forwarders(
    no_peers: bool,
    wires: &Wires,
    (worker, main): (Core, Core),
) -> Result<(Vec<Named>, Vec<Peer>), BenchError> {
    let (local, _, pages) = pool::packet_memory(BUFFERS)?;
    let memory = local.memory().clone();
    let state = format!("{BUFFERS} buffers on {} pages, stage `forward`, on_full drop", pages.name());
    let mut peers = vec![Peer { name: "ringwright", state }];
    let ours = Ours { name: "ringwright".into(), worker, memory, runtime: None };
    let mut all: Vec<Named> = vec![("ringwright", Box::new(ours))];
    let wanted = || if no_peers { Err("left out by --no-peers".to_owned()) } else { Ok(()) };
    let mut add = |name, peer: Result<Box<dyn Forwarder>, String>, what: &str| {
        let state = match peer {
            Ok(forwarder) => {
                all.push((name, forwarder));
                what.to_owned()
            }
            Err(why) => format!("skipped: {why}"),
        };
        peers.push(Peer { name, state });
    };
    let testpmd = wanted().and_then(|()| Testpmd::boxed(worker, main));
    add("testpmd net_af_packet", testpmd, "io, burst 32, one worker");
    let bridge = wanted().and_then(|()| Bridge::boxed(worker, wires));
    add("Linux bridge", bridge, "threaded NAPI on the forwarder's core, static entry");
    Ok((all, peers))
}

/// What the generator sends when nobody takes the frames: no forwarder can do more.
fn ceiling(generator: &Rc<RefCell<Generator>>, timing: &Timing) -> Result<Summary, BenchError> {
    let window = timing.plan(None).window;
    let mut rates = Vec::new();
    for _ in 0..3 {
        let mut g = generator.borrow_mut();
        g.begin(window)?;
        rates.push(g.end(window)?.0);
    }
    let summary = Summary::of(&rates);
    summary.ok_or_else(|| BenchError::Peer { peer: "packet_gen", what: "sent nothing".to_owned() })
}

/// A forwarder as a candidate.
struct Forwarding {
    name: String,
    forwarder: Box<dyn Forwarder>,
    wires: Rc<Wires>,
    generator: Rc<RefCell<Generator>>,
}

impl Candidate for Forwarding {
    fn name(&self) -> &str {
        &self.name
    }

    fn block(&mut self, window: Duration) -> Result<Reading, BenchError> {
        self.forwarder.start()?;
        let time = WARMUP + window + TAIL;
        let mut generator = self.generator.borrow_mut();
        generator.begin(time)?;
        std::thread::sleep(WARMUP);
        let before = self.forwarder.seen();
        let (start, first) = self.wires.received()?;
        std::thread::sleep(window);
        let (end, last) = self.wires.received()?;
        let share = forwarders::share(&*self.forwarder, before);
        let (_, generating) = generator.end(time)?;
        self.forwarder.stop()?;
        let seconds = end.duration_since(start).as_secs_f64();
        Ok(Reading { items: last - first, seconds, shares: vec![share, generating] })
    }
}
