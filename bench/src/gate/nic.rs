//! The ixgbe driver's receive and transmit paths against a stepped device: only the driver's calls are collected.
//!
//! A software device's doorbell is a call into its register file, about 2 % of either figure; the rest of the device
//! works between the calls.

use std::sync::Arc;

use hw::{GRANULE, Pages, Window};
use ixgbe::{Ixgbe, PciId};
use ixgbe_model::{Arrival, Parameters, Stepped, Wire};
use mem::{Batch, Layout, Local, Memory};
use port::{OpenEnv, OpenPort, PortConfig, Queues, RxQueue, TxQueue, WorkerEnv};

use super::paths::{BUFFERS, BURST, BURSTS, collect};

/// What an 82599's configuration space says (82599 data sheet, 9.3.2 and 9.3.3).
const IDENTITY: PciId = PciId { vendor: 0x8086, device: 0x10fb };
/// Bytes of a frame in its buffer: the shortest.
const LEN: usize = 60;
/// Steps within which a device has moved a burst, or brought its link up.
const STEPS: usize = 16;

/// Sends as many frames as it is told to.
#[derive(Default)]
struct Feed {
    owed: usize,
}

impl Wire for Feed {
    fn rx_next(&mut self, room: &mut [u8]) -> Option<Arrival> {
        self.owed = self.owed.checked_sub(1)?;
        room[..LEN].fill(0x55);
        Some(Arrival::good(LEN))
    }
    fn tx_frame(&mut self, _: &[u8]) {}
}

/// A driver's port with one queue pair on a device that moves when told to.
struct Rig {
    model: Stepped<Feed>,
    port: Ixgbe<ixgbe_model::SteppedBus<Feed>>,
    rx: Box<dyn RxQueue>,
    tx: Box<dyn TxQueue>,
    local: Local,
}

impl Rig {
    fn new() -> Self {
        let layout = Layout::for_frame_room(2048).expect("a usual buffer");
        let window = Window::on_heap((BUFFERS * layout.stride()).next_multiple_of(GRANULE) + GRANULE);
        let memory = Memory::new(Arc::clone(&window), layout);
        memory.add_pool(BUFFERS, None, Pages::Any).expect("the window was made for it");
        let rings = window.arena(GRANULE, None, Pages::Any).expect("the window was made for it");
        let model = Stepped::new(Parameters::default(), rings, Feed::default()).expect("room for its rings");
        let env = OpenEnv { memory: Arc::clone(&memory), name: "p0".into() };
        let mut port = Ixgbe::open(model.bus(), IDENTITY, &env).expect("the device answers");
        let cfg = PortConfig { promiscuous: true, ..PortConfig::new(0) };
        let mut queues = port.start(&cfg).expect("a usual configuration");
        let local = Local::new(&memory);
        let worker = WorkerEnv { local: local.clone(), node: None, metered: true };
        let (rx, tx) = (queues.rx.pop().expect("one pair"), queues.tx.pop().expect("one pair"));
        let Ok(rx) = rx.attach(&worker) else { unreachable!("the memory has a pool") };
        let Ok(tx) = tx.attach(&worker) else { unreachable!("it needs nothing more") };
        for _ in 0..STEPS {
            model.step();
        }
        Self { model, port, rx, tx, local }
    }

    /// The device takes in a burst and does what the driver last asked for.
    fn feed(&self) {
        self.model.wire(|w| w.owed = BURST);
        self.model.settle(STEPS);
    }

    fn stop(mut self) {
        let queues = Queues { rx: vec![self.rx.detach()], tx: vec![self.tx.detach()] };
        self.port.stop(queues, &self.local).expect("the device resets");
    }
}

/// Receives bursts of 32 and sends them; collects the one if `RX`, else the other with its reaping.
pub fn ixgbe<const RX: bool>() -> u64 {
    let mut rig = Rig::new();
    let mut batch = Batch::new(&rig.local);
    let mut units = 0;
    for now in 0..BURSTS {
        rig.feed();
        let (rx, tx) = (&mut rig.rx, &mut rig.tx);
        let mut receive = || rx.rx_burst(&mut batch);
        let mut received = 0;
        if RX {
            collect(&mut || received = receive())
        } else {
            received = receive()
        }
        let mut send = || {
            tx.tx_burst(&mut batch, now);
            tx.flush(now, false);
            tx.reap();
        };
        if RX {
            send()
        } else {
            collect(&mut send)
        }
        units += received as u64;
    }
    assert_eq!(units, BURSTS * BURST as u64, "the device is stepped so that each burst is whole");
    rig.stop();
    units
}
