//! Tags put in and taken out by the kernel itself, as its VLAN devices do it: beside the frame's bytes. By two small
//! programs on an interface (bpf(2), `BPF_TCX_*`, Linux 6.6), as not every kernel is built with VLAN devices.

use std::ffi::CString;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `enum bpf_cmd`, `enum bpf_prog_type`, `enum bpf_attach_type`, helpers (`<linux/bpf.h>`).
const PROG_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;
const SCHED_CLS: u32 = 3;
const TCX_INGRESS: u32 = 46;
const TCX_EGRESS: u32 = 47;
const SKB_VLAN_PUSH: i32 = 18;
const SKB_VLAN_POP: i32 = 19;

/// `struct bpf_insn`.
#[repr(C)]
struct Insn {
    code: u8,
    registers: u8,
    off: i16,
    imm: i32,
}

const fn set(register: u8, imm: i32) -> Insn {
    Insn { code: 0xb7, registers: register, off: 0, imm }
}
const fn call(helper: i32) -> Insn {
    Insn { code: 0x85, registers: 0, off: 0, imm: helper }
}
const EXIT: Insn = Insn { code: 0x95, registers: 0, off: 0, imm: 0 };

fn bpf<T>(command: i32, attributes: &T) -> Result<OwnedFd> {
    // SAFETY: the kernel reads the attributes, and what they point to, during the call.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>()) };
    if fd < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: a fresh descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Runs `program` on each frame that passes an interface in one direction, as long as the result lives.
fn attach(index: u32, direction: u32, program: &[Insn]) -> Result<[OwnedFd; 2]> {
    #[repr(C)]
    struct Load {
        kind: u32,
        count: u32,
        program: u64,
        license: u64,
        rest: [u64; 15],
    }
    #[repr(C)]
    struct Link {
        program: u32,
        target: u32,
        direction: u32,
        flags: u32,
        rest: [u64; 6],
    }
    let license = c"GPL".as_ptr() as u64;
    let (count, at) = (program.len() as u32, program.as_ptr() as u64);
    let loaded = bpf(PROG_LOAD, &Load { kind: SCHED_CLS, count, program: at, license, rest: [0; 15] })?;
    let program = loaded.as_raw_fd() as u32;
    let link = bpf(LINK_CREATE, &Link { program, target: index, direction, flags: 0, rest: [0; 6] })?;
    Ok([loaded, link])
}

/// Has the kernel put tag `id` on what leaves by an interface and take tags off what comes in, as long as this lives.
pub struct Tagging(#[expect(dead_code, reason = "closing them ends it")] [[OwnedFd; 2]; 2]);

impl Tagging {
    pub fn new(interface: &str, id: u16) -> Self {
        let name = CString::new(interface).unwrap();
        // SAFETY: a C string.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        let dot1q = i32::from(0x8100u16.to_be());
        let push = [set(2, dot1q), set(3, id.into()), call(SKB_VLAN_PUSH), set(0, 0), EXIT];
        let pop = [call(SKB_VLAN_POP), set(0, 0), EXIT];
        let run = |direction, program: &[Insn]| {
            attach(index, direction, program).expect("a program on an interface")
        };
        Self([run(TCX_EGRESS, &push), run(TCX_INGRESS, &pop)])
    }
}
