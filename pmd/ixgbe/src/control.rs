//! The control side: open, start, stop, link.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hw::{Arena, Bus, HwError, Iova};
use ixgbe_defs::{Queue, regs};
use mem::{Local, Memory};
use port::{DeviceCounts, Link, OpenEnv, OpenPort, PortConfig, PortError, PortInfo, Queues};
use ring::{DescRing, Pos, RingSize};

use crate::device::Device;
use crate::guard::{Guarded, Reach};
use crate::init::{self, RxQueueConfig};
use crate::rx::{RxLimits, RxState};
use crate::stats::{self, Statistics};
use crate::tx::{MAX_SEGMENTS, TxState};
use crate::{MAX_FRAME, MAX_QUEUES, NAME, PciId, RssBy};

/// The longest ring that the data sheet has validated (8.2.3.8.3, 8.2.3.9.7: 8192 descriptors).
const LONGEST_RING: u32 = 8192;
/// Bytes that a frame may have beyond the longest: a VLAN tag, which MAXFRS does not count (8.2.3.22.13).
const TAG: u32 = 4;

/// One device: its control side. The queues that it hands out live apart from it.
pub struct Ixgbe<B: Bus + 'static> {
    pub(crate) device: Device<B>,
    info: PortInfo,
    memory: Arc<Memory>,
    rss: RssBy,
    stats: Statistics,
    running: Option<Running>,
    /// The last reset failed: try again before anything else.
    dirty: bool,
    start_at: Pos,
}

/// What ends when the device has been reset.
struct Running {
    reach: Arc<Reach>,
    arenas: Vec<Arc<Arena>>,
}

fn refuse(problem: String) -> PortError {
    PortError::Device { driver: NAME, problem }
}

impl<B: Bus + 'static> Ixgbe<B> {
    /// Finds out what is on `bus`, of which the configuration space says `id`, and resets it.
    ///
    /// # Errors
    /// Not an 82599 or X540, no answer, a reset that does not end.
    pub fn open(bus: B, id: PciId, env: &OpenEnv) -> Result<Self, PortError> {
        let device = Device::find(bus, id)?;
        init::reset(&device)?;
        let mac = init::address(&device);
        tracing::info!(port = &*env.name, ?mac, controller = ?device.controller, "reset");
        let info = PortInfo {
            driver: NAME,
            node: None,
            mac,
            max_queues: MAX_QUEUES,
            max_frame: MAX_FRAME,
            max_segments: MAX_SEGMENTS as u16,
        };
        Ok(Self {
            device,
            info,
            memory: Arc::clone(&env.memory),
            rss: RssBy::default(),
            stats: Statistics::default(),
            running: None,
            dirty: false,
            start_at: 0,
        })
    }

    /// How receive queues are chosen; from the next start on.
    pub fn set_rss(&mut self, by: RssBy) {
        self.rss = by;
    }

    /// Ring positions start at the multiple of the ring's length at or below `pos`: to test what happens when they wrap.
    #[doc(hidden)]
    pub fn start_positions_at(&mut self, pos: Pos) {
        self.start_at = pos;
    }

    /// All statistics since the start, now.
    pub fn statistics(&mut self) -> Statistics {
        // A device that is gone reads all ones, which are no counts.
        if self.running.is_some() && self.device.bar.read32(regs::STATUS) != u32::MAX {
            self.stats.read(&self.device.bar);
        }
        self.stats
    }

    fn check(&self, cfg: &PortConfig) -> Result<RxLimits, PortError> {
        cfg.check(&self.info)?;
        // SRRCTL.BSIZEPACKET counts KiB, 1 to 16 (8.2.3.8.7).
        let kib = u32::from(self.memory.layout().room() / 1024).min(16);
        if kib == 0 {
            let problem =
                "buffers hold less than 1024 bytes of a frame; set [memory] frame_room = 1024 or more".into();
            return Err(PortError::Config { driver: NAME, key: "frame_room".into(), problem });
        }
        let longest = u32::from(cfg.max_frame) + TAG;
        let segments = longest.div_ceil(kib * 1024);
        let min = (segments + 2).next_power_of_two().max(8);
        for asked in [cfg.rx_ring.get(), cfg.tx_ring.get()] {
            if !(min..=LONGEST_RING).contains(&asked) {
                return Err(PortError::RingLength { asked, min, max: LONGEST_RING, driver: NAME });
            }
        }
        Ok(RxLimits { kib, longest, segments })
    }

    fn map_all(&self) -> Result<Vec<Arc<Arena>>, HwError> {
        let mut mapped: Vec<Arc<Arena>> = Vec::new();
        for pool in self.memory.pools() {
            if let Err(e) = self.device.bus.map(pool.arena()) {
                mapped.iter().for_each(|a| self.device.bus.unmap(a));
                return Err(e);
            }
            mapped.push(Arc::clone(pool.arena()));
        }
        Ok(mapped)
    }

    fn ring<D: Copy>(&self, size: RingSize, reach: &Arc<Reach>) -> Result<(Guarded<D>, Iova), PortError> {
        let memory = self.device.bus.dma(size.entries() * size_of::<D>(), self.info.node)?;
        let ring = DescRing::new(memory, size)?;
        let base = ring.iova();
        Ok((Guarded::new(ring, reach), base))
    }

    /// What is made goes into `queues` at once, so that it outlives the reset after a failure.
    fn set_up(
        &self,
        cfg: &PortConfig,
        limits: RxLimits,
        reach: &Arc<Reach>,
        queues: &mut Queues,
    ) -> Result<(), PortError> {
        let d = &self.device;
        crate::filters::clear(&d.bar);
        stats::clear(&d.bar);
        init::globals(d, cfg, self.rss);
        crate::filters::promiscuous(&d.bar, cfg.promiscuous);
        let drop = cfg.queues > 1 && !cfg.rx_wait;
        let rx_cfg = RxQueueConfig { kib: limits.kib, drop, strip: cfg.vlan_strip };
        for q in (0..cfg.queues).filter_map(|n| Queue::new(n as u8)) {
            let (rdt, tdt) = (d.bar.doorbell(regs::rdt(q))?, d.bar.doorbell(regs::tdt(q))?);
            let (rx, base) = self.ring(cfg.rx_ring, reach)?;
            queues.rx.push(Box::new(RxState::new(rx, rdt, cfg, limits, self.start_at)));
            init::rx_queue(d, q, base, cfg.rx_ring, rx_cfg)?;
            let (tx, base) = self.ring(cfg.tx_ring, reach)?;
            queues.tx.push(Box::new(TxState::new(tx, tdt, cfg, self.start_at)));
            init::tx_queue(d, q, base, cfg.tx_ring)?;
        }
        init::switch_receive(d, true)?;
        init::restart_link(d);
        Ok(())
    }

    /// Resets the device; if it does, it can reach nothing any more.
    fn end(&mut self) -> Result<(), HwError> {
        let result = init::reset(&self.device);
        self.dirty = result.is_err();
        if let (Some(r), true) = (self.running.take(), result.is_ok()) {
            r.reach.end();
            r.arenas.iter().for_each(|a| self.device.bus.unmap(a));
        }
        result
    }
}

