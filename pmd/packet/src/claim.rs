//! One Ringwright per interface.
//!
//! Every packet socket sees every frame, so that two switches on one interface would both forward each of them. A claim is
//! a listening socket with an abstract name (unix(7)): it is known in one network namespace only, as interface numbers are,
//! and the kernel takes it back when the process ends, however it ends.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use crate::sys;

/// The claim on an interface, held as long as this lives.
#[derive(Debug)]
pub struct Claim {
    _listener: UnixListener,
}

impl Claim {
    /// Claims interface `index` of the caller's network namespace.
    ///
    /// # Errors
    /// Who has it, in words.
    pub fn new(index: u32) -> Result<Self, String> {
        let name = format!("ringwright/packet/{index}");
        let address = SocketAddr::from_abstract_name(&name).map_err(|e| e.to_string())?;
        match UnixListener::bind_addr(&address) {
            Ok(listener) => Ok(Self { _listener: listener }),
            Err(e) if e.kind() == ErrorKind::AddrInUse => Err(match sys::holder_of(&name) {
                Some(pid) if pid == std::process::id() => "another port of this process".to_owned(),
                Some(pid) => format!("another Ringwright, process {pid}"),
                None => "another Ringwright".to_owned(),
            }),
            Err(e) => Err(format!("nobody, but it cannot be claimed: {e}")),
        }
    }
}
