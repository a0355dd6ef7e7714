//! Policy: cores, workers, start and stop, status.
#![forbid(unsafe_code)]
