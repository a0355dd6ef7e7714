//! Ringwright: a kernel-bypass packet I/O framework that shows where every cycle of a packet goes, and accounts for
//! every packet.
//!
//! This crate is the facade: one name for all of the framework, for people who build a switch, a network function or a
//! backend on it. `examples/` shows how; `docs/architecture.md` says why.
//!
//! | module | what it is |
//! |---|---|
//! | [`hw`] | registers, DMA memory on superpages, time |
//! | [`topology`] | cores, nodes and pages of the machine |
//! | [`mem`] | pools, batches that own their packets |
//! | [`ring`] | rings with a device, rings between cores |
//! | [`meter`] | counters, drop reasons, the registry |
//! | [`pcie`] | links and transactions |
//! | [`wire`] | header views |
//! | [`port`] | queues, drivers |
//! | [`graph`], [`stages`] | stages and the graph that joins them |
//! | [`rt`] | cores, workers, start and stop, status |
//! | [`kinds`] | the kinds of stages that a configuration can name |
//! | [`drivers`] | the drivers in the box, and their models |
#![forbid(unsafe_code)]

pub mod kinds;

pub use {graph, hw, mem, meter, pcie, port, ring, rt, stages, topology, wire};

/// The drivers in the box. The models are devices in software: for tests, and for machines without a NIC.
pub mod drivers {
    pub use generator;
    pub use ixgbe;
    pub use ixgbe_model;
    pub use null;
    pub use packet;
    pub use pcap;
    pub use tap;

    /// Every driver that a configuration can name.
    pub fn all() -> Vec<Box<dyn port::Driver>> {
        vec![
            Box::new(packet::Packet),
            Box::new(tap::Tap),
            Box::new(null::Null::new()),
            Box::new(pcap::Pcap::new()),
            Box::new(generator::Gen),
        ]
    }
}
