use core::num::NonZeroU16;
use core::time::Duration;

use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::*;
use crate::control::{Command, QueueName};

/// The code, and what is said.
fn refused(line: &str) -> (String, String) {
    let r = Message::read(line.as_bytes()).request.expect_err(line);
    (r.code.to_string(), r.message)
}

#[test]
fn an_id_comes_back_byte_for_byte() {
    for id in [
        "7",
        "\"a\\u0062c\"",
        "null",
        "1.50",
        "1e400",
        "123456789012345678901234567890",
        "[1, {\"a\": 2}]",
        "{}",
    ] {
        let m = Message::read(format!(r#"{{"id": {id}, "version": 1, "command": "status"}}"#).as_bytes());
        assert_eq!(m.request, Ok(Request::Status), "{id}");
        let line = answer(&m.id, &Ok(to_raw_value(&json!({})).unwrap()));
        let line = String::from_utf8(line).unwrap();
        assert_eq!(line, format!("{{\"version\":1,\"id\":{id},\"ok\":true,\"result\":{{}}}}\n"));
    }
    assert_eq!(Message::read(br#"{"version":1,"command":"status"}"#).id.text(), "null");
}

#[test]
fn lines_that_are_no_request_are_refused_by_kind() {
    for (line, code, said) in [
        ("", "bad_json", "not one JSON object"),
        ("status", "bad_json", "not one JSON object"),
        ("[]", "bad_json", "an object"),
        ("{\"version\":1", "bad_json", "EOF"),
        (r#"{"version":1,"command":"status"} {}"#, "bad_json", "trailing"),
        (r#"{"version":1,"version":1,"command":"status"}"#, "bad_json", "\"version\" is there twice"),
        (r#"{"command":"status"}"#, "bad_version", "no version; this instance speaks version 1"),
        (r#"{"version":2,"command":"status"}"#, "bad_version", "version 2; this"),
        (r#"{"version":"1","command":"status"}"#, "bad_version", "version \"1\";"),
        (r#"{"version":1.0,"command":"status"}"#, "bad_version", "version 1.0;"),
        (r#"{"version":1}"#, "bad_request", "command: is missing"),
        (r#"{"version":1,"command":5}"#, "bad_request", "command: 5 is not a string"),
        (r#"{"version":1,"command":"shutdwon"}"#, "unknown_command", "did you mean shutdown?"),
        (r#"{"version":1,"command":"remove_port","name":null}"#, "bad_request", "name: null is no value"),
        (r#"{"version":1,"command":"status","verbose":true}"#, "bad_request", "verbose: is not known"),
        (r#"{"version":1,"command":"add_port","port":{"a":18446744073709551615}}"#, "bad_request", "port: "),
    ] {
        let (c, message) = refused(line);
        assert!(c == code && message.contains(said), "{line}: {c}: {message}");
    }
    let bytes = Message::read(b"\xff\xfe{}").request.unwrap_err();
    assert_eq!(bytes.code, Code::BAD_JSON);
}

#[test]
fn depth_and_width_are_bounded() {
    let deep = format!(r#"{{"version":1,"command":"add_port","port":{}}}"#, "[".repeat(30_000));
    assert_eq!(refused(&deep).0, "bad_json");
    let deep = format!(
        r#"{{"version":1,"command":"add_port","port":{}1{}}}"#,
        "[".repeat(30_000),
        "]".repeat(30_000)
    );
    let (code, message) = refused(&deep);
    assert_eq!(code, "bad_request");
    assert!(message.len() < 200, "{message}");
    let keys: Vec<_> = (0..5000).map(|i| format!("\"k{i}\":1")).collect();
    let (code, message) = refused(&format!("{{{}}}", keys.join(",")));
    assert!(code == "bad_json" && message.contains("too many keys"), "{message}");
}

#[test]
fn what_is_asked_is_what_is_read() {
    let port = r#"name = "p2"
        driver = "null"
        queues = 2
        doorbell = { packets = 32, delay = "2us" }
        rate = 1.5"#;
    let queue = QueueName { port: "p0".into(), queue: 1 };
    for request in [
        Request::Hello,
        Request::Status,
        Request::Change(Command::AddPort { port: port.parse().unwrap(), worker: None }),
        Request::Change(Command::AddPort { port: Table::new(), worker: Some(3) }),
        Request::Change(Command::RemovePort { name: "p\"0\n".into() }),
        Request::Change(Command::MoveQueue { queue, worker: 1 }),
        Request::Change(Command::SetBatching { port: "p0".into(), packets: NonZeroU16::new(8), delay: None }),
        Request::Change(Command::SetBatching {
            port: "p0".into(),
            packets: None,
            delay: Some(Duration::from_nanos(1_500_000_250)),
        }),
        Request::Change(Command::SetLog { filter: "warn,ringwright_rt=info".into() }),
        Request::Change(Command::Shutdown),
    ] {
        let line = ask(&request, 9);
        assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1);
        let m = Message::read(&line[..line.len() - 1]);
        assert_eq!((m.id.text(), m.request), ("9", Ok(request)));
    }
}

#[test]
fn a_refusal_is_an_answer() {
    let line = answer(&Id::default(), &Err(Refusal::new(Code::NO_SUCH_PORT, "no \"p9\"")));
    let got: Value = serde_json::from_slice(&line).unwrap();
    let error = json!({"code": "no_such_port", "message": "no \"p9\""});
    assert_eq!(got, json!({"version": 1, "id": null, "ok": false, "error": error}));
}
