//! Runs that must be clean: every frame arrives once, unchanged and in order, and every packet is accounted for.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::rig::{
    BINARY, Process, assert_clean, can_lock, clean, cores, is_root, lints, ports, program, ringwright, skip,
    turn,
};

fn count(v: &Value) -> u64 {
    v.as_u64().unwrap_or_else(|| panic!("not a count: {v}"))
}

#[test]
fn frames_of_all_sizes() {
    for frame in [64, 65, 1514, 1518, 2000, 9600] {
        let status = clean(&format!("--frame {frame}"));
        for p in ports(&status) {
            let bytes = count(&p["rx"]["packets"]) * (frame - 4);
            assert_eq!(
                p["rx"]["bytes"], bytes,
                "{frame} bytes with the check sequence, which is not counted: {p}"
            );
        }
    }
}

#[test]
fn frames_of_mixed_sizes() {
    let status = clean("--frame imix");
    for p in ports(&status) {
        let mean = count(&p["rx"]["bytes"]) as f64 / count(&p["rx"]["packets"]) as f64;
        // 7 of 64, 4 of 594 and 1 of 1518 bytes, less the check sequence: 357.8, were the last dozen of each flow whole.
        assert!((300.0..420.0).contains(&mean), "{mean}");
    }
}

#[test]
fn small_rings_and_frames_that_take_all_of_them() {
    clean("--ring 8");
    clean("--ring 8 --frame 9600");
}

#[test]
fn as_many_flows_as_may_be() {
    clean("--flows 4096");
    clean("--flows 1");
}

#[test]
fn two_workers_share_the_flows() {
    let mine = cores();
    let [a, .., b] = mine[..] else { return skip("two workers need two cores") };
    let status = clean(&format!("--worker-core {a},{b}"));
    for w in status["workers"].as_array().expect("workers") {
        assert!(count(&w["packets"]) > 0, "{w}");
    }
    for queue in ports(&status).flat_map(|p| p["queues"].as_array().expect("queues")) {
        assert_eq!(queue["worker"], queue["id"], "{queue}");
        assert!(count(&queue["rx"]["packets"]) > 0, "{queue}");
    }
    assert_eq!(status["demo"]["worker_cores"], serde_json::json!([a, b]));
}

#[test]
fn two_workers_on_one_core_are_warned_about() {
    let _turn = turn();
    let core = *cores().last().expect("a core");
    let args = format!("demo --json --for 300ms --worker-core {core},{core}");
    let ended = Process::start(&mut ringwright(&args)).end();
    let warning = format!("workers 0 and 1 share core {core}");
    assert!(ended.stderr.contains(&warning) && ended.stderr.contains("core_shared"), "{}", ended.stderr);
    let status = assert_clean(ended);
    let all = status["lints"].as_array().expect("lints");
    let lint = all.iter().find(|l| l["message"].as_str().is_some_and(|m| m.contains(&warning)));
    let lint = lint.unwrap_or_else(|| panic!("{all:?}"));
    assert_eq!((&lint["lint"], &lint["object"]), (&"core_shared".into(), &format!("core {core}").into()));
}

#[test]
fn a_worker_on_the_devices_core_is_warned_about() {
    let core = cores()[0];
    let status = clean(&format!("--worker-core {core} --device-core {core}"));
    assert!(lints(&status).contains(&"core_shared"), "{}", status["lints"]);
}

#[test]
fn without_superpages_it_runs_and_says_what_that_costs() {
    if !can_lock() {
        return skip("ordinary pages cannot be locked: no CAP_IPC_LOCK, and a low memlock limit");
    }
    let _turn = turn();
    let ended = Process::start(&mut ringwright("demo --json --for 300ms --pages 4K")).end();
    for words in ["pages_small", "TLB", "make setup"] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    let status = assert_clean(ended);
    assert!(lints(&status).contains(&"pages_small"), "{}", status["lints"]);
    assert_eq!(status["pools"][0]["pages"], "4K");
}

#[test]
fn an_unwritable_run_directory_does_not_matter() {
    if !is_root() {
        return skip("only root can make /run unwritable for one process");
    }
    let _turn = turn();
    // 99 is none of the command's exit codes.
    let script = "mount --bind /run /run && mount -o remount,bind,ro /run || exit 99; \
                  touch /run/ringwright-probe 2>/dev/null && exit 99; exec \"$0\" \"$@\"";
    let words = ["unshare", "-m", "sh", "-c", script, BINARY, "demo", "--json", "--for", "300ms"];
    let ended = Process::start(&mut program(&words)).end();
    // unshare itself fails with 1.
    if ended.code() == Some(99) || ended.stderr.starts_with("unshare:") {
        return skip(&format!("/run cannot be made unwritable for one process: {}", ended.stderr.trim()));
    }
    assert_clean(ended);
}

#[test]
fn nothing_is_left_in_the_working_directory() {
    let _turn = turn();
    let dir = std::env::temp_dir().join(format!("ringwright-cli-{}", std::process::id()));
    fs::create_dir(&dir).expect("a new directory");
    let ended = Process::start(ringwright("demo --json --for 300ms").current_dir(&dir)).end();
    let left: Vec<_> = fs::read_dir(&dir).expect("still there").collect();
    fs::remove_dir_all(&dir).expect("ours");
    assert!(left.is_empty(), "{left:?}");
    assert_clean(ended);
}

#[test]
fn two_at_once() {
    let _turn = turn();
    let both = [(), ()].map(|()| Process::start(&mut ringwright("demo --json --for 1s")));
    for p in both {
        assert_clean(p.end());
    }
}

#[test]
fn one_core_for_everything_is_enough() {
    let _turn = turn();
    let core = cores()[0].to_string();
    if !crate::rig::has("taskset") {
        return skip("taskset is not there");
    }
    let words = ["taskset", "-c", &core, BINARY, "demo", "--json", "--for", "300ms"];
    let status = assert_clean(
        Process::start(program(&words).stderr(Stdio::null())).end_within(Duration::from_secs(30)),
    );
    assert_eq!(status["demo"]["worker_cores"][0].to_string(), core);
}
