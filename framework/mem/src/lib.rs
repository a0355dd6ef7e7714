//! Packet memory: pools, magazines, batches that own their packets.
#![forbid(unsafe_code)]
