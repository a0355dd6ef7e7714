//! The seam between drivers and everything above them.
//!
//! - [`RxQueue`] and [`TxQueue`] move bursts. One owner, one thread, at most one tail write per call.
//! - [`RxSetup`] and [`TxSetup`] are queues on their way to a worker.
//! - [`Driver`] opens an [`OpenPort`]: the control side of a device.
//! - [`Metered`] counts bursts around a queue; with `()` for a meter it is the bare queue.
//!
//! Life of a port:
//! 1. [`Driver::open`] finds the device and resets it; nothing moves yet.
//! 2. [`OpenPort::start`] makes the rings and hands out each queue once, as a setup.
//! 3. A setup travels to its worker, which attaches it: buffers are posted, bursts begin.
//! 4. To move a queue, its worker detaches it and another attaches the setup.
//! 5. [`OpenPort::rx_off`], then the workers drain and detach, then [`OpenPort::stop`] resets the device and gives
//!    buffers and rings back; what a device that does not reset may still write is quarantined.
//!
//! Limits: setup calls may take milliseconds; nothing on the fast path waits or returns an error.
#![forbid(unsafe_code)]

mod error;
mod metered;

use hw::Node;
use mem::{Batch, Local};
use meter::QueueMeter;
use ring::RingSize;
use std::sync::Arc;

pub use error::PortError;
pub use metered::Metered;

/// A receive queue. One owner, one thread.
pub trait RxQueue {
    /// Adds at most `out.room()` received packets to `out`, marked with the port's number; returns how many. Posts
    /// empty buffers with at most one tail write. Never waits.
    fn rx_burst(&mut self, out: &mut Batch) -> usize;
    /// Buffers that the queue holds: posted to the device, or part of a frame that is not complete.
    fn posted(&self) -> usize;
    /// Adds the queue's counts since it was attached to `sum`.
    fn counts(&self, sum: &mut QueueMeter);
    /// Readies the queue to leave its worker. Its posted buffers stay posted.
    fn detach(self: Box<Self>) -> Box<dyn RxSetup>;
}

/// A transmit queue. One owner, one thread.
pub trait TxQueue {
    /// Moves packets from the front of `from` to the device; returns how many. What does not fit stays in `from`; what
    /// the device cannot send is dropped, counted with its reason, and not among those returned. `now` is the time stamp
    /// of this breath, in ticks of [`hw::cycles`].
    fn tx_burst(&mut self, from: &mut Batch, now: u64) -> usize;
    /// Rings for packets that wait for a tail write if `idle` or if the first has waited long enough at `now`.
    fn flush(&mut self, now: u64, idle: bool);
    /// From now on rings at the latest after `packets`, or when the first has waited `delay` ticks of [`hw::cycles`]. For
    /// queues without a doorbell there is nothing to do.
    fn set_doorbell(&mut self, _packets: u16, _delay: u64) {}
    /// Frees what the device has sent; returns how many buffers.
    fn reap(&mut self) -> usize;
    /// Buffers that the device has yet to send, or that were sent and not yet reaped.
    fn inflight(&self) -> usize;
    /// Adds the queue's counts since it was attached to `sum`, and takes the bytes of packets that it dropped out of
    /// `sum.bytes`.
    fn counts(&self, sum: &mut QueueMeter);
    /// Readies the queue to leave its worker. Packets in flight stay in flight.
    fn detach(self: Box<Self>) -> Box<dyn TxSetup>;
}

/// A receive queue on its way to a worker.
pub trait RxSetup: Send {
    /// Binds the queue to the calling worker and posts buffers.
    ///
    /// # Errors
    /// [`PortError::NoBuffers`] if the pool cannot fill the ring; the setup comes back with it.
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn RxQueue>, (PortError, Box<dyn RxSetup>)>;
    /// Gives the posted buffers back. Only after the device was reset.
    fn reclaim(self: Box<Self>, local: &Local);
}

