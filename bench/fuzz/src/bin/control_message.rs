//! A line on the control socket may hold anything: it is a request or a refusal, each has one answer of one line, and what
//! was read is read again from what we would write.
//!
//! Flags: -max_len=4096
#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;
use ringwright::rt::control::message::{Message, answer, ask};
use ringwright::rt::control::{Code, Refusal};
use serde_json::Value;
use serde_json::value::RawValue;

fuzz_target!(|data: &[u8]| {
    // A line is what comes before its end.
    let line = data.split(|b| *b == b'\n').next().unwrap_or_default();
    let message = Message::read(line);
    let result = match &message.request {
        Ok(_) => RawValue::from_string("{}".to_owned()).map_err(|_| unreachable!("an object")),
        Err(refusal) => Err(refusal.clone()),
    };
    let said = answer(&message.id, &result);
    check_answer(&said, message.id.text(), &result);
    if let Ok(request) = message.request {
        let again = Message::read(ask(&request, 1).trim_ascii_end());
        assert_eq!(again.request, Ok(request), "written and read, it is another request");
        assert_eq!(again.id.text(), "1");
    }
});

fn check_answer(said: &[u8], id: &str, result: &Result<Box<RawValue>, Refusal>) {
    let (end, line) = said.split_last().expect("an answer");
    assert!(*end == b'\n' && !line.contains(&b'\n'), "not one line");
    let text = core::str::from_utf8(line).expect("text");
    assert!(text.starts_with(&format!("{{\"version\":1,\"id\":{id},\"ok\":{}", result.is_ok())), "{text}");
    if let Err(refusal) = result {
        assert!(Code::ALL.contains(&refusal.code), "{text}");
        assert!(!refusal.message.is_empty() && refusal.message.len() < 8 * 4096, "{text}");
        // The id is the client's own, and may be what this reader does not take: numbers out of range, depth.
        let error = text.rsplit_once("\"error\":").expect("an error").1.trim_end_matches('}');
        let error = serde_json::from_str::<Value>(&format!("{error}}}"));
        assert!(error.is_ok() || text.matches("\"error\":").count() > 1, "{text}");
    }
}
