//! Signals end a run: cleanly, at once, or with no chance to clean up.

use std::fs;
use std::io::{Write, pipe};
use std::thread;
use std::time::{Duration, Instant};

use crate::rig::{PATIENCE, Process, assert_clean, ringwright, run, skip, turn};

/// A stop ends its work within 2 s; the rest is for a machine that has a lot else to do.
const STOP: Duration = Duration::from_secs(5);

/// A run that would last a minute, in its second second.
fn under_way(args: &str) -> Process {
    let mut p = Process::start(&mut ringwright(&format!("demo --for 60s {args}")));
    p.until_said("packets/s");
    p
}

#[test]
fn either_signal_ends_a_run_with_everything_accounted_for() {
    let _turn = turn();
    for signal in ["TERM", "INT"] {
        let p = under_way("--json --frame imix");
        p.signal(signal);
        let status = assert_clean(p.end_within(STOP));
        let elapsed = status["elapsed_s"].as_f64().expect("seconds");
        assert!((1.0..60.0).contains(&elapsed), "the time it ran, not the time it was to run: {elapsed}");
    }
}

#[test]
fn a_run_that_was_ended_has_its_whole_summary() {
    let _turn = turn();
    let p = under_way("");
    p.signal("INT");
    let ended = p.end_within(STOP).expect(0);
    for words in [" s of 64 B frames", "accounts: received", "unexplained 0\n", "checker: each of "] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
}

#[test]
fn a_second_signal_ends_what_the_first_cannot() {
    let _turn = turn();
    // The summary goes into a pipe that is full and that nobody reads: the run is over, but cannot say so.
    let (reader, mut writer) = pipe().expect("a pipe");
    let stdout = writer.try_clone().expect("another end");
    let fill = thread::spawn(move || writer.write_all(&vec![0; 4 << 20]).is_err());
    let mut p = Process::start(ringwright("demo --for 60s").stdout(stdout));
    p.until_said("packets/s");
    p.signal("INT");
    thread::sleep(Duration::from_millis(500));
    assert!(p.is_running(), "it waits for its reader");
    p.signal("INT");
    let ended = p.end_within(STOP);
    assert_eq!(ended.code(), None, "ended by the signal: {}: {}", ended.status, ended.stderr);
    drop(reader);
    assert!(fill.join().expect("no panic"), "the pipe was full all the time");
}

#[test]
fn a_stderr_that_nobody_reads_holds_nothing_up() {
    let _turn = turn();
    let (reader, mut writer) = pipe().expect("a pipe");
    let stderr = writer.try_clone().expect("another end");
    let fill = thread::spawn(move || writer.write_all(&vec![0; 4 << 20]).is_err());
    thread::sleep(Duration::from_millis(200));
    let started = Instant::now();
    let p = Process::start(ringwright("demo --for 2500ms --json --pages 4K").stderr(stderr));
    let status = assert_clean(p.end_within(STOP + Duration::from_millis(2500)));
    assert!(status["elapsed_s"].as_f64().expect("seconds") < started.elapsed().as_secs_f64());
    drop(reader);
    assert!(fill.join().expect("no panic"), "the pipe was full all the time");
}

/// Free 2 MiB pages; none if the kernel has no such pages.
fn free_pages() -> usize {
    let free = fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    free.ok().and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}

#[test]
fn a_run_that_was_killed_leaves_nothing_that_hinders_the_next() {
    let _turn = turn();
    let p = under_way("");
    p.signal("KILL");
    let ended = p.end_within(PATIENCE);
    assert!(ended.code().is_none() && ended.stdout.is_empty(), "{}", ended.status);
    assert_clean(run("demo --json --for 300ms"));
}

#[test]
fn superpages_of_a_run_that_was_killed_are_free_again() {
    let _turn = turn();
    // Others may take and give pages in the meantime. A leak would show each time.
    let mut seen = Vec::new();
    for _ in 0..4 {
        let before = free_pages();
        if before < 64 {
            return skip(&format!("{before} free pages of 2 MiB are too few to see a run take some"));
        }
        let p = under_way("--pages 2M --buffers 16384");
        let during = free_pages();
        p.signal("KILL");
        p.end_within(PATIENCE);
        let deadline = Instant::now() + Duration::from_secs(2);
        while free_pages() < before && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
        }
        let after = free_pages();
        // 16384 buffers of 2 KiB and more are 16 pages at least.
        if during + 16 <= before && after >= before {
            assert_clean(run("demo --json --for 300ms --pages 2M --buffers 16384"));
            return;
        }
        seen.push((before, during, after));
    }
    panic!("free pages before, during and after: {seen:?}");
}
