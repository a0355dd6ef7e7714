//! A port without a device: generated frames in, nothing out.
#![forbid(unsafe_code)]