/// A transmit queue on its way to a worker.
pub trait TxSetup: Send {
    /// Binds the queue to the calling worker.
    ///
    /// # Errors
    /// What the driver says; the setup comes back with it.
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn TxQueue>, (PortError, Box<dyn TxSetup>)>;
    /// Gives the buffers in flight back. Only after the device was reset.
    fn reclaim(self: Box<Self>, local: &Local);
}

/// What a queue needs of its worker.
pub struct WorkerEnv {
    /// The worker's way to packet memory.
    pub local: Local,
    /// The node whose pool the worker's queues post from; `None` if unknown.
    pub node: Option<Node>,
    /// Whether bursts are counted. Off only to measure what counting costs.
    pub metered: bool,
}

impl WorkerEnv {
    /// The pool that a queue on this worker posts from.
    ///
    /// # Errors
    /// [`PortError::NoPool`] if the memory has none.
    pub fn pool(&self) -> Result<mem::PoolId, PortError> {
        self.local.memory().pool_on(self.node).map(mem::Pool::id).ok_or(PortError::NoPool)
    }
    /// A receive queue with its meter.
    pub fn boxed_rx(&self, queue: impl RxQueue + 'static) -> Box<dyn RxQueue> {
        if self.metered {
            Box::new(Metered { queue, meter: QueueMeter::default() })
        } else {
            Box::new(Metered { queue, meter: () })
        }
    }
    /// A transmit queue with its meter.
    pub fn boxed_tx(&self, queue: impl TxQueue + 'static) -> Box<dyn TxQueue> {
        if self.metered {
            Box::new(Metered { queue, meter: QueueMeter::default() })
        } else {
            Box::new(Metered { queue, meter: () })
        }
    }
}

/// What opens ports of one kind. Registered by the command, so that nothing below knows every driver.
pub trait Driver: Send + Sync {
    /// As in configuration: `ixgbe`, `null`, ...
    fn name(&self) -> &'static str;
    /// Its own keys, as in configuration.
    fn keys(&self) -> &'static [&'static str];
    /// Opens a device. `cfg` holds the driver's own keys.
    ///
    /// # Errors
    /// A key that is missing or wrong, a device that is not there or does not answer.
    fn open(&self, cfg: &toml::Table, env: &OpenEnv) -> Result<Box<dyn OpenPort>, PortError>;
}

/// What a driver needs to open a device.
#[derive(Clone)]
pub struct OpenEnv {
    /// Packet memory; a driver maps its pools' arenas for the device.
    pub memory: Arc<mem::Memory>,
    /// The port's name, for messages.
    pub name: Arc<str>,
}

/// The control side of a device.
pub trait OpenPort: Send {
    /// What the device is and can do.
    fn info(&self) -> &PortInfo;
    /// Makes the rings, brings the link up, and hands out each queue once.
    ///
    /// # Errors
    /// A configuration that the device cannot do, no ring memory, a device that does not answer.
    fn start(&mut self, cfg: &PortConfig) -> Result<Queues, PortError>;
    /// The link, now.
    fn link(&mut self) -> Link;
    /// What the device itself has counted since it was started.
    fn device_counts(&mut self) -> DeviceCounts;
    /// Whether more may come in. A run ends by itself once no port has more.
    fn input(&mut self) -> Input {
        Input::Endless
    }
    /// What went wrong for good while the port ran, and what to do: the run has failed even if the rest went on.
    fn fault(&mut self) -> Option<String> {
        None
    }
    /// Receives frames for everyone, or only those for this port.
    ///
    /// # Errors
    /// If the device cannot.
    fn set_promiscuous(&mut self, on: bool) -> Result<(), PortError>;
    /// Ends receiving at the device; what it has delivered can still be polled.
    ///
    /// # Errors
    /// If the device does not answer.
    fn rx_off(&mut self) -> Result<(), PortError>;
    /// Resets the device and gives all buffers and rings back. `queues` are all that `start` handed out, detached.
    ///
    /// # Errors
    /// [`PortError::Quarantined`] if the device did not reset: its memory is never used again.
    fn stop(&mut self, queues: Queues, local: &Local) -> Result<(), PortError>;
}

