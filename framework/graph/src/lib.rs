//! Stages, the graph that joins them, and the breath.
#![forbid(unsafe_code)]
