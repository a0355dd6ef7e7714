//! `ringwright gen`: what it refuses, what it counts, and how it ends.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::rig::{BINARY, Ended, Process, cores, has, is_root, program, ringwright, run, skip, turn};

/// Two ports of a pair: what leaves by one comes back by the other.
const PAIR: &str = "gen --tx null:peer=rx --rx null:peer=tx";

#[track_caller]
fn refused(args: &str, helpful: &[&str]) {
    let ended = run(&format!("gen {args}")).expect(2);
    assert_eq!(ended.stdout, "", "{args}");
    for words in helpful {
        assert!(ended.stderr.contains(words), "`gen {args}` should say {words:?}: {}", ended.stderr);
    }
}

#[test]
fn ports_that_cannot_be() {
    refused("", &["--tx <PORT>"]);
    refused("--tx", &["--tx <PORT>"]);
    refused("--tx nulll", &["--tx", "there is no driver \"nulll\"", "did you mean null?"]);
    refused("--tx zz", &["there are ", "gen", "null", "pcap"]);
    refused("--tx null --rx Null", &["\"Null\" is no name of a driver", "DRIVER:KEY=VALUE"]);
    refused("--tx null:peer", &["\"peer\" has no value"]);
    refused("--tx null:pear=rx", &["--tx: null: pear: is not known; did you mean peer?"]);
    refused("--tx null --rx null:size=1", &["--rx: null: size: 1 is not a whole number"]);
}

#[test]
fn traffic_that_cannot_be() {
    for size in ["0", "63", "65536", "64:0", "big", "-1", "64,,65"] {
        refused(&format!("--tx null --size {size}"), &[size, "--size"]);
    }
    refused("--tx null --size 20000", &["20000 is more than a buffer takes"]);
    refused("--tx null --dst 2001:2::/64", &["64 is too short", "84"]);
    refused(
        "--tx null --src 10.0.0.0/8 --dst 2001:2::/64",
        &["--src and --dst", "two of IPv4 or two of IPv6"],
    );
    refused("--tx null --src 10.0.0.0/33", &["10.0.0.0/33", "--src"]);
    for rate in ["0", "-1", "fast", "1T"] {
        refused(&format!("--tx null --rate {rate}"), &[rate, "--rate", "or max"]);
    }
    for flows in ["0", "65537", "-1"] {
        refused(&format!("--tx null --flows {flows}"), &[flows, "--flows", "1..=65536"]);
    }
    refused("--tx null --count -1", &["-1", "--count"]);
    refused("--tx null --for 0s", &["--for", "use 500ms, 10s or 5m"]);
    refused("--tx null --dst-mac 02:00", &["02:00", "six pairs"]);
    refused("--tx null --worker-core 4096", &["--worker-core", "may not use core 4096", "it may use core"]);
    refused("--tx null --buffers 64", &["the pool has 64"]);
    refused("--tx null --node 999", &["node 999 does not exist"]);
}

#[test]
fn help_names_each_option() {
    let help = run("gen --help").expect(0).stdout;
    for option in [
        "tx",
        "rx",
        "flows",
        "size",
        "rate",
        "count",
        "for",
        "json",
        "worker-core",
        "buffers",
        "pages",
        "node",
        "src",
        "dst",
        "src-mac",
        "dst-mac",
    ] {
        assert!(help.contains(&format!("--{option}")), "--{option}: {help}");
    }
}

#[track_caller]
fn figures(ended: Ended) -> (Value, Value) {
    let ended = ended.expect(0);
    let said = ended.stderr.lines().next().unwrap_or_default();
    assert!(said.starts_with("ceiling of this generator on core "), "first of all: {}", ended.stderr);
    let all = ended.json();
    assert_eq!((&all["schema"], &all["conservation"]["unexplained"]), (&1.into(), &0.into()), "{all}");
    (all["gen"].clone(), all)
}

/// The counts of a run over the pair in which all came back.
#[track_caller]
fn clean(args: &str) -> Value {
    let _turn = turn();
    let (g, _) = figures(run(&format!("{PAIR} --json {args}")));
    for none in ["lost", "duplicated", "reordered", "corrupted", "too_late", "foreign"] {
        assert_eq!(g[none], 0, "{none}: {g}");
    }
    assert_eq!(g["sent"], g["received"], "{g}");
    g
}

