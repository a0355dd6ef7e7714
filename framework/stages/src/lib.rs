//! The stages in the box.
#![forbid(unsafe_code)]
