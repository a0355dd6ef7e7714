//! Workers in all modes, and changes while packets flow: nothing is lost, every flow stays in order, and every packet is
//! accounted for.
#![forbid(unsafe_code)]

mod changes;
mod device;
mod modes;
mod random;
mod rig;
mod trouble;
