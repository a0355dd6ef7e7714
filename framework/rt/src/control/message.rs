//! Lines on the wire: what a request and an answer look like.
//!
//! A request: `{"version":1,"id":7,"command":"remove_port","name":"p0"}`. `id` may be any JSON value, or absent; the
//! answer has the same, byte for byte. An answer: `{"version":1,"id":7,"ok":true,"result":{...}}`, or with
//! `"ok":false,"error":{"code":"...","message":"..."}`.

use core::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use toml::Table;

use super::{Code, Refusal, Request};

/// The version of the protocol.
pub const VERSION: u64 = 1;
/// Most bytes of a line that a client sends, without its end.
pub const MAX_LINE: usize = 64 << 10;

/// What a client calls its request.
#[derive(Clone, Debug, Default)]
pub struct Id(Option<Box<RawValue>>);

impl Id {
    /// As it was written; `null` if it was not.
    pub fn text(&self) -> &str {
        self.0.as_deref().map_or("null", RawValue::get)
    }
}

/// A line of a client.
#[derive(Debug)]
pub struct Message {
    /// What the client calls it.
    pub id: Id,
    /// What it asks for, or why that cannot be said.
    pub request: Result<Request, Refusal>,
}

impl Message {
    /// Reads a line. Anything may be in it.
    pub fn read(line: &[u8]) -> Self {
        match serde_json::from_slice::<Fields>(line) {
            Ok(mut fields) => {
                let id = Id(fields.take("id"));
                Self { id, request: fields.request() }
            }
            Err(e) => {
                let message = format!(
                    "not one JSON object: {e}; a line is like {{\"version\":{VERSION},\"command\":\"status\"}}"
                );
                Self { id: Id::default(), request: Err(Refusal::new(Code::BAD_JSON, message)) }
            }
        }
    }
}

/// The fields of a JSON object, each as it was written.
struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    fn take(&mut self, name: &str) -> Option<Box<RawValue>> {
        let at = self.0.iter().position(|(n, _)| n == name)?;
        Some(self.0.swap_remove(at).1)
    }

    fn request(mut self) -> Result<Request, Refusal> {
        let version = self.take("version");
        let version = version.as_deref().map(RawValue::get);
        if version.and_then(|v| serde_json::from_str(v).ok()) != Some(VERSION) {
            let got = version.map_or_else(|| "no version".to_owned(), |v| format!("version {}", cut(v)));
            let message = format!("{got}; this instance speaks version {VERSION}: add \"version\":{VERSION}");
            return Err(Refusal::new(Code::BAD_VERSION, message));
        }
        let bad = |message: String| Refusal::new(Code::BAD_REQUEST, message);
        let command =
            self.take("command").ok_or_else(|| bad("command: is missing; ask for status".into()))?;
        let command: String = serde_json::from_str(command.get())
            .map_err(|_| bad(format!("command: {} is not a string", cut(command.get()))))?;
        let mut args = Table::new();
        for (key, value) in self.0 {
            // What configuration cannot say cannot be said here either: null, and integers beyond 64 bits with a sign.
            let value = serde_json::from_str(value.get())
                .map_err(|_| bad(format!("{key}: {} is no value that a key can have", cut(value.get()))))?;
            args.insert(key, value);
        }
        Request::read(&command, &args)
    }
}

/// At most the first 40 characters.
fn cut(s: &str) -> String {
    let end = s.char_indices().nth(40).map_or(s.len(), |(i, _)| i);
    if end < s.len() { format!("{}...", &s[..end]) } else { s.to_owned() }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
                let mut fields: Vec<(String, Box<RawValue>)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    if fields.iter().any(|(k, _)| *k == key) {
                        return Err(M::Error::custom(format_args!("{:?} is there twice", cut(&key))));
                    }
                    if fields.len() == MOST_FIELDS {
                        return Err(M::Error::custom("there are too many keys"));
                    }
                    fields.push((key, value));
                }
                Ok(Fields(fields))
            }
        }
        from.deserialize_map(Object)
    }
}

/// No request has nearly as many fields.
const MOST_FIELDS: usize = 64;

#[derive(Serialize)]
struct Answer<'a> {
    version: u64,
    id: Option<&'a RawValue>,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Refusal>,
}

/// The line that answers request `id`, with its end.
pub fn answer(id: &Id, result: &Result<Box<RawValue>, Refusal>) -> Vec<u8> {
    let answer = Answer {
        version: VERSION,
        id: id.0.as_deref(),
        ok: result.is_ok(),
        result: result.as_deref().ok(),
        error: result.as_ref().err(),
    };
    // A `Vec` takes everything, and every part has been JSON before.
    let mut line = serde_json::to_vec(&answer).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The line that asks for `request`, with its end.
pub fn ask(request: &Request, id: u64) -> Vec<u8> {
    #[derive(Serialize)]
    struct Ask<'r> {
        version: u64,
        id: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        command: Option<&'static str>,
        #[serde(flatten)]
        change: Option<&'r super::Command>,
    }
    let (command, change) = match request {
        Request::Change(c) => (None, Some(c)),
        other => (Some(other.name()), None),
    };
    let mut line = serde_json::to_vec(&Ask { version: VERSION, id, command, change }).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests;
