use std::sync::{Arc, Mutex};

use super::*;

/// Keeps each thing that is written apart.
#[derive(Clone, Default)]
struct Ears(Arc<Mutex<Vec<String>>>);

impl io::Write for Ears {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().push(String::from_utf8(line.to_vec()).unwrap());
        Ok(line.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs `talk` under a log, and gives what was said.
fn said(filter: &str, log_format: Format, talk: impl FnOnce(&Log)) -> Vec<String> {
    let ears = Ears::default();
    let args = LogArgs { log: filter.parse().unwrap(), log_format };
    let writer = ears.clone();
    let (subscriber, log) = subscriber(&args, move || writer.clone(), false);
    tracing::subscriber::with_default(subscriber, || talk(&log));
    ears.0.lock().unwrap().clone()
}

fn talk(_: &Log) {
    let port = tracing::info_span!("port", name = "p0");
    let _port = port.enter();
    let worker = tracing::info_span!("worker", id = 1, core = 3, role = "rx");
    let _worker = worker.enter();
    tracing::info!("quiet");
    tracing::warn!(frames = 7, ratio = 0.5, down = true, "link is \"down\"");
}

#[test]
fn text_has_level_spans_and_message() {
    assert_eq!(
        said("warn", Format::Text, talk),
        [
            " WARN port{name=\"p0\"}:worker{id=1 core=3 role=\"rx\"}: link is \"down\" frames=7 ratio=0.5 down=true\n"
        ]
    );
    assert_eq!(said("off", Format::Text, talk), [""; 0]);
}

#[test]
fn json_is_one_object_a_line_with_the_fields_of_spans() {
    let lines = said("info", Format::Json, talk);
    assert_eq!(lines.len(), 2);
    let mut line: Value = serde_json::from_str(&lines[1]).unwrap();
    assert!(lines[1].ends_with("}\n") && lines[1].matches('\n').count() == 1);
    let time = line.as_object_mut().unwrap().remove("time").unwrap();
    humantime::parse_rfc3339(time.as_str().unwrap()).unwrap();
    assert_eq!(
        line,
        serde_json::json!({
            "level": "warn",
            "target": "ringwright::log::tests",
            "message": "link is \"down\"",
            "fields": {"frames": 7, "ratio": 0.5, "down": true},
            "spans": {"port": {"name": "p0"}, "worker": {"id": 1, "core": 3, "role": "rx"}},
        })
    );
}

#[test]
fn the_level_changes_while_it_runs() {
    let lines = said("warn", Format::Text, |log| {
        // One place in the code: whether it is of interest is asked anew after each change.
        let say = |n: i32| tracing::info!("{n}");
        say(1);
        assert_eq!(log.set("INFO"), Ok("info".to_owned()));
        say(2);
        assert_eq!(log.set("warn, ringwright=info"), Ok("warn,ringwright=info".to_owned()));
        say(3);
        log.set("info,ringwright=error").unwrap();
        say(4);
        assert!(log.set("loud").is_err());
        say(5);
        log.set("debug").unwrap();
        tracing::debug!("6");
        log.set("off").unwrap();
        tracing::error!("7");
    });
    assert_eq!(lines, [" INFO 2\n", " INFO 3\n", "DEBUG 6\n"]);
}

#[test]
fn filters_that_cannot_be() {
    for wrong in ["", "loud", "trace", "info,", "=", "ringwright=", "ringwright=loud", "info;debug", "5"] {
        let e = wrong.parse::<Filter>().unwrap_err();
        assert!(e.contains("use off, error, warn, info or debug"), "{wrong}: {e}");
    }
    let f: Filter = "warn,a=info , b::c=off".parse().unwrap();
    assert_eq!(f.to_string(), "warn,a=info,b::c=off");
}