impl<B: Bus + 'static> OpenPort for Ixgbe<B> {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn start(&mut self, cfg: &PortConfig) -> Result<Queues, PortError> {
        if self.running.is_some() {
            return Err(refuse("the device is running; stop it first".into()));
        }
        let limits = self.check(cfg)?;
        if self.dirty {
            self.end()?;
        }
        let reach = Arc::new(Reach::default());
        let arenas = self.map_all()?;
        self.running = Some(Running { reach: Arc::clone(&reach), arenas });
        self.stats = Statistics::default();
        let mut queues = Queues::default();
        if let Err(e) = self.set_up(cfg, limits, &reach, &mut queues) {
            // Rings that were made are let go after this, or quarantined if it fails too.
            let _ = self.end();
            return Err(e);
        }
        Ok(queues)
    }

    fn link(&mut self) -> Link {
        let links = self.device.bar.read32(regs::LINKS);
        let up = links != u32::MAX && links & regs::links::UP != 0;
        let speed_bps = match links & regs::links::SPEED_MASK {
            _ if !up => None,
            regs::links::SPEED_10G => Some(10_000_000_000),
            regs::links::SPEED_1G => Some(1_000_000_000),
            regs::links::SPEED_100M => Some(100_000_000),
            _ => None,
        };
        Link { up, speed_bps }
    }

    fn device_counts(&mut self) -> DeviceCounts {
        self.statistics().counts()
    }

    fn set_promiscuous(&mut self, on: bool) -> Result<(), PortError> {
        crate::filters::promiscuous(&self.device.bar, on);
        Ok(())
    }

    fn rx_off(&mut self) -> Result<(), PortError> {
        Ok(init::switch_receive(&self.device, false)?)
    }

    fn stop(&mut self, queues: Queues, local: &Local) -> Result<(), PortError> {
        let Some(reach) = self.running.as_ref().map(|r| Arc::clone(&r.reach)) else { return Ok(()) };
        let off = self.rx_off();
        self.statistics();
        let reset = self.end();
        queues.rx.into_iter().for_each(|q| q.reclaim(local));
        queues.tx.into_iter().for_each(|q| q.reclaim(local));
        if let Err(e) = reset {
            let (rings, buffers) =
                (reach.rings.load(Ordering::Relaxed), reach.buffers.load(Ordering::Relaxed));
            tracing::error!(rings, buffers, "quarantined: {e}");
            return Err(PortError::Quarantined { rings, buffers });
        }
        if let Err(e) = off {
            tracing::warn!("the device was reset while its receive path was not empty: {e}");
        }
        Ok(())
    }
}

impl<B: Bus + 'static> Drop for Ixgbe<B> {
    fn drop(&mut self) {
        if self.running.is_some() {
            // Not stopped. If this fails the queues quarantine what they hold, and the bus keeps the arenas.
            let _ = self.end();
        }
    }
}
