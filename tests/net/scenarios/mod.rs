//! What happens on the wires, and to them, one file for each kind.

mod clients;
mod disk;
mod endings;
mod files;
mod interfaces;
mod live;
mod moves;
mod multicast;
mod ndp;
mod pings;
mod refusals;
mod storms;
mod taps;
mod tcp;
mod udp;
mod vlans;
