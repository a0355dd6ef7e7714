//! Private counters, drop reasons, and the registry everything is read from.
#![forbid(unsafe_code)]
