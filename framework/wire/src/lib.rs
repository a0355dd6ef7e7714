//! Header views: checked once, then they cannot panic.
#![forbid(unsafe_code)]
