//! The seam between drivers and everything above them.
#![forbid(unsafe_code)]
