//! The edge of Rust: registers, DMA memory, topology, time.
#![forbid(unsafe_code)]
