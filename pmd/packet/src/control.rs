//! The control side: start, link, counts, stop, and what happens when the interface goes and comes back.

use std::io::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mem::Local;
use port::{DeviceCounts, Link, OpenEnv, OpenPort, PortConfig, PortError, PortInfo, Queues};

use crate::claim::Claim;
use crate::iface::{self, Ask};
use crate::keys::Keys;
use crate::open::{self, Failed, Plan};
use crate::run::Run;
use crate::send::HEADERS;
use crate::sys;
use crate::tx_ring::TxShape;
use crate::{MAX_QUEUES, NAME};

/// The longest frame of an interface with the usual MTU: what a port takes at least, whatever its MTU is now.
const USUAL_FRAME: u32 = 1518;

/// One interface.
pub struct PacketPort {
    name: Arc<str>,
    keys: Keys,
    info: PortInfo,
    ask: Ask,
    ifindex: u32,
    /// The interface's name, which may have been changed since.
    label: String,
    claim: Option<Claim>,
    run: Option<Run>,
    /// What was said last about an interface that cannot be used.
    complaint: Option<String>,
}

fn device(problem: String) -> PortError {
    PortError::Device { driver: NAME, problem }
}

/// An error of the kernel's, with what to do about it.
fn failure(interface: &str, f: &Failed) -> PortError {
    device(match f.error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => format!(
            "{interface}: {} needs the capability CAP_NET_RAW: run as root, or give it to the program with \
             `setcap cap_net_raw,cap_net_admin+ep PROGRAM`, or AmbientCapabilities=CAP_NET_RAW in a unit file",
            f.step
        ),
        Some(libc::ENOMEM) => format!(
            "{interface}: {}: the kernel has no memory for it; use a smaller block, fewer blocks, a smaller tx_ring or \
             fewer queues",
            f.step
        ),
        _ => format!("{interface}: {}: {}", f.step, f.error),
    })
}

impl PacketPort {
    /// Finds the interface and claims it.
    pub fn open(keys: Keys, env: &OpenEnv) -> Result<Self, PortError> {
        let interface = keys.interface.clone();
        let wrong =
            |problem: String| PortError::Config { driver: NAME, key: "interface".to_owned(), problem };
        let ask = Ask::new().map_err(|e| device(format!("a socket to ask about interfaces with: {e}")))?;
        let hardware = ask.hardware(&interface).map_err(|e| wrong(missing(&interface, &e)))?;
        if !hardware.ethernet {
            return Err(wrong(format!("{interface:?} has no Ethernet frames: it cannot be a port")));
        }
        let longest = hardware.mtu.saturating_add(HEADERS);
        let chain = mem::MAX_SEGMENTS as u32 * u32::from(env.memory.layout().room());
        if longest > chain {
            return Err(wrong(format!(
                "{interface:?} has an MTU of {}: its frames of up to {longest} bytes do not fit {} buffers of {} bytes; \
                 raise [memory] frame_room to {} or lower the MTU",
                hardware.mtu,
                mem::MAX_SEGMENTS,
                env.memory.layout().room(),
                longest.div_ceil(mem::MAX_SEGMENTS as u32),
            )));
        }
        // Says now what would be said at start: a claim is of no use without the right to use it.
        sys::packet_socket()
            .map_err(|error| failure(&interface, &Failed { step: "opening a packet socket", error }))?;
        let claim = (!keys.shared).then(|| claim(&interface, hardware.index)).transpose().map_err(wrong)?;
        let info = PortInfo {
            driver: NAME,
            node: iface::node(&interface, hardware.index),
            mac: Some(hardware.mac),
            max_queues: MAX_QUEUES,
            max_frame: longest.max(USUAL_FRAME).min(u16::MAX.into()) as u16,
            max_segments: mem::MAX_SEGMENTS as u16,
        };
        let (name, ifindex) = (Arc::clone(&env.name), hardware.index);
        Ok(Self { name, keys, info, ask, ifindex, label: interface, claim, run: None, complaint: None })
    }

