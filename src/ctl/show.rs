//! Results for people. What is not there is shown as `-`: another version may leave things out.

use std::fmt::Write;
use std::time::Duration;

use rt::control::{Command, Request};
use serde_json::Value;

use crate::units::Apart;

/// One line on what was done.
pub fn done(request: &Request, result: &Value) -> String {
    let r = |key: &str| text(&result[key]);
    match request {
        Request::Status => status(&Value::Null, result, None),
        Request::Hello => format!(
            "{} (process {}): ringwright {}, protocol {}; commands: {}",
            r("name"),
            r("pid"),
            r("version"),
            r("protocol"),
            list(&result["commands"]).map(text).collect::<Vec<_>>().join(", ")
        ),
        Request::Change(Command::AddPort { .. }) => {
            format!(
                "port {} is open, its queues ({}) are with worker {}",
                r("port"),
                r("queues"),
                r("worker")
            )
        }
        Request::Change(Command::RemovePort { .. }) => format!("port {} is closed", r("port")),
        Request::Change(Command::MoveQueue { .. }) => {
            format!("queue {} went from worker {} to worker {}", r("queue"), r("from"), r("worker"))
        }
        Request::Change(Command::SetBatching { .. }) => {
            format!("port {}: tail writes after {} packets or {}", r("port"), r("packets"), r("delay"))
        }
        Request::Change(Command::SetLog { .. }) => format!("log: {}", r("filter")),
        Request::Change(Command::Shutdown) => "it is stopping".to_owned(),
        Request::Change(other) => format!("{}: done", other.name()),
    }
}

