//! A started port: the control side's part of its queues.

use std::io::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use port::{PortConfig, Queues};

use crate::layout::{MR_PROMISC, Membership, Stats, option};
use crate::open::{self, Opened};
use crate::rx::RxState;
use crate::rx_ring::{RxRing, RxSocket};
use crate::swap::{Known, Swap};
use crate::sys::{self, Filter};
use crate::tx::TxState;
use crate::tx_ring::{TxRing, TxSockets};

/// How long the end of receiving may take beyond the time after which the kernel hands over a block.
const PATIENCE: Duration = Duration::from_millis(100);

/// One queue's mailbox, and the sockets of the rings that it has or will get. The last is that of the interface as it is.
struct End<R, S> {
    swap: Arc<Swap<R>>,
    sockets: Vec<Arc<S>>,
}

impl<R, S> End<R, S> {
    fn new() -> Self {
        Self { swap: Arc::new(Swap::new()), sockets: Vec::new() }
    }
    fn adopt(&mut self, (ring, socket): (R, Arc<S>)) {
        self.sockets.push(socket);
        self.swap.post(ring);
    }
    /// Lets go of sockets that the queue is done with. Closing one takes milliseconds, so it is done here.
    fn tidy(&mut self) {
        if let Some(last) = self.sockets.pop() {
            self.sockets.retain(|one| Arc::strong_count(one) > 1);
            self.sockets.push(last);
        }
    }
}

/// A port that was started.
pub struct Run {
    pub cfg: PortConfig,
    pub known: Arc<Known>,
    rx: Vec<End<RxRing, RxSocket>>,
    tx: Vec<End<TxRing, TxSockets>>,
    pub promiscuous: bool,
    /// What all sockets have counted: frames meant for them, and those among them that found no room.
    pub packets: u64,
    pub drops: u64,
}

impl Run {
    /// A port without sockets, and its queues, which get their rings later.
    pub fn new(cfg: &PortConfig, promiscuous: bool) -> (Self, Queues) {
        let known = Arc::new(Known {
            up: AtomicBool::new(false),
            mtu: AtomicU32::new(0),
            off: AtomicBool::new(false),
        });
        let rx: Vec<_> = (0..cfg.queues).map(|_| End::new()).collect();
        let tx: Vec<_> = (0..cfg.queues).map(|_| End::new()).collect();
        let mut queues = Queues::default();
        for end in &rx {
            let state = RxState::new(Arc::clone(&end.swap), Arc::clone(&known), cfg.port, cfg.prefetch);
            queues.rx.push(Box::new(state));
        }
        for end in &tx {
            queues.tx.push(Box::new(TxState::new(Arc::clone(&end.swap), Arc::clone(&known), cfg)));
        }
        (Self { cfg: *cfg, known, rx, tx, promiscuous, packets: 0, drops: 0 }, queues)
    }

    /// Takes over sockets on interface `ifindex`, hands their rings to the queues, and lets frames in.
    pub fn adopt(&mut self, opened: Opened, ifindex: u32) -> Result<(), Error> {
        self.rx.iter_mut().zip(opened.rx).for_each(|(end, new)| end.adopt(new));
        self.tx.iter_mut().zip(opened.tx).for_each(|(end, new)| end.adopt(new));
        if self.promiscuous {
            self.membership(ifindex, true)?;
        }
        self.let_in()
    }

    /// Lets frames in, if somebody takes them.
    fn let_in(&self) -> Result<(), Error> {
        if !self.cfg.receives || self.known.off.load(Ordering::Relaxed) {
            return Ok(());
        }
        open::let_in(self.current(), self.promiscuous)
    }

    /// The sockets that receive now.
    fn current(&self) -> impl Iterator<Item = &Arc<RxSocket>> {
        self.rx.iter().filter_map(|end| end.sockets.last())
    }

    /// The interface that the sockets have; `None` if it is gone, or was never there.
    pub fn interface(&self) -> Option<u32> {
        self.current().next().and_then(|s| sys::bound_to(s.fd()))
    }
    /// Whether there were ever sockets.
    pub fn was_connected(&self) -> bool {
        self.current().next().is_some()
    }

    /// Puts the interface into promiscuous mode or takes it out. The kernel does the latter by itself when the socket is
    /// closed, however that comes about (packet(7), `PACKET_MR_PROMISC`).
    fn membership(&self, ifindex: u32, on: bool) -> Result<(), Error> {
        let Some(socket) = self.current().next() else { return Ok(()) };
        let membership = Membership { ifindex: ifindex as i32, kind: MR_PROMISC, ..Membership::default() };
        let which = if on { option::ADD_MEMBERSHIP } else { option::DROP_MEMBERSHIP };
        sys::set(socket.fd(), libc::SOL_PACKET, which, &membership)
    }

    /// Receives frames for everyone, or only those that are not for somebody else.
    pub fn set_promiscuous(&mut self, ifindex: u32, on: bool) -> Result<(), Error> {
        if on != self.promiscuous {
            self.membership(ifindex, on)?;
            self.promiscuous = on;
            self.let_in()?;
        }
        Ok(())
    }

    /// Adds what the sockets have counted since they were asked last: asking sets their counts to 0.
    pub fn count(&mut self) {
        for socket in self.rx.iter().flat_map(|end| &end.sockets) {
            if let Ok(s) = sys::get::<Stats>(socket.fd(), libc::SOL_PACKET, option::STATISTICS) {
                self.packets += u64::from(s.packets);
                self.drops += u64::from(s.drops);
            }
        }
    }

    /// Lets go of what came before the sockets there are now, once the queues are done with it.
    pub fn tidy(&mut self) {
        // Asked for their counts first; nothing more comes in by them.
        self.count();
        self.rx.iter_mut().for_each(End::tidy);
        self.tx.iter_mut().for_each(End::tidy);
    }

    /// Lets nothing more in, and waits until the queues can see all that came in before.
    pub fn rx_off(&self, retire: Duration) -> Result<(), Error> {
        let result = self.current().try_for_each(|s| sys::filter(s.fd(), Filter::Nothing));
        self.known.off.store(true, Ordering::Release);
        self.drain(retire);
        result
    }

    /// Waits until the kernel has handed over all blocks with frames, which it does after `retire`.
    pub fn drain(&self, retire: Duration) {
        // A frame that passed a filter before it was set, or an interface before it went, may still be on its way.
        open::settle();
        let end = Instant::now() + retire * 2 + PATIENCE;
        let pending = || self.rx.iter().flat_map(|end| &end.sockets).any(|s| s.is_pending());
        while pending() && Instant::now() < end {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}
