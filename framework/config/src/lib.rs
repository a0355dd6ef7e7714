//! Reading configuration: what drivers, stages and the runtime are told in TOML.
//!
//! - [`Keys`] reads the keys of one table: unknown ones are errors, with what was probably meant.
//! - [`size`], [`time`], [`rate`] read `2M`, `50us`, `1.5M` or `10Gbps`.
//! - [`KeyError`] names the key, so that whoever has the file's text can say where it stands.
//!
//! Life of a key: [`Keys::new`] refuses those that nobody knows, one call per key reads and checks its value.
//!
//! Limits: places (line and column) are not known here; a table of a `toml::Table` has none.
#![forbid(unsafe_code)]

mod keys;
mod units;

pub use keys::{KeyError, Keys, suggest};
pub use units::{Rate, rate, size, time};
