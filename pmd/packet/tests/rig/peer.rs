//! A raw socket at the other end of a cable: one frame a call, tags as the kernel says they were.

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::set;

/// `SOL_PACKET` options and flags (`<linux/if_packet.h>`).
const PACKET_AUXDATA: i32 = 8;
const PACKET_IGNORE_OUTGOING: i32 = 23;
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;

pub struct Peer(OwnedFd);

impl Peer {
    /// On interface `name` of the calling thread's namespace.
    pub fn new(name: &str) -> Self {
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: numbers only.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: a fresh descriptor.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        set(&fd, libc::SOL_PACKET, PACKET_AUXDATA, &1u32);
        set(&fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1u32);
        set(&fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &(64u32 << 20));
        let name = CString::new(name).unwrap();
        // SAFETY: all zeroes is an address; the name is a C string.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        // SAFETY: as above.
        address.sll_ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) } as i32;
        assert_ne!(address.sll_ifindex, 0, "{name:?}");
        let len = size_of_val(&address) as libc::socklen_t;
        // SAFETY: an address of that length.
        let r = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) };
        assert_eq!(r, 0, "{}", std::io::Error::last_os_error());
        Self(fd)
    }

    pub fn send(&self, frame: &[u8]) {
        // SAFETY: as many bytes as the frame has.
        let n = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        assert_eq!(n, frame.len() as isize, "{}", std::io::Error::last_os_error());
    }

    /// The next frame, with the tag that the kernel took out put back; `None` if none comes within `wait`.
    pub fn receive_within(&self, wait: Duration) -> Option<Vec<u8>> {
        let time = libc::timeval { tv_sec: 0, tv_usec: wait.as_micros() as i64 };
        set(&self.0, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &time);
        let mut bytes = vec![0u8; 1 << 17];
        let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let mut control = [0u64; 16];
        // SAFETY: all zeroes is a message.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control));
        // SAFETY: both buffers are alive and as long as said.
        let n = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, 0) };
        if n < 0 {
            return None;
        }
        bytes.truncate(n as usize);
        // SAFETY: control data that the kernel has written.
        let aux: Option<libc::tpacket_auxdata> = unsafe {
            let c = libc::CMSG_FIRSTHDR(&raw const message);
            (!c.is_null()).then(|| libc::CMSG_DATA(c).cast::<libc::tpacket_auxdata>().read_unaligned())
        };
        if let Some(a) = aux.filter(|a| a.tp_status & TP_STATUS_VLAN_VALID != 0) {
            let [t0, t1] = a.tp_vlan_tpid.to_be_bytes();
            let [c0, c1] = a.tp_vlan_tci.to_be_bytes();
            bytes.splice(12..12, [t0, t1, c0, c1]);
        }
        Some(bytes)
    }

    pub fn receive(&self) -> Vec<u8> {
        self.receive_within(Duration::from_millis(900)).expect("a frame")
    }
    /// Nothing comes.
    pub fn quiet(&self) {
        assert_eq!(self.receive_within(Duration::from_millis(30)), None);
    }
}