#[test]
fn a_count_is_sent_to_the_frame_and_comes_back() {
    let core = *cores().last().expect("a core");
    for (args, count) in [
        ("--count 10000", 10_000),
        ("--count 1 --flows 1", 1),
        ("--count 0", 0),
        ("--count 5000 --size imix --flows 1000", 5000),
        ("--count 777 --size 9000", 777),
        ("--count 5000 --size 84:3,1518:1 --dst 2001:2::/64", 5000),
    ] {
        let g = clean(&format!("{args} --worker-core {core}"));
        assert_eq!(g["sent"], count, "{args}");
        assert_eq!(g["latency_ns"].is_object(), count > 0, "{args}: {g}");
        let ceiling = &g["ceiling"];
        assert_eq!((&ceiling["how"], &ceiling["core"]), (&"gen to gen".into(), &core.into()));
        assert!(ceiling["packets_per_second"].as_f64().is_some_and(|p| p > 0.0), "{ceiling}");
        assert!(g["limited_by_generator"].is_boolean());
    }
}

#[test]
fn latency_goes_up_from_its_least_to_its_most() {
    let g = clean("--count 20000");
    let l: Vec<_> = ["min", "p50", "p99", "p999", "max"]
        .map(|k| g["latency_ns"][k].as_u64().unwrap_or_else(|| panic!("{k}: {g}")))
        .into();
    assert!(l.is_sorted() && l[4] > 0, "{l:?}");
}

#[test]
fn a_rate_is_never_exceeded_and_what_was_asked_is_said() {
    let _turn = turn();
    let (g, all) = figures(run(&format!("{PAIR} --json --rate 10K --for 500ms")));
    let (sent, ran) = (g["sent"].as_u64().expect("a count"), all["elapsed_s"].as_f64().expect("seconds"));
    assert!(sent > 0 && sent as f64 <= 10_000.0 * ran + 1.0, "{sent} in {ran} s");
    let asked = [&g["rate"]["asked_packets_per_second"], &g["rate"]["asked_wire_bits_per_second"]];
    assert_eq!(asked.map(|v| v.as_f64()), [Some(10_000.0), Some(6_720_000.0)]);
    assert!(g["rate"]["skipped"].is_u64() && g["rate"]["sent_packets_per_second"].is_f64(), "{g}");
    let (g, _) = figures(run(&format!("{PAIR} --json --count 100 --rate 672Mbps")));
    assert_eq!(g["rate"]["asked_packets_per_second"], 1_000_000.0);
    let (g, _) = figures(run(&format!("{PAIR} --json --count 100")));
    assert_eq!(g["rate"]["asked_packets_per_second"], Value::Null, "as many as can be");
}

#[test]
fn where_nothing_can_come_back_loss_is_unknown() {
    let _turn = turn();
    for args in ["--tx null", "--tx null:peer=rx --rx none", "--tx null --rx none"] {
        let (g, all) = figures(run(&format!("gen {args} --count 1000 --json")));
        assert_eq!((&g["sent"], &g["ceiling"]["how"]), (&1000.into(), &"gen alone".into()));
        for unknown in
            ["rx", "received", "lost", "duplicated", "reordered", "corrupted", "foreign", "latency_ns"]
        {
            assert_eq!(g.get(unknown), Some(&Value::Null), "{unknown} with {args}: {g}");
        }
        assert_eq!(all["ports"][1]["tx"]["packets"], 1000);
    }
    let ended = run("gen --tx null --count 1000").expect(0);
    assert!(ended.stdout.contains("what became of them is unknown"), "{}", ended.stdout);
}

/// A file of this test's, gone when it ends.
struct Scratch(PathBuf);
impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("ringwright-gen-{}-{name}", std::process::id())))
    }
}
impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn frames_go_to_a_file_and_those_of_another_run_are_foreign() {
    let _turn = turn();
    let file = Scratch::new("there.pcap");
    let path = file.0.display();
    let (g, all) = figures(run(&format!("gen --tx pcap:write={path} --size 64:1,128:1 --count 500 --json")));
    assert_eq!((&g["sent"], &g["lost"]), (&500.into(), &Value::Null));
    assert_eq!(all["ports"][1]["device"]["tx_sent"], 500);
    let bytes = fs::metadata(&file.0).expect("a file").len();
    assert_eq!(bytes, 24 + 500 * 16 + 250 * (60 + 124), "header, records, frames");

    let args = format!("gen --tx null:peer=x --rx pcap:read={path} --count 100 --for 1s --json");
    let (g, _) = figures(run(&args));
    assert_eq!((&g["sent"], &g["lost"], &g["foreign"]), (&100.into(), &100.into(), &500.into()), "{g}");
    assert_eq!((&g["received"], &g["latency_ns"]), (&0.into(), &Value::Null));
}