fn text(v: &Value) -> String {
    match v {
        Value::Null => "-".to_owned(),
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}

fn list(v: &Value) -> impl Iterator<Item = &Value> {
    v.as_array().into_iter().flatten()
}

/// A count with its thousands apart.
fn count(v: &Value) -> String {
    v.as_u64().map_or_else(|| text(v), |n| Apart(n).to_string())
}

/// Rows of cells, the first row a heading. Columns that `left` names are text.
fn table(rows: &[Vec<String>], left: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (c, cell) in row.iter().enumerate() {
            let w = widths[c];
            let _ =
                if left.contains(&c) { write!(line, "{cell:<w$}  ") } else { write!(line, "{cell:>w$}  ") };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

fn heading(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

/// A status, as tables; with rates when there is an earlier one.
pub fn status(hello: &Value, now: &Value, before: Option<&Value>) -> String {
    let mut out = String::new();
    if hello.is_object() {
        let _ = write!(out, "{} (process {}): ", text(&hello["name"]), text(&hello["pid"]));
    }
    let up = Duration::try_from_secs_f64(now["elapsed_s"].as_f64().unwrap_or(0.0)).unwrap_or_default();
    let up = Duration::from_millis(up.as_millis() as u64 / 100 * 100);
    let up = humantime::format_duration(up);
    let _ = writeln!(out, "ringwright {}, up {up}\n", text(&now["version"]));
    out += &ports(now, before);
    out += &workers(now);
    out += &stages(now);
    let c = &now["conservation"];
    let n = |key: &str| count(&c[key]);
    let unexplained =
        if c["unexplained"].is_null() { "not known while it runs".to_owned() } else { n("unexplained") };
    let _ = writeln!(
        out,
        "\naccounts: received {} + created {}, sent {}, consumed {}, held {}, dropped {}; unexplained: {unexplained}",
        n("received"),
        n("created"),
        n("sent"),
        n("consumed"),
        n("held"),
        n("dropped")
    );
    for l in list(&now["lints"]) {
        let _ = writeln!(out, "{}: {}", text(&l["lint"]), text(&l["message"]));
    }
    out
}

fn ports(now: &Value, before: Option<&Value>) -> String {
    let mut head = heading(&["port", "driver", "link", "queue:worker", "received", "sent", "dropped"]);
    if before.is_some() {
        head.extend(heading(&["rx/s", "tx/s"]));
    }
    let mut rows = vec![head];
    for p in list(&now["ports"]) {
        let owner = |q: &Value| format!("{}:{}", text(&q["id"]), text(&q["worker"]));
        let dropped =
            p["drops"].as_object().into_iter().flatten().filter_map(|(_, n)| n.as_u64()).sum::<u64>();
        let mut row = vec![
            text(&p["name"]),
            text(&p["driver"]),
            link(&p["link"]),
            list(&p["queues"]).map(owner).collect::<Vec<_>>().join(" "),
            count(&p["rx"]["packets"]),
            count(&p["tx"]["packets"]),
            count(&dropped.into()),
        ];
        if let Some(before) = before {
            let old = list(&before["ports"]).find(|o| o["name"] == p["name"]);
            let seconds = now["elapsed_s"].as_f64().zip(before["elapsed_s"].as_f64()).map(|(a, b)| a - b);
            for way in ["rx", "tx"] {
                let grown = old.and_then(|o| grown(&p[way]["packets"], &o[way]["packets"]));
                let rate =
                    grown.zip(seconds.filter(|s| *s > 0.0)).map(|(n, s)| (n as f64 / s).round() as u64);
                row.push(rate.map_or_else(|| "-".to_owned(), |r| count(&r.into())));
            }
        }
        rows.push(row);
    }
    table(&rows, &[0, 1, 2, 3])
}

fn grown(now: &Value, before: &Value) -> Option<u64> {
    now.as_u64()?.checked_sub(before.as_u64()?)
}

fn link(l: &Value) -> String {
    let speed = match l["speed_bps"].as_u64() {
        Some(bps) if bps >= 1_000_000_000 => format!(" {}G", bps as f64 / 1e9),
        Some(bps) => format!(" {}M", bps as f64 / 1e6),
        None => String::new(),
    };
    match l["up"].as_bool() {
        Some(true) => format!("up{speed}"),
        Some(false) => "down".to_owned(),
        None => "-".to_owned(),
    }
}

fn workers(now: &Value) -> String {
    let mut rows = vec![heading(&["worker", "core", "role", "packets", "cycles/packet", "idle"])];
    for w in list(&now["workers"]) {
        let c = &w["cycles"];
        let idle = c["idle"].as_u64().zip(c["useful"].as_u64()).filter(|(i, u)| i + u > 0);
        let idle = idle.map(|(i, u)| format!("{:.0} %", i as f64 * 100.0 / (i + u) as f64));
        let mean = w["cycles_per_packet"]["mean"].as_f64().map(|m| format!("{m:.0}"));
        rows.push(vec![
            text(&w["id"]),
            text(&w["core"]),
            text(&w["role"]),
            count(&w["packets"]),
            mean.unwrap_or_else(|| "-".to_owned()),
            idle.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    if rows.len() > 1 { format!("\n{}", table(&rows, &[2])) } else { String::new() }
}

fn stages(now: &Value) -> String {
    let mut rows = vec![heading(&["stage", "kind", "worker", "packets", "cycles/packet", "dropped"])];
    for s in list(&now["stages"]) {
        let per = s["cycles"].as_u64().zip(s["packets"].as_u64()).filter(|(_, n)| *n > 0);
        let dropped =
            s["drops"].as_object().into_iter().flatten().filter_map(|(_, n)| n.as_u64()).sum::<u64>();
        rows.push(vec![
            text(&s["name"]),
            text(&s["kind"]),
            text(&s["worker"]),
            count(&s["packets"]),
            per.map_or_else(|| "-".to_owned(), |(c, n)| format!("{:.0}", c as f64 / n as f64)),
            count(&dropped.into()),
        ]);
    }
    if rows.len() > 1 { format!("\n{}", table(&rows, &[0, 1])) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn some() -> Value {
        json!({
            "version": "0.1.0", "elapsed_s": 62.54,
            "ports": [
                {"name": "p0", "driver": "packet", "link": {"up": true, "speed_bps": 10_000_000_000_u64},
                 "rx": {"packets": 1_234_567}, "tx": {"packets": 5}, "drops": {"tx_full": 1000, "no_buffer": 1},
                 "queues": [{"id": 0, "worker": 0}, {"id": 1, "worker": null}]},
                {"name": "long-name", "driver": "tap", "link": {"up": false}, "rx": {"packets": 0}, "tx": {}, "queues": []}],
            "workers": [{"id": 0, "core": 1, "role": "rx", "packets": 9, "cycles": {"idle": 1, "useful": 3},
                         "cycles_per_packet": {"mean": 81.6}}],
            "stages": [{"worker": 0, "name": "sw", "kind": "l2switch", "packets": 10, "cycles": 251, "drops": {}}],
            "conservation": {"received": 1_234_567, "created": 0, "sent": 5, "consumed": 0, "held": 0, "dropped": 1001,
                             "unexplained": null},
            "lints": [{"lint": "core_shared", "message": "workers 0 and 1 share core 1"}],
        })
    }

    #[test]
    fn a_status_is_tables() {
        let hello = json!({"name": "sw", "pid": 77});
        let wanted = "\
sw (process 77): ringwright 0.1.0, up 1m 2s 500ms

port       driver  link    queue:worker   received  sent  dropped
p0         packet  up 10G  0:0 1:-       1 234 567     5    1 001
long-name  tap     down                          0     -        0

worker  core  role  packets  cycles/packet  idle
     0     1  rx          9             82  25 %

stage  kind      worker  packets  cycles/packet  dropped
sw     l2switch       0       10             25        0

accounts: received 1 234 567 + created 0, sent 5, consumed 0, held 0, dropped 1 001; unexplained: not known while it runs
core_shared: workers 0 and 1 share core 1
";
        assert_eq!(status(&hello, &some(), None), wanted);
    }

    #[test]
    fn rates_are_of_what_was_there_before() {
        let (mut now, before) = (some(), some());
        now["elapsed_s"] = json!(64.54);
        now["ports"][0]["rx"]["packets"] = json!(1_244_567);
        let shown = status(&Value::Null, &now, Some(&before));
        let p0: Vec<_> = shown.lines().find(|l| l.starts_with("p0")).unwrap().split("  ").collect();
        let cells: Vec<_> = p0.iter().map(|s| s.trim()).filter(|s| !s.is_empty()).collect();
        assert_eq!(cells[cells.len() - 2..], ["5 000", "0"]);
    }

    #[test]
    fn what_another_version_leaves_out_is_no_panic() {
        for odd in
            [json!({}), json!(null), json!([]), json!({"ports": [1, {}], "workers": [{}], "lints": "x"})]
        {
            assert!(!status(&odd, &odd, Some(&odd)).is_empty());
            assert!(!done(&Request::Change(Command::Shutdown), &odd).is_empty());
        }
    }
}
