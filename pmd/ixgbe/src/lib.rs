//! Driver for the Intel 82599 and X540.
#![forbid(unsafe_code)]