    /// Opens sockets on the interface and hands their rings to the queues.
    fn connect(&mut self) -> Result<(), PortError> {
        let Some(run) = &mut self.run else { return Ok(()) };
        let said = |step| move |error| Failed { step, error };
        let mtu = self.ask.mtu(&self.label).map_err(said("asking for the MTU"));
        let mtu = mtu.map_err(|f| failure(&self.label, &f))?;
        let plan = plan(&self.keys, &run.cfg, self.ifindex, mtu)?;
        let opened = open::open(&plan).map_err(|f| failure(&self.label, &f))?;
        run.known.mtu.store(mtu, Ordering::Relaxed);
        run.known.up.store(is_up(&self.ask, &self.label), Ordering::Relaxed);
        let adopted = run.adopt(opened, self.ifindex).map_err(said("beginning to receive"));
        adopted.map_err(|f| failure(&self.label, &f))
    }

    /// Whether the sockets have an interface.
    fn is_connected(&self) -> bool {
        self.run.as_ref().and_then(Run::interface) == Some(self.ifindex)
    }

    /// Takes the interface that has the configured name now.
    fn reconnect(&mut self) -> Result<(), PortError> {
        let interface = &self.keys.interface;
        let hardware = self.ask.hardware(interface).map_err(|e| device(missing(interface, &e)))?;
        if !hardware.ethernet {
            return Err(device(format!("{interface:?} has no Ethernet frames now")));
        }
        if !self.keys.shared && (self.claim.is_none() || hardware.index != self.ifindex) {
            self.claim = None;
            self.claim = Some(claim(interface, hardware.index).map_err(device)?);
        }
        (self.ifindex, self.label) = (hardware.index, interface.clone());
        self.info.mac = Some(hardware.mac);
        self.info.node = iface::node(&self.label, self.ifindex);
        if let Some(run) = &self.run {
            // A new ring is read only when the old one is empty: what the kernel has yet to hand over of it comes first.
            run.drain(self.retire());
        }
        self.connect()
    }

    /// The interface is gone, or could not be used so far: tries again.
    fn try_again(&mut self) {
        if let Some(run) = &self.run {
            run.known.up.store(false, Ordering::Relaxed);
            if self.complaint.is_none() && run.was_connected() {
                tracing::warn!(
                    port = &*self.name,
                    "{} is gone; the port waits for it to come back",
                    self.label
                );
            }
        }
        match self.reconnect() {
            Ok(()) => {
                tracing::info!(port = &*self.name, "{} is there", self.label);
                self.complaint = None;
            }
            Err(e) => self.complain(e.to_string()),
        }
    }

    /// Says why the interface cannot be used, once.
    fn complain(&mut self, why: String) {
        if self.complaint.as_ref() != Some(&why) {
            tracing::debug!(port = &*self.name, "{why}");
            self.complaint = Some(why);
        }
    }

    /// The kernel knows the interface by its number; its name may be changed at any time.
    fn follow_name(&mut self) {
        match self.ask.name(self.ifindex) {
            Ok(name) if name != self.label => {
                tracing::warn!(
                    port = &*self.name,
                    "{} is called {name} now; the port stays with it",
                    self.label
                );
                self.label = name;
            }
            _ => {}
        }
    }

    const fn retire(&self) -> Duration {
        Duration::from_millis(self.keys.retire_ms as u64)
    }
}

