//! The examples of `docs/control.md`, run.

use ringwright_rt::control::Limits;
use serde_json::Value;

use crate::host::{Fake, Rig};

/// Whether `got` is as the page says. `"..."` stands for anything; an object that has a key `"..."` may have others.
fn like(said: &Value, got: &Value) -> bool {
    match (said, got) {
        (Value::String(s), _) if s == "..." => true,
        (Value::Object(said), Value::Object(got)) => {
            let open = said.contains_key("...");
            (open || said.len() == got.len())
                && said
                    .iter()
                    .filter(|(k, _)| *k != "...")
                    .all(|(k, v)| got.get(k).is_some_and(|g| like(v, g)))
        }
        _ => said == got,
    }
}

#[test]
fn every_example_is_as_the_page_says() {
    let page = include_str!("../../../../docs/control.md");
    let rig = Rig::new(Fake::new(), Limits::default());
    let mut line = rig.connect();
    let mut commands = std::collections::BTreeSet::new();
    let mut examples = 0;
    let mut asked = None;
    for text in page.lines() {
        if let Some(request) = text.strip_prefix("> ") {
            assert_eq!(asked, None, "the page has no answer to it");
            if let Ok(request) = serde_json::from_str::<Value>(request) {
                commands.extend(request["command"].as_str().map(str::to_owned));
            }
            line.send(format!("{request}\n").as_bytes()).unwrap();
            asked = Some(request);
        } else if let Some(answer) = text.strip_prefix("< ") {
            let request = asked.take().expect("a request before its answer");
            let said: Value = serde_json::from_str(answer).unwrap_or_else(|e| panic!("{answer}: {e}"));
            let got = line.next().expect("an answer");
            assert!(like(&said, &got), "{request}\nsaid {said}\ngot  {got}");
            examples += 1;
        }
    }
    assert!(examples >= 15, "{examples}");
    for name in ringwright_rt::control::Request::NAMES {
        assert!(commands.contains(name), "{name} has no example");
        assert!(page.contains(&format!("### `{name}`")), "{name} is not described");
    }
    for code in ringwright_rt::control::Code::ALL {
        assert!(page.contains(&format!("| `{code}` |")), "{code} is not described");
    }
}