#[test]
fn a_file_that_cannot_be_written_is_a_failure() {
    let ended = run("gen --tx pcap:write=/nowhere/at/all.pcap --count 1");
    assert!(matches!(ended.code(), Some(1 | 2)) && ended.stdout.is_empty(), "{}", ended.stderr);
    assert!(ended.stderr.contains("--tx: pcap: ") && ended.stderr.contains("/nowhere"), "{}", ended.stderr);
}

#[test]
fn for_people_there_is_a_line_a_second_and_a_summary() {
    let _turn = turn();
    let ended = run(&format!("{PAIR} --for 1200ms --rate 1K")).expect(0);
    let line = ended.stderr.lines().find(|l| l.contains("not back"));
    let line = line.unwrap_or_else(|| panic!("no line after a second: {}", ended.stderr));
    for words in ["sent", "received", "reordered 0", "duplicated 0", "corrupted 0", "latency"] {
        assert!(line.contains(words), "{words}: {line}");
    }
    for words in [
        "64 B, 64 flows by null, back by null",
        "ceiling of this generator on core",
        "asked     1.0 k/s packets, 672.00 kbit/s on the wire",
        "unexplained: 0",
        "came back once, unchanged and in order",
    ] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
}

#[test]
fn either_signal_ends_a_run_with_a_result() {
    let _turn = turn();
    for signal in ["INT", "TERM"] {
        let mut p = Process::start(&mut ringwright(&format!("{PAIR} --for 60s --json --rate 100K")));
        p.until_said("not back");
        p.signal(signal);
        let (g, all) = figures(p.end_within(Duration::from_secs(10)));
        assert!(all["elapsed_s"].as_f64().is_some_and(|s| s < 60.0));
        assert_eq!((&g["lost"], &g["sent"]), (&0.into(), &g["received"]));
    }
}

/// Runs `gen` in a network namespace of its own, which goes with it, between the ends of a virtual cable.
fn on_a_cable(args: &str) -> Option<Ended> {
    if !is_root() || !has("ip") || !has("unshare") {
        skip("network namespaces need root, unshare and ip");
        return None;
    }
    let script = "ip link add name va type veth peer name vb || exit 99; \
                  ip link set dev va up && ip link set dev vb up && exec \"$0\" gen --json --tx packet:interface=va \"$@\"";
    let mut words = vec!["unshare", "-n", "sh", "-c", script, BINARY];
    words.extend(args.split_whitespace());
    let ended = Process::start(&mut program(&words)).end();
    if ended.code() == Some(99) || ended.stderr.starts_with("unshare:") {
        skip(&format!("no virtual cable: {}", ended.stderr.trim()));
        return None;
    }
    Some(ended)
}

#[test]
fn frames_cross_a_cable_between_two_interfaces() {
    let _turn = turn();
    for (args, count) in [
        ("--count 3000 --rate 20K", 3000),
        ("--count 2000 --rate 20K --size imix --flows 100", 2000),
        ("--count 1000 --rate 20K --size 84:1,1514:1 --dst 2001:2::/64", 1000),
    ] {
        let Some(ended) = on_a_cable(&format!("--rx packet:interface=vb {args}")) else { return };
        let (g, _) = figures(ended);
        let n = |key: &str| g[key].as_u64().unwrap_or_else(|| panic!("{key}: {g}"));
        // The kernel may lose frames where it has a lot else to do; everything else would be a fault.
        assert_eq!((n("sent"), n("received") + n("lost")), (count, count), "{g}");
        assert!(n("received") > 0 && g["latency_ns"]["min"].as_u64() > Some(0), "{g}");
        assert_eq!((n("corrupted"), n("duplicated"), n("reordered"), n("too_late")), (0, 0, 0, 0), "{g}");
        assert_eq!((&g["tx"], &g["rx"]), (&"packet".into(), &"packet".into()));
    }
}

#[test]
fn a_cable_without_a_reflector_loses_all() {
    let _turn = turn();
    let Some(ended) = on_a_cable("--count 100 --rate 10K") else { return };
    let (g, _) = figures(ended);
    assert_eq!((&g["sent"], &g["received"], &g["lost"]), (&100.into(), &0.into(), &100.into()), "{g}");
    assert_eq!(g["dropped_by_tx"], 0, "they left");
}

#[test]
fn frames_longer_than_the_interface_takes_are_refused() {
    let Some(ended) = on_a_cable("--count 100 --size 2000") else { return };
    let ended = ended.expect(2);
    assert!(ended.stderr.contains("1996 bytes asked, packet takes 60 to"), "{}", ended.stderr);
}
