//! What others make of the metrics: two parsers that are not ours.

use std::process::{Command, Stdio};

use ringwright_rt::telemetry::Limits;

use crate::host::{Fake, exporter, fetch};
use crate::live;

/// Reads OpenMetrics from stdin with the reference parser, and counts families and samples.
const PARSE: &str = "
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
families = list(parse(sys.stdin.read()))
names = [f.name for f in families]
assert len(names) == len(set(names)), 'a family is there twice'
assert all(f.documentation for f in families), 'a family has no help'
print(len(families), sum(len(f.samples) for f in families))
";

fn pipe(command: &mut Command, text: &str) -> (bool, String) {
    use std::io::Write;
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = spawned else { return (false, "not there".to_owned()) };
    let fed = child.stdin.take().unwrap().write_all(text.as_bytes());
    let out = child.wait_with_output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    (out.status.success() && fed.is_ok(), said)
}

/// A Python that has the parser.
fn python() -> Option<&'static str> {
    ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        let import = ["-c", "import prometheus_client.openmetrics.parser"];
        let found = Command::new(python).args(import).stdin(Stdio::null()).stderr(Stdio::null()).status();
        found.is_ok_and(|s| s.success())
    })
}

fn scrape(accept: &str) -> String {
    let runtime = live::Running::start();
    let e = exporter(runtime.host.clone(), Limits::default());
    // The second scrape also has what the first cost.
    let accept = format!("Accept: {accept}\r\n");
    fetch(e.address(), "GET", "/metrics", &accept);
    fetch(e.address(), "GET", "/metrics", &accept).body
}

#[test]
fn the_reference_parser_reads_it() {
    let Some(python) = python() else {
        eprintln!("SKIPPED: no Python with prometheus_client (Debian: python3-prometheus-client)");
        return;
    };
    let text = scrape("application/openmetrics-text");
    let (read, said) = pipe(Command::new(python).args(["-c", PARSE]), &text);
    assert!(read, "{said}\n{text}");
    let counts: Vec<usize> = said.split_whitespace().map(|n| n.parse().unwrap()).collect();
    assert!(counts[0] > 25 && counts[1] > 100, "{said}");
    // The parser does find faults.
    for (from, to) in
        [("# EOF\n", ""), ("# TYPE ringwright_port_up gauge\n", "# TYPE ringwright_port_up counter\n")]
    {
        assert!(text.contains(from));
        assert!(!pipe(Command::new(python).args(["-c", PARSE]), &text.replace(from, to)).0);
    }
}

#[test]
fn promtool_has_nothing_to_say() {
    if Command::new("promtool").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err()
    {
        eprintln!("SKIPPED: no promtool (Debian: prometheus)");
        return;
    }
    let text = scrape("text/plain");
    let check = || {
        let mut c = Command::new("promtool");
        c.args(["check", "metrics"]);
        c
    };
    let (good, said) = pipe(&mut check(), &text);
    assert!(good && said.trim().is_empty(), "{said}");
    let (good, _) = pipe(&mut check(), &format!("{text}ringwright_port_up{{port=\"p\" 1\n"));
    assert!(!good);
}

#[test]
fn an_instance_without_anything_is_valid_too() {
    let Some(python) = python() else {
        eprintln!("SKIPPED: no Python with prometheus_client (Debian: python3-prometheus-client)");
        return;
    };
    let fake = Fake::new();
    fake.lock().unwrap().ports.clear();
    let e = exporter(fake, Limits::default());
    let text = fetch(e.address(), "GET", "/metrics", "").body;
    let (read, said) = pipe(Command::new(python).args(["-c", PARSE]), &text);
    assert!(read, "{said}\n{text}");
}
