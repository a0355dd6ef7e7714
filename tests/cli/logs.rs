//! What is said on stderr, and how.

use serde_json::Value;

use crate::rig::{BINARY, Process, cores, program, turn};

/// Everything that is said on stderr during a short run that has something to warn of.
fn said(args: &[&str]) -> Vec<String> {
    let _turn = turn();
    let core = cores()[0].to_string();
    let mut c = program(&[BINARY, "demo", "--for", "1200ms", "--worker-core", &core, "--device-core", &core]);
    let ended = Process::start(c.args(args)).end().expect(0);
    ended.stderr.lines().map(str::to_owned).collect()
}

#[test]
fn json_is_one_object_for_each_line_also_of_progress() {
    let lines = said(&["--log-format", "json", "--log", "info"]);
    let objects: Vec<Value> =
        lines.iter().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect();
    for o in &objects {
        for key in ["time", "level", "target", "message"] {
            assert!(o[key].as_str().is_some_and(|s| !s.is_empty()), "{key}: {o}");
        }
    }
    let has = |level: &str, words: &str| {
        objects
            .iter()
            .any(|o| o["level"] == level && o["message"].as_str().is_some_and(|m| m.contains(words)))
    };
    assert!(has("info", "M packets/s"), "progress: {lines:?}");
    let driver = |o: &Value| o["target"].as_str().is_some_and(|t| t.starts_with("ringwright_ixgbe"));
    assert!(objects.iter().any(driver), "the driver: {lines:?}");
}

#[test]
fn levels_go_by_target() {
    let lines = said(&["--log", "off,ringwright_ixgbe=info"]);
    assert!(lines.iter().any(|l| l.contains("INFO")), "{lines:?}");
    let lines = said(&["--log", "info,ringwright_ixgbe=off"]);
    assert!(!lines.iter().any(|l| l.contains("reset")), "{lines:?}");
}
