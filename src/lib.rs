//! Ringwright.
