//! `null`: forwarding between two null ports on one core, beside testpmd's `io` and `macswap` between two `net_null`.

use std::process::ExitCode;

use super::{Output, Timing};
use crate::BenchError;
use crate::harness::Candidate;
use crate::harness::report::Report;
use crate::manifest::{Manifest, Peer};
use crate::peers::testpmd::{Testpmd, TestpmdCandidate};
use crate::session;

/// Options.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    timing: Timing,
}

/// Measures.
///
/// # Errors
/// Of the machine or of a peer.
pub fn run(args: &Args) -> Result<ExitCode, BenchError> {
    let (timing, json) = (&args.timing, args.timing.json);
    let priority = session::raise();
    let (worker, other) = timing.pair()?;
    let peer = match timing.no_peers {
        true => Err("left out by --no-peers".to_owned()),
        false => Testpmd::start(worker, other),
    };
    let state = peer.as_ref().map_or_else(|why| format!("skipped: {why}"), |p| p.borrow().version.clone());
    let manifest = Manifest::new(
        &[(worker, "worker of each candidate in turn")],
        priority,
        vec![Peer { name: "testpmd", state }],
        None,
    );
    let tsc_hz = manifest.tsc_hz;
    let mut output = Output::new("null", manifest, json);
    let mut all: Vec<Box<dyn Candidate>> = Vec::new();
    if let Ok(peer) = &peer {
        all.push(Box::new(TestpmdCandidate::new(peer, "io")));
        all.push(Box::new(TestpmdCandidate::new(peer, "macswap")));
    }
    let title = "two null ports, one worker, burst 32, 64-byte frames";
    let blocks = timing.measure(title, None, &mut all)?;
    output.add(Report::new(title, "packets", &blocks, &[], tsc_hz), json);
    output.finish(json);
    Ok(ExitCode::SUCCESS)
}
