//! The control socket and the exporter as their clients meet them: over real sockets, with clients that mean well and
//! clients that do not.
#![forbid(unsafe_code)]

mod commands;
mod host;
mod hostile;
mod http;
mod live;
mod owners;
mod page;
mod slow;
mod valid;
