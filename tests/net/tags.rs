//! Stations whose frames carry VLAN tags.
//!
//! Their kernels put the tags on and take them off by classifiers (`tc ... bpf da`), which any kernel with `cls_bpf` runs, one
//! without VLAN devices too. The frames are the same: the outer tag in the kernel's own field, as a VLAN device leaves it to a
//! veth pair, an inner one in the bytes; segmentation and checksums still to be done.

use std::fs;
use std::path::Path;

use crate::rig::{Net, Station};

/// A tag: its type, priority and number.
#[derive(Clone, Copy, Debug)]
pub struct Tag {
    pub ethertype: u16,
    pub priority: u16,
    pub id: u16,
}

/// A customer tag (IEEE 802.1Q).
pub fn customer(priority: u16, id: u16) -> Tag {
    Tag { ethertype: 0x8100, priority, id }
}

/// A service tag (IEEE 802.1ad).
pub fn service(id: u16) -> Tag {
    Tag { ethertype: 0x88a8, priority: 0, id }
}

/// From now on all frames of a station leave with these tags, the innermost first, and lose as many when they come.
///
/// # Errors
/// What `tc` says: this kernel cannot.
pub fn tag(net: &Net, station: &Station, tags: &[Tag]) -> Result<(), String> {
    let way = |name: &str, program: Vec<u8>| {
        let file = net.dir.join(name);
        fs::write(&file, object(&program)).expect("a directory of ours");
        file
    };
    let (on, off) = (way("push.o", push(tags)), way("pop.o", pop(tags.len())));
    let tc = |words: &[&str]| {
        let ended = station.ns.run(&[&["tc"], words].concat());
        if ended.code() == Some(0) { Ok(()) } else { Err(ended.stderr) }
    };
    tc(&["qdisc", "replace", "dev", "eth0", "clsact"])?;
    for (hook, file) in [("egress", &on), ("ingress", &off)] {
        let file: &Path = file;
        let file = file.to_str().expect("a plain path");
        tc(&[
            "filter",
            "replace",
            "dev",
            "eth0",
            hook,
            "prio",
            "1",
            "handle",
            "1",
            "bpf",
            "da",
            "obj",
            file,
            "sec",
            "classifier",
        ])?;
    }
    Ok(())
}

// --- Programs (RFC 9669) ---

/// `skb_vlan_push` and `skb_vlan_pop` in the list of helpers, bpf-helpers(7).
const PUSH: i32 = 18;
const POP: i32 = 19;

/// One instruction: operation, destination and source register, number.
fn op(code: u8, to: u8, from: u8, number: i32) -> [u8; 8] {
    let [a, b, c, d] = number.to_le_bytes();
    [code, to | from << 4, 0, 0, a, b, c, d]
}

fn set(register: u8, number: i32) -> [u8; 8] {
    op(0xb7, register, 0, number)
}

fn copy(to: u8, from: u8) -> [u8; 8] {
    op(0xbf, to, from, 0)
}

fn call(helper: i32) -> [u8; 8] {
    op(0x85, 0, 0, helper)
}

/// `steps` for the packet in register 1, each with that register restored; then the packet goes on.
fn program(steps: impl IntoIterator<Item = Vec<[u8; 8]>>) -> Vec<u8> {
    let mut all = vec![copy(6, 1)];
    for step in steps {
        all.push(copy(1, 6));
        all.extend(step);
    }
    all.extend([set(0, 0), op(0x95, 0, 0, 0)]);
    all.concat()
}

fn push(tags: &[Tag]) -> Vec<u8> {
    program(tags.iter().map(|t| {
        // The type is in network order, the tag in the machine's.
        let (kind, tag) = (t.ethertype.to_be(), t.priority << 13 | t.id);
        vec![set(2, kind.into()), set(3, tag.into()), call(PUSH)]
    }))
}

fn pop(count: usize) -> Vec<u8> {
    program((0..count).map(|_| vec![call(POP)]))
}

/// An object file (ELF, gABI 4.1) with one function in section `classifier`, and the licence that its helpers ask for.
fn object(program: &[u8]) -> Vec<u8> {
    const HEADER: usize = 64;
    const NAMES: &[u8] = b"\0classifier\0license\0.symtab\0.strtab\0tags\0";
    let name = |n: &str| {
        let at = NAMES.windows(n.len() + 1).position(|w| w == [n.as_bytes(), b"\0"].concat());
        at.expect("a name of the table") as u32
    };
    // Two symbols: the null symbol, and a global function `tags` of section 1.
    let symbol = |name: u32, info: u8, section: u16, size: usize| {
        let mut s = [0; 24];
        s[..4].copy_from_slice(&name.to_le_bytes());
        s[4] = info;
        s[6..8].copy_from_slice(&section.to_le_bytes());
        s[16..].copy_from_slice(&(size as u64).to_le_bytes());
        s
    };
    let symbols = [symbol(0, 0, 0, 0), symbol(name("tags"), 0x12, 1, program.len())].concat();
    // Name, type, link, info; flags, alignment, size of an entry; content.
    let sections: [([u32; 4], [u64; 3], &[u8]); 5] = [
        ([0; 4], [0; 3], b""),
        ([name("classifier"), 1, 0, 0], [6, 8, 0], program),
        ([name("license"), 1, 0, 0], [3, 1, 0], b"Dual MIT/GPL\0"),
        ([name(".symtab"), 2, 4, 1], [0, 8, 24], &symbols),
        ([name(".strtab"), 3, 0, 0], [0, 1, 0], NAMES),
    ];
    let (mut body, mut table) = (Vec::new(), Vec::new());
    for ([name, kind, link, info], [flags, align, entry], content) in sections {
        body.resize(body.len().next_multiple_of(8), 0);
        let offset = (HEADER + body.len()) as u64;
        body.extend(content);
        table.extend([name, kind].map(u32::to_le_bytes).concat());
        table.extend([flags, 0, offset, content.len() as u64].map(u64::to_le_bytes).concat());
        table.extend([link, info].map(u32::to_le_bytes).concat());
        table.extend([align, entry].map(u64::to_le_bytes).concat());
    }
    body.resize(body.len().next_multiple_of(8), 0);
    // 64 bits, little-endian, version 1; relocatable, for BPF (247).
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\xf7\0\x01\0\0\0".to_vec();
    file.extend([0, 0, (HEADER + body.len()) as u64].map(u64::to_le_bytes).concat());
    file.extend(0_u32.to_le_bytes());
    file.extend([HEADER as u16, 0, 0, 64, 5, 4].map(u16::to_le_bytes).concat());
    file.extend(body);
    file.extend(table);
    file
}