impl OpenPort for PacketPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn start(&mut self, cfg: &PortConfig) -> Result<Queues, PortError> {
        cfg.check(&self.info)?;
        if self.run.is_some() {
            return Err(device(format!("{} was started already", self.label)));
        }
        let (run, queues) = Run::new(cfg, self.keys.promiscuous && cfg.promiscuous && cfg.receives);
        self.run = Some(run);
        match self.connect() {
            Ok(()) => Ok(queues),
            // Before Linux 6.13 sockets of an interface that is down cannot share frames out.
            Err(e) if cfg.queues > 1 && !is_up(&self.ask, &self.label) => {
                tracing::warn!(port = &*self.name, "{} is down; the port waits for it: {e}", self.label);
                Ok(queues)
            }
            Err(e) => {
                self.run = None;
                Err(e)
            }
        }
    }

    /// Also keeps up with the interface: what it is called, whether it is there. To be called about once a second.
    fn link(&mut self) -> Link {
        let receiving = self.run.as_ref().is_some_and(|r| !r.known.off.load(Ordering::Relaxed));
        if receiving && !self.is_connected() {
            self.try_again();
        }
        self.follow_name();
        let up = (self.run.is_none() || self.is_connected()) && is_up(&self.ask, &self.label);
        if let Some(run) = &mut self.run {
            run.known.up.store(up, Ordering::Relaxed);
            if let Ok(mtu) = self.ask.mtu(&self.label) {
                run.known.mtu.store(mtu, Ordering::Relaxed);
            }
            run.tidy();
        }
        let speed_bps = if up { iface::speed(&self.label, self.ifindex) } else { None };
        Link { up, speed_bps }
    }

    fn device_counts(&mut self) -> DeviceCounts {
        let Some(run) = &mut self.run else { return DeviceCounts::default() };
        run.count();
        DeviceCounts {
            rx_good: Some(run.packets),
            rx_delivered: Some(run.packets - run.drops),
            rx_missed: Some(run.drops),
            // The kernel says what it took, not what it sent; and of frames with faults of their own nothing at all.
            tx_sent: None,
            rx_errors: None,
        }
    }

    fn set_promiscuous(&mut self, on: bool) -> Result<(), PortError> {
        let Some(run) = &mut self.run else {
            self.keys.promiscuous = on;
            return Ok(());
        };
        let result = run.set_promiscuous(self.ifindex, on);
        result.map_err(|error| failure(&self.label, &Failed { step: "changing promiscuous mode", error }))
    }

    fn rx_off(&mut self) -> Result<(), PortError> {
        let Some(run) = &self.run else { return Ok(()) };
        let result = run.rx_off(self.retire());
        result.map_err(|error| failure(&self.label, &Failed { step: "ending to receive", error }))
    }

    fn stop(&mut self, queues: Queues, local: &Local) -> Result<(), PortError> {
        queues.rx.into_iter().for_each(|q| q.reclaim(local));
        queues.tx.into_iter().for_each(|q| q.reclaim(local));
        self.run = None;
        Ok(())
    }
}

/// Whether an interface is switched on and has a carrier.
fn is_up(ask: &Ask, name: &str) -> bool {
    ask.state(name).is_ok_and(|(up, running)| up && running)
}

/// What sockets to open.
fn plan(keys: &Keys, cfg: &PortConfig, ifindex: u32, mtu: u32) -> Result<Plan, PortError> {
    let longest = mtu.saturating_add(HEADERS);
    let rx = keys.rx_shape(cfg.rx_ring.get(), longest);
    if rx.longest_frame() < longest {
        let problem = format!(
            "a block of {} bytes does not hold the longest frame of {:?}, {longest} bytes; use 128K",
            rx.block, keys.interface
        );
        return Err(PortError::Config { driver: NAME, key: "block".to_owned(), problem });
    }
    let (queues, fanout, qdisc_bypass) = (cfg.queues, keys.fanout, keys.qdisc_bypass);
    Ok(Plan { queues, ifindex, fanout, qdisc_bypass, rx, tx: TxShape::new(cfg.tx_ring.get(), longest) })
}

/// Claims an interface.
fn claim(interface: &str, index: u32) -> Result<Claim, String> {
    Claim::new(index).map_err(|who| {
        format!(
            "{interface:?} is taken by {who}; stop that one, or set shared = true here, after which both get every frame"
        )
    })
}

/// What to say about an interface that cannot be asked about.
fn missing(interface: &str, e: &Error) -> String {
    if e.raw_os_error() != Some(libc::ENODEV) {
        return format!("{interface:?}: {e}");
    }
    let there: Vec<_> = iface::interfaces().unwrap_or_default().into_iter().map(|i| i.name).collect();
    let near = config::suggest(interface, there.iter().map(String::as_str));
    let near = near.map_or_else(String::new, |n| format!("; did you mean {n}?"));
    format!("there is no interface {interface:?}{near} (there are {})", there.join(", "))
}
