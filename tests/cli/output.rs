//! What goes where: results on stdout, everything else on stderr, and neither is taken for granted.

use std::fs::OpenOptions;
use std::io::pipe;
use std::process::Stdio;

use serde_json::Value;

use crate::rig::{Process, clean, cores, ringwright, run, turn};

fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").expect("/dev/full").into()
}

/// A pipe whose reader has gone.
fn closed() -> Stdio {
    let (reader, writer) = pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

#[track_caller]
fn is_count(v: &Value, path: &str) {
    let at = v.pointer(path).unwrap_or_else(|| panic!("no {path} in {v}"));
    assert!(at.is_u64(), "{path} is {at}");
}

#[test]
fn the_status_object_has_what_programs_rely_on() {
    let core = *cores().last().expect("a core");
    let status = clean(&format!("--worker-core {core} --frame imix"));
    assert_eq!(status["schema"], 1);
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    let elapsed = status["elapsed_s"].as_f64().expect("seconds");
    assert!((0.3..30.0).contains(&elapsed), "{elapsed}");
    for path in ["/tsc_hz", "/workers/0/polls", "/workers/0/empty_polls", "/workers/0/packets"] {
        is_count(&status, path);
    }
    for port in [0, 1] {
        for leaf in ["rx/packets", "rx/bytes", "tx/packets", "tx/bytes", "queues/0/id", "queues/0/worker"] {
            is_count(&status, &format!("/ports/{port}/{leaf}"));
        }
        for leaf in
            ["rx/packets", "rx/bytes", "rx/polls", "rx/empty_polls", "tx/packets", "tx/doorbells", "tx/full"]
        {
            is_count(&status, &format!("/ports/{port}/queues/0/{leaf}"));
        }
        let p = &status["ports"][port];
        assert_eq!((&p["name"], &p["driver"]), (&format!("p{port}").into(), &"ixgbe".into()));
        assert!(p["link"]["up"].is_boolean() && p["drops"].is_object() && p.get("node").is_some(), "{p}");
        assert!(
            p["queues"][0]["rx"]["bursts"].is_array() && p["queues"][0]["rx"]["drops"].is_object(),
            "{p}"
        );
    }
    let w = &status["workers"][0];
    assert_eq!((&w["core"], &w["role"]), (&core.into(), &"run-to-completion".into()));
    is_count(w, "/cycles/idle");
    is_count(w, "/cycles/useful");
    assert_eq!(w["cycles"].get("stall"), Some(&Value::Null), "unknown, and neither absent nor 0: {w}");
    for figure in ["mean", "p50", "p99"] {
        assert!(w["cycles_per_packet"][figure].as_f64().is_some_and(|c| c > 0.0), "{figure}: {w}");
    }
    let s = &status["stages"][0];
    assert_eq!((&s["name"], &s["kind"]), (&"sw".into(), &"l2switch".into()));
    for path in ["/worker", "/packets", "/calls"] {
        is_count(s, path);
    }
    for path in ["/capacity", "/available", "/cache_hits", "/cache_misses"] {
        is_count(&status["pools"][0], path);
    }
    assert_eq!(status["pools"][0]["available"], status["pools"][0]["capacity"], "all buffers are back");
    for term in ["received", "created", "sent", "consumed", "held", "dropped", "unexplained"] {
        is_count(&status["conservation"], &format!("/{term}"));
    }
    assert!(status["lints"].is_array());
}

#[test]
fn for_people_there_is_progress_on_stderr_and_a_summary_on_stdout() {
    let _turn = turn();
    let ended = run("demo --for 1200ms --link gen4x16").expect(0);
    let line = ended.stderr.lines().find(|l| l.contains("M packets/s"));
    let line = line.unwrap_or_else(|| panic!("no line after a second: {}", ended.stderr));
    for words in ["cycles/packet", "idle", "drops 0", "gen4x16 up"] {
        assert!(line.contains(words), "{words}: {line}");
    }
    let words = [
        "1.2 s of 64 B frames",
        "PCIe gen4x16 (modelled",
        "drops by reason",
        "unexplained 0\n",
        "checker: each of ",
    ];
    for words in words {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
    assert!(
        !ended.stderr.contains("checker") && !ended.stdout.contains("{"),
        "{}{}",
        ended.stderr,
        ended.stdout
    );
}

#[test]
fn a_reader_that_has_gone_away_is_no_reason_to_fail() {
    let _turn = turn();
    for json in ["", "--json"] {
        let ended =
            Process::start(ringwright(&format!("demo --for 300ms {json}")).stdout(closed())).end().expect(0);
        assert!(!ended.stderr.contains("ringwright: "), "{}", ended.stderr);
    }
}

#[test]
fn results_that_find_no_room_are_missed() {
    let _turn = turn();
    for json in ["", "--json"] {
        let ended =
            Process::start(ringwright(&format!("demo --for 300ms {json}")).stdout(full())).end().expect(1);
        assert!(ended.stderr.contains("ringwright: the results could not be written"), "{}", ended.stderr);
    }
}

#[test]
fn a_run_goes_on_when_nobody_hears_of_its_progress() {
    let _turn = turn();
    // Two workers on one core, so that there is a warning as well as a line after a second.
    let core = cores()[0];
    let args = format!("demo --for 1200ms --worker-core {core},{core}");
    for stderr in [closed(), full()] {
        let ended = Process::start(ringwright(&args).stderr(stderr)).end().expect(0);
        assert!(ended.stdout.contains("checker: each of "), "{}", ended.stdout);
    }
    let ended = Process::start(ringwright("demo --pages 3M").stderr(full())).end();
    assert_eq!((ended.code(), &*ended.stdout), (Some(2), ""), "{}", ended.status);
    let ended = Process::start(ringwright("demo --buffers 64").stderr(closed())).end();
    assert_eq!((ended.code(), &*ended.stdout), (Some(2), ""), "{}", ended.status);
}

#[test]
fn the_log_says_as_much_as_asked() {
    let _turn = turn();
    let core = cores()[0];
    let args = format!("demo --for 300ms --worker-core {core},{core}");
    let log = |level: &str| {
        let ended = Process::start(ringwright(&args).env("RINGWRIGHT_LOG", level)).end().expect(0);
        assert!(ended.stdout.contains("core_shared"), "lints are results as well: {}", ended.stdout);
        ended.stderr
    };
    let (off, warn, info) = (log("off"), log("warn"), log("info"));
    assert!(!off.contains("WARN"), "{off}");
    assert!(warn.contains("WARN core_shared") && !warn.contains("INFO"), "{warn}");
    assert!(info.contains("WARN") && info.contains("INFO"), "{info}");
    let ended = Process::start(ringwright(&format!("{args} --log off")).env("RINGWRIGHT_LOG", "info"))
        .end()
        .expect(0);
    assert!(!ended.stderr.contains("INFO"), "the option goes before the environment: {}", ended.stderr);
    assert!(!info.contains('\u{1b}'), "colours are for terminals: {info}");
}
