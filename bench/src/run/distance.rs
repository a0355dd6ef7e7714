//! `distance`: how far two cores are apart, over time.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{Timing, duration};
use crate::BenchError;
use crate::cpu::Core;
use crate::distance::{BOUNDARY_NS, Class, Distance, measure};
use crate::harness::stats::Summary;
use crate::manifest::Manifest;
use crate::session;

/// Options.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    timing: Timing,
    /// How long to watch: a pair of cores may change its class
    #[arg(long = "for", default_value = "2s", value_parser = duration)]
    time: Duration,
}

#[derive(Serialize)]
struct Watch {
    benchmark: &'static str,
    manifest: Manifest,
    boundary_ns: f64,
    classes: Vec<Seen>,
    /// Neighbouring measurements, contended ones apart, of different class.
    changes: usize,
}

#[derive(Serialize)]
struct Seen {
    class: Class,
    measurements: usize,
    round_trip_ns: Option<Summary>,
}

/// Measures over and over for the time asked.
///
/// # Errors
/// As [`measure`].
pub fn run(args: &Args) -> Result<ExitCode, BenchError> {
    let priority = session::raise();
    let (a, b) = args.timing.pair()?;
    let first = measure(a, b)?;
    let manifest = Manifest::new(&[(a, "serves"), (b, "answers")], priority, Vec::new(), Some(first));
    if !args.timing.json {
        print!("{}", manifest.text());
    }
    let watch = Watch::over(manifest, &observe(args.time, (a, b), first)?);
    if args.timing.json {
        println!("{}", serde_json::to_string(&watch).expect("numbers and words always serialise"));
    } else {
        watch.print();
    }
    Ok(ExitCode::SUCCESS)
}

fn observe(time: Duration, (a, b): (Core, Core), first: Distance) -> Result<Vec<Distance>, BenchError> {
    let start = Instant::now();
    let mut all = vec![first];
    while start.elapsed() < time {
        all.push(measure(a, b)?);
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(all)
}

impl Watch {
    fn over(manifest: Manifest, all: &[Distance]) -> Self {
        let seen = |class| {
            let of: Vec<f64> =
                all.iter().filter(|d| d.class == class).map(|d| d.round_trip_ns.median).collect();
            Seen { class, measurements: of.len(), round_trip_ns: Summary::of(&of) }
        };
        let clean: Vec<Class> = all.iter().map(|d| d.class).filter(|&c| c != Class::Contended).collect();
        Self {
            benchmark: "distance",
            manifest,
            boundary_ns: BOUNDARY_NS,
            classes: [Class::Near, Class::Far, Class::Contended].map(seen).into(),
            changes: clean.windows(2).filter(|w| w[0] != w[1]).count(),
        }
    }

    fn print(&self) {
        println!(
            "\nround trip of one cache line, class boundary {} ns, {} changes",
            self.boundary_ns, self.changes
        );
        for Seen { class, measurements, round_trip_ns } in &self.classes {
            match round_trip_ns {
                None => println!("{class:<10} not seen in this run"),
                Some(t) if t.median.is_finite() => println!(
                    "{class:<10} {:.1} ns, quartiles {:.1} .. {:.1}, min {:.1}, max {:.1}, {measurements} measurements",
                    t.median, t.q1, t.q3, t.min, t.max
                ),
                Some(_) => println!("{class:<10} a thread never got its core, {measurements} measurements"),
            }
        }
    }
}
