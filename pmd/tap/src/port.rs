//! The control side.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mem::{Local, MAX_SEGMENTS};
use port::{DeviceCounts, Link, OpenEnv, OpenPort, PortConfig, PortError, PortInfo, Queues};

use crate::device::Device;
use crate::keys::Keys;
use crate::mailbox::Mailbox;
use crate::rx::RxState;
use crate::stats::Stats;
use crate::tx::TxState;
use crate::{MAX_QUEUES, NAME};

/// Bytes of an Ethernet header with one tag.
const ETHERNET: u32 = 18;
/// The longest frame of an interface as most are: what ports are set to unless their configuration says otherwise.
const USUAL_FRAME: u32 = 1518;

/// A tap interface.
pub struct TapPort {
    device: Device,
    info: PortInfo,
    receiving: Arc<AtomicBool>,
    /// Of each queue: to its receive side and to its transmit side.
    mailboxes: Vec<[Arc<Mailbox>; 2]>,
    /// What the kernel had counted as the port was started. `None` when its counts are no longer those of this run.
    base: Option<Stats>,
    started: bool,
    /// That the interface cannot be made again was said.
    said: bool,
}

impl TapPort {
    pub fn open(keys: &Keys, env: &OpenEnv) -> Result<Self, PortError> {
        let device = Device::open(keys)?;
        let longest = device.mtu + ETHERNET;
        let room = u32::from(env.memory.layout().room()) * MAX_SEGMENTS as u32;
        if longest > room {
            let problem = format!(
                "{}: frames of {longest} bytes (MTU {}) do not fit {MAX_SEGMENTS} buffers of {}: raise [memory] frame_room, or set a smaller mtu",
                device.name,
                device.mtu,
                env.memory.layout().room()
            );
            return Err(PortError::Device { driver: NAME, problem });
        }
        let info = PortInfo {
            driver: NAME,
            node: None,
            mac: Some(device.mac),
            max_queues: MAX_QUEUES,
            max_frame: longest.max(USUAL_FRAME).min(u16::MAX.into()) as u16,
            max_segments: MAX_SEGMENTS as u16,
        };
        let receiving = Arc::new(AtomicBool::new(false));
        Ok(Self { device, info, receiving, mailboxes: Vec::new(), base: None, started: false, said: false })
    }

    /// Makes the interface again after it was deleted, and hands the queues what they go on with.
    #[cold]
    fn remake(&mut self) -> bool {
        self.base = None; // what the kernel had counted has gone with it
        if let Err(e) = self.device.remake() {
            if !self.said {
                tracing::warn!(interface = self.device.name, "deleted, and not made again: {e}");
                self.said = true;
            }
            return false;
        }
        tracing::info!(interface = self.device.name, "deleted, and made again");
        self.said = false;
        for (file, [rx, tx]) in self.device.queues.iter().zip(&self.mailboxes) {
            rx.post(Arc::clone(file));
            tx.post(Arc::clone(file));
        }
        true
    }
}

impl OpenPort for TapPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn start(&mut self, cfg: &PortConfig) -> Result<Queues, PortError> {
        cfg.check(&self.info)?;
        self.device.attach(cfg.queues.into())?;
        self.base = Stats::of(&self.device.name);
        self.receiving = Arc::new(AtomicBool::new(true));
        self.mailboxes = self.device.queues.iter().map(|_| Default::default()).collect();
        let mut queues = Queues::default();
        for (file, [rx, tx]) in self.device.queues.iter().zip(&self.mailboxes) {
            let receiving = Arc::clone(&self.receiving);
            queues.rx.push(Box::new(RxState::new(cfg.port, Arc::clone(file), Arc::clone(rx), receiving)));
            queues.tx.push(Box::new(TxState::new(Arc::clone(file), Arc::clone(tx))));
        }
        self.started = true;
        Ok(queues)
    }

    /// Looks at the interface, and makes it again if it was deleted.
    fn link(&mut self) -> Link {
        let mut up = self.started;
        if up && self.device.is_gone() {
            up = self.remake();
        }
        if up {
            let now = |d: &Device| d.interfaces.is_up(&d.name);
            // Under another name, or in another namespace, where frames pass as before.
            up = now(&self.device).unwrap_or_else(|_| {
                self.device.follow();
                now(&self.device).unwrap_or(true)
            });
        }
        Link { up, speed_bps: None }
    }

    /// The kernel's own counts, as long as it is the interface that the port was started with.
    fn device_counts(&mut self) -> DeviceCounts {
        let now = self.base.and_then(|base| Some(Stats::of(&self.device.name)?.since(base)));
        DeviceCounts {
            rx_good: None,
            rx_delivered: now.map(|n| n.sent),
            tx_sent: now.map(|n| n.received),
            rx_missed: now.map(|n| n.dropped),
            rx_errors: None,
        }
    }

    /// A tap interface sees all that Linux sends out of it.
    fn set_promiscuous(&mut self, _on: bool) -> Result<(), PortError> {
        Ok(())
    }

    fn rx_off(&mut self) -> Result<(), PortError> {
        self.receiving.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn stop(&mut self, queues: Queues, local: &Local) -> Result<(), PortError> {
        self.rx_off()?;
        self.started = false;
        queues.rx.into_iter().for_each(|q| q.reclaim(local));
        queues.tx.into_iter().for_each(|q| q.reclaim(local));
        // The first queue keeps the interface until the port goes.
        self.device.queues.truncate(1);
        Ok(())
    }
}
