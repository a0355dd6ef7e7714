//! The interface: made or found, set up, attached to, made again.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use port::PortError;
use virtio_defs::VirtioNetHdr;

use crate::NAME;
use crate::claim::Claim;
use crate::keys::Keys;
use crate::sys::{self, Attach, Interfaces, OFFLOAD_CHECKSUM, OFFLOAD_TSO, OFFLOAD_USO};

/// A tap interface with at least one queue attached.
pub struct Device {
    pub interfaces: Interfaces,
    /// Its name now; it may be changed from outside.
    pub name: String,
    pub mac: [u8; 6],
    pub mtu: u32,
    keys: Keys,
    /// The attached queues.
    pub queues: Vec<Arc<File>>,
    /// Whether more queues can be attached.
    multi_queue: bool,
    _claim: Claim,
}

fn trouble(problem: impl Into<String>) -> PortError {
    PortError::Device { driver: NAME, problem: problem.into() }
}

/// An error of the system without its number.
pub fn said(e: &io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

impl Device {
    /// Makes the interface, or attaches to one that stays when nobody has it open.
    pub fn open(keys: &Keys) -> Result<Self, PortError> {
        let interfaces = Interfaces::new().map_err(|e| trouble(said(&e)))?;
        let wanted = &keys.interface;
        let in_use = || trouble(format!("{wanted} is in use by another program; choose another interface"));
        let mut claim = None;
        if !wanted.contains('%') {
            claim = Some(Claim::new(wanted).map_err(|e| trouble(said(&e)))?.ok_or_else(in_use)?);
        }
        let (file, multi_queue) = first(wanted)?;
        let name = sys::attached(&file).map_err(|e| trouble(said(&e)))?.name;
        let claim = match claim {
            Some(claim) => claim,
            None => Claim::new(&name).map_err(|e| trouble(said(&e)))?.ok_or_else(in_use)?,
        };
        let mut device = Self {
            interfaces,
            name,
            mac: [0; 6],
            mtu: 0,
            keys: keys.clone(),
            queues: vec![Arc::new(file)],
            multi_queue,
            _claim: claim,
        };
        device.set_up()?;
        Ok(device)
    }

    /// Sets what the keys say, and reads what they leave open.
    fn set_up(&mut self) -> Result<(), PortError> {
        let Self { interfaces, name, keys, .. } = self;
        let failed = |what: &str, e: io::Error| trouble(format!("{name}: {what}: {}", said(&e)));
        let tun = self.queues.first().ok_or_else(|| trouble("no queue is attached"))?;
        sys::set_header(tun, VirtioNetHdr::LEN).map_err(|e| failed("the header before frames", e))?;
        let all = OFFLOAD_CHECKSUM | OFFLOAD_TSO;
        // Kernels before 6.2 cannot leave the segmentation of UDP to us.
        sys::set_offload(tun, all | OFFLOAD_USO)
            .or_else(|_| sys::set_offload(tun, all))
            .map_err(|e| failed("offloads", e))?;
        if let Some(mac) = keys.mac {
            interfaces.set_mac(name, mac).map_err(|e| failed("the address cannot be set", e))?;
        }
        if let Some(mtu) = keys.mtu {
            interfaces.set_mtu(name, mtu).map_err(|e| failed("the MTU cannot be set", e))?;
        }
        if keys.persist {
            sys::set_persistent(tun).map_err(|e| failed("it cannot be made to stay", e))?;
        }
        self.mac = interfaces.mac(name).map_err(|e| failed("it has no address", e))?;
        self.mtu = interfaces.mtu(name).map_err(|e| failed("it has no MTU", e))?;
        Ok(())
    }

    /// Attaches queues until there are `n`, and takes the interface up if that is wanted.
    pub fn attach(&mut self, n: usize) -> Result<(), PortError> {
        if n > 1 && !self.multi_queue {
            return Err(trouble(format!(
                "{} was made with one queue; make it anew with: {}",
                self.name,
                recipe(&self.name)
            )));
        }
        self.queues.truncate(n.max(1));
        while self.queues.len() < n {
            let file = open()?;
            let how = Attach { multi_queue: true, exclusive: false };
            sys::attach(&file, &self.name, how).map_err(|e| {
                trouble(format!("{}: queue {} of {n}: {}", self.name, self.queues.len() + 1, said(&e)))
            })?;
            self.queues.push(Arc::new(file));
        }
        if self.keys.up {
            let failed = |e: io::Error| trouble(format!("{} cannot be taken up: {}", self.name, said(&e)));
            self.interfaces.set_up(&self.name).map_err(failed)?;
        }
        Ok(())
    }

    /// Whether the interface was deleted: then nothing that was attached to it is of any use.
    pub fn is_gone(&self) -> bool {
        self.queues.first().is_some_and(|q| sys::attached(q).is_err())
    }

    /// Makes the interface again, with as many queues, the same name, address and MTU.
    pub fn remake(&mut self) -> Result<(), PortError> {
        let n = self.queues.len();
        let (file, multi_queue) = first(&self.name)?;
        self.queues = vec![Arc::new(file)];
        self.multi_queue = multi_queue;
        (self.keys.mac, self.keys.mtu) = (Some(self.mac), Some(self.mtu));
        self.set_up()?;
        self.attach(n)
    }

    /// Follows the interface to the name it has now.
    pub fn follow(&mut self) {
        if let Some(now) = self.queues.first().and_then(|q| sys::attached(q).ok()) {
            self.name = now.name;
        }
    }
}

fn recipe(name: &str) -> String {
    format!("ip tuntap add dev {name} mode tap multi_queue")
}

fn open() -> Result<File, PortError> {
    sys::open().map_err(|e| match e.kind() {
        ErrorKind::NotFound => trouble(format!(
            "there is no {}: load the kernel's tun module (modprobe tun), or give the container the device",
            sys::DEVICE
        )),
        ErrorKind::PermissionDenied => trouble(format!("{}: no right to open it: run as root", sys::DEVICE)),
        _ => trouble(format!("{}: {}", sys::DEVICE, said(&e))),
    })
}

/// Attaches the first queue. Returns it, and whether there can be more.
fn first(name: &str) -> Result<(File, bool), PortError> {
    let in_use = || trouble(format!("{name} is in use by another program; choose another interface"));
    let file = open()?;
    let made = Attach { multi_queue: true, exclusive: true };
    match sys::attach(&file, name, made) {
        Ok(()) => return Ok((file, true)),
        Err(e) if e.kind() == ErrorKind::ResourceBusy => {}
        Err(e) => return Err(refused(name, &e)),
    }
    // It exists. One that does not stay by itself is there because another program has it open.
    for multi_queue in [true, false] {
        match sys::attach(&file, name, Attach { multi_queue, exclusive: false }) {
            Ok(()) => {
                let persistent = sys::attached(&file).is_ok_and(|a| a.persistent);
                return if persistent { Ok((file, multi_queue)) } else { Err(in_use()) };
            }
            Err(e) if e.kind() == ErrorKind::InvalidInput => {}
            Err(e) if e.kind() == ErrorKind::ResourceBusy => return Err(in_use()),
            Err(e) => return Err(refused(name, &e)),
        }
    }
    Err(trouble(format!(
        "{name} exists, and is no tap interface; choose another name, or delete it: ip link del {name}"
    )))
}

fn refused(name: &str, e: &io::Error) -> PortError {
    match e.kind() {
        ErrorKind::PermissionDenied => trouble(format!(
            "making {name} needs CAP_NET_ADMIN: run as root, or have it made beforehand: {} user USER",
            recipe(name)
        )),
        _ => trouble(format!("{name} cannot be made: {}", said(e))),
    }
}
