//! One Ringwright for an interface.
//!
//! The kernel would give a second one further queues of the same interface, and each would get a part of the frames. A claim is
//! a socket with an abstract name (unix(7)): known in one network namespace, as interfaces are, and gone with its process.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// An interface that is ours as long as this is held.
#[derive(Debug)]
pub struct Claim {
    _socket: UnixDatagram,
}

impl Claim {
    /// Claims the interface `name`; `None` if another has it.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(name: &str) -> std::io::Result<Option<Self>> {
        let address = SocketAddr::from_abstract_name(format!("ringwright/tap/{name}"))?;
        match UnixDatagram::bind_addr(&address) {
            Ok(socket) => Ok(Some(Self { _socket: socket })),
            Err(e) if e.kind() == ErrorKind::AddrInUse => Ok(None),
            Err(e) => Err(e),
        }
    }
}
