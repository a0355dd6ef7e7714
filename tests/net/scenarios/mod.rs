//! What happens on the wires, one file for each kind of traffic.

mod moves;
mod multicast;
mod ndp;
mod pings;
mod tcp;
mod vlans;
