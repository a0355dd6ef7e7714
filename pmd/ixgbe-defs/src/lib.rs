//! The Intel 82599 and X540 data sheet as types.
#![forbid(unsafe_code)]
