//! Arbitrary text taken for a filter's expression, asked of arbitrary bytes taken for a frame.
//!
//! The text ends at the first zero byte; the frame follows.
//!
//! Flags: -max_len=400
#![no_main]
use libfuzzer_sys::fuzz_target;
use stages::Filter;

fuzz_target!(|data: &[u8]| {
    let end = data.iter().position(|&b| b == 0).unwrap_or(data.len());
    let (text, frame) = data.split_at(end);
    let text = String::from_utf8_lossy(text);
    match Filter::new(&text) {
        Ok(filter) => ask(&text, &filter, frame.get(1..).unwrap_or_default()),
        Err(e) => {
            assert!(!e.problem().is_empty() && e.line() >= 1 && e.column() >= 1);
            assert!(e.line() <= text.matches('\n').count() + 1);
            // The marks stand below the line, at most one character behind it.
            let shown = e.to_string();
            let lines: Vec<&str> = shown.lines().collect();
            let [.., line, marks] = lines[..] else { panic!("a place is shown: {shown}") };
            assert!(marks.ends_with('^') && marks.trim_start().bytes().all(|b| b == b'^'), "{shown}");
            assert!(marks.chars().count() <= line.chars().count().max(e.column() + 2), "{shown}");
        }
    }
});

/// What must hold of any expression and any frame.
fn ask(text: &str, filter: &Filter, frame: &[u8]) {
    let is = filter.matches(frame);
    // These may be refused, for being longer or deeper than there may be.
    let same = |text: String, expected: bool| {
        if let Ok(other) = Filter::new(&text) {
            assert_eq!(other.matches(frame), expected, "{text}");
        }
    };
    same(format!("({text})"), is);
    same(format!("not ({text})"), !is);
    same(format!("!!({text})"), is);
    same(format!("({text}) or not ({text})"), true);
    same(format!("({text}) and ! ({text})"), false);
    same(format!("arp and not arp or ({text})"), is);
    for cut in [frame.len() / 2, frame.len() / 3, 13] {
        let _ = filter.matches(frame.get(..cut).unwrap_or_default());
    }
}
