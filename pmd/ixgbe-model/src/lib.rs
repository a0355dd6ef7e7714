//! The Intel 82599 in software.
#![forbid(unsafe_code)]
