//! Wrong usage: exit code 2, what would be right on stderr, nothing on stdout, nothing started.

use crate::rig::{BINARY, Process, program, ringwright, run};

#[track_caller]
fn refused(args: &str, helpful: &[&str]) {
    let ended = run(args).expect(2);
    assert_eq!(ended.stdout, "", "{args}");
    for words in helpful {
        assert!(ended.stderr.contains(words), "`{args}` should say {words:?}: {}", ended.stderr);
    }
}

#[test]
fn no_command_shows_the_commands() {
    refused("", &["Usage: ringwright", "Commands:", "demo"]);
}

#[test]
fn asking_for_help_or_the_version_is_right_usage() {
    for (args, says) in
        [("--help", "demo"), ("demo --help", "--frame"), ("--version", env!("CARGO_PKG_VERSION"))]
    {
        let ended = run(args).expect(0);
        assert!(ended.stdout.contains(says), "{args}: {}", ended.stdout);
        assert_eq!(ended.stderr, "", "{args}");
    }
}

#[test]
fn help_names_each_option_with_its_default() {
    let help = run("demo --help").expect(0).stdout;
    for option in [
        "for",
        "frame",
        "link",
        "json",
        "flows",
        "worker-core",
        "device-core",
        "pages",
        "node",
        "buffers",
        "ring",
    ] {
        assert!(help.contains(&format!("--{option}")), "--{option}: {help}");
    }
    for default in ["10s", "64", "gen3x8", "any", "8192", "512", "warn"] {
        assert!(help.contains(&format!("[default: {default}]")), "{default}: {help}");
    }
}

#[test]
fn words_that_are_no_command_or_option() {
    refused("demonstrate", &["'demonstrate'", "--help"]);
    refused("demo extra", &["'extra'"]);
    refused("demo --fraem 64", &["'--fraem'", "--frame"]);
    refused("--no-such-thing demo", &["'--no-such-thing'"]);
    refused("demo --json=yes", &["'yes'", "--json"]);
    refused("demo --frame", &["--frame <SIZE>"]);
    refused("demo --frame 64 --frame 65", &["--frame <SIZE>", "multiple times"]);
}

#[test]
fn frames_that_cannot_be() {
    for frame in ["0", "63", "9601", "banana", "-1", "64.5", "99999999999999999999"] {
        refused(&format!("demo --frame {frame}"), &[frame, "--frame", "64 to 9600", "imix"]);
    }
}

#[test]
fn times_that_cannot_be() {
    for time in ["0s", "banana", "10", "99999999999999999999s"] {
        refused(&format!("demo --for {time}"), &[time, "--for", "use 500ms, 10s or 5m"]);
    }
}

#[test]
fn links_that_cannot_be() {
    refused("demo --link gen9x3", &["gen9x3", "generation 9", "1, 2, 3, 4, 5 or 6"]);
    refused("demo --link gen3x3", &["gen3x3", "1, 2, 4, 8"]);
    for link in ["gen3", "x8", "fast"] {
        refused(&format!("demo --link {link}"), &[link, "gen3x8"]);
    }
}

#[test]
fn rings_that_cannot_be() {
    for ring in ["0", "7", "48", "16384", "banana", "-8"] {
        refused(&format!("demo --ring {ring}"), &[ring, "--ring", "power of two from 8 to 8192"]);
    }
}

#[test]
fn other_numbers_that_cannot_be() {
    for flows in ["0", "4097", "-1"] {
        refused(&format!("demo --flows {flows}"), &[flows, "--flows", "1..=4096"]);
    }
    refused("demo --pages 3M", &["3M", "--pages", "\"1G\", \"2M\", \"4K\" or \"any\""]);
    refused("demo --worker-core 0,", &["--worker-core"]);
    refused("demo --worker-core -1", &["-1", "--worker-core"]);
    refused("demo --device-core one", &["one", "--device-core"]);
    refused("demo --node -1", &["-1", "--node"]);
    refused("demo --buffers many", &["many", "--buffers"]);
}

#[test]
fn levels_of_the_log() {
    let levels = ["off", "error", "warn", "info"];
    refused("demo --log loud", &[&["loud", "--log"], &levels[..]].concat());
    let ended = Process::start(ringwright("demo").env("RINGWRIGHT_LOG", "loud")).end().expect(2);
    assert_eq!(ended.stdout, "");
    for words in ["loud", "--log"].iter().chain(&levels) {
        assert!(ended.stderr.contains(words), "{words:?}: {}", ended.stderr);
    }
}

#[test]
#[cfg(unix)]
fn arguments_that_are_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let odd = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    for before in [&["demo", "--frame"][..], &["demo"], &[]] {
        let ended = Process::start(program(&[BINARY]).args(before).arg(odd)).end().expect(2);
        assert_eq!(ended.stdout, "");
        assert!(ended.stderr.contains("error"), "{}", ended.stderr);
    }
}