/// The queues of a started port.
#[derive(Default)]
pub struct Queues {
    /// Receive queues, by number.
    pub rx: Vec<Box<dyn RxSetup>>,
    /// Transmit queues, by number.
    pub tx: Vec<Box<dyn TxSetup>>,
}

/// What a device is and can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortInfo {
    /// The driver's name.
    pub driver: &'static str,
    /// The node the device is attached to; `None` if unknown.
    pub node: Option<Node>,
    /// The device's own address (IEEE 802), if it has one.
    pub mac: Option<[u8; 6]>,
    /// Most queues each way.
    pub max_queues: u16,
    /// Longest frame in bytes, without the frame check sequence.
    pub max_frame: u16,
    /// Most buffers in a frame to send.
    pub max_segments: u16,
}

/// How to run a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// The port's number, with which received packets are marked.
    pub port: u16,
    /// Queue pairs.
    pub queues: u16,
    /// Receive descriptors per queue.
    pub rx_ring: RingSize,
    /// Transmit descriptors per queue.
    pub tx_ring: RingSize,
    /// Tail writes at the latest after this many packets ...
    pub doorbell_packets: u16,
    /// ... or after the first waited this many ticks of [`hw::cycles`].
    pub doorbell_delay: u64,
    /// How many packets ahead headers are prefetched; 0 for the plain loop.
    pub prefetch: u8,
    /// Longest frame in bytes, without the frame check sequence.
    pub max_frame: u16,
    /// Somebody takes what is received. Otherwise a device that can do without receiving does: what it delivered would be
    /// lost without a reason.
    pub receives: bool,
    /// Receive frames for everyone.
    pub promiscuous: bool,
    /// Take VLAN tags out on receipt.
    pub vlan_strip: bool,
    /// A frame that finds its receive queue full waits in the device, and all behind it wait with it, whichever their
    /// queue. Otherwise, with several queues, it is dropped and counted, lest one queue hold up the others.
    pub rx_wait: bool,
}

impl PortConfig {
    /// One queue pair, rings of 1024, one tail write per burst, whole 1518-byte frames (1514 and a VLAN tag).
    pub fn new(port: u16) -> Self {
        let ring = RingSize::try_from(1024).expect("a power of two");
        Self {
            port,
            queues: 1,
            rx_ring: ring,
            tx_ring: ring,
            doorbell_packets: 32,
            doorbell_delay: 0,
            prefetch: 4,
            max_frame: 1518,
            receives: true,
            promiscuous: true,
            vlan_strip: false,
            rx_wait: false,
        }
    }
    /// Checks the parts that any driver checks alike.
    ///
    /// # Errors
    /// [`PortError::Queues`] or [`PortError::Frame`].
    pub fn check(&self, info: &PortInfo) -> Result<(), PortError> {
        if self.queues == 0 || self.queues > info.max_queues {
            return Err(PortError::Queues { asked: self.queues, max: info.max_queues, driver: info.driver });
        }
        if self.max_frame < 60 || self.max_frame > info.max_frame {
            return Err(PortError::Frame { asked: self.max_frame, max: info.max_frame, driver: info.driver });
        }
        Ok(())
    }
}

/// The link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Frames can pass.
    pub up: bool,
    /// Bits per second, if known.
    pub speed_bps: Option<u64>,
}

/// What may still come in by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Nothing ever does: a port to write to.
    None,
    /// There is no end to it.
    Endless,
    /// More will come.
    More,
    /// All of it was delivered.
    Exhausted,
}

/// What a device counted by itself. `None` is unknown, never 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Good frames for this port that came in, whatever became of them behind the filters. What is neither delivered nor
    /// missed was lost inside the device, or waits there.
    pub rx_good: Option<u64>,
    /// Frames it put into receive queues of ours.
    pub rx_delivered: Option<u64>,
    /// Frames it sent out.
    pub tx_sent: Option<u64>,
    /// Good frames that found no room and were lost before any queue.
    pub rx_missed: Option<u64>,
    /// Frames that the device threw away for faults of their own (check sequence, length).
    pub rx_errors: Option<u64>,
}
