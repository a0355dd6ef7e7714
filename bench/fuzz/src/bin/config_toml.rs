//! A configuration file may hold anything: reading it ends in a configuration or in problems with places, never in a
//! panic, and the problems can be shown.
#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;
use ringwright::rt::config::{Config, ConfigError, Kinds, assign};
use ringwright::{drivers, kinds};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let (drivers, stages) = (drivers::all(), kinds::all());
    if let Err(e) = read(text, Kinds { drivers: &drivers, stages: &stages }) {
        assert!(!e.problems.is_empty(), "an error that says nothing");
        assert!(e.problems.iter().all(|p| p.line > 0 && p.column > 0 && !p.message.is_empty()), "{e}");
    }
});

fn read(text: &str, kinds: Kinds<'_>) -> Result<(), ConfigError> {
    let config = Config::parse("fuzz.toml", "fuzz", text, kinds)?;
    assign(&config)?;
    let recipes = config.recipes(kinds)?;
    config.wire(&recipes)?;
    Ok(())
}
