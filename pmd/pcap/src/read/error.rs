//! What can be wrong with a capture.

use std::io;

use super::MAX_FRAME;

/// Why a capture cannot be read, or no further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system says no.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Not one byte.
    #[error("is empty: even a capture without packets has a header")]
    Empty,
    /// Something else than a capture.
    #[error("is no pcap or pcapng file{}", packed(*.0))]
    NotACapture([u8; 4]),
    /// Frames that are not Ethernet.
    #[error("holds {} of link type {link}{}; only Ethernet (link type 1) can be read", of(*interface, name), known(*link))]
    LinkType {
        /// The interface's number in its section, of a pcapng file.
        interface: Option<usize>,
        /// The interface's name, if the file has it.
        name: String,
        /// As in the registry of link types of tcpdump.org.
        link: u32,
    },
    /// It ends too early.
    #[error("ends in the middle of the record that begins at byte {offset}")]
    Cut {
        /// Where the record begins.
        offset: u64,
    },
    /// It makes no sense from here on.
    #[error("is damaged at byte {offset}: {problem}")]
    Damaged {
        /// Where the record begins.
        offset: u64,
        /// What makes no sense.
        problem: Problem,
    },
}

/// What makes no sense in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Of the file or the section.
    #[error("version {0}.{1} of the format is not known")]
    Version(u16, u16),
    /// Frames are not as long as that.
    #[error("a frame of {0} bytes; the longest there can be has {MAX_FRAME}")]
    FrameLength(u32),
    /// Too short, not a multiple of four, or longer than any such block.
    #[error("a block of {0} bytes")]
    BlockLength(u32),
    /// The length behind a block is not the one before it.
    #[error("a block of {0} bytes that ends as one of {1}")]
    Trailer(u32, u32),
    /// The byte-order magic of a section.
    #[error("a section whose byte order is marked with {0:#010x}")]
    ByteOrder(u32),
    /// What a block says it holds does not fit in.
    #[error("a block that is too short for what it says it holds")]
    Overrun,
    /// A packet of an interface that was not described.
    #[error("a packet of interface {0}, which is not described")]
    Interface(u32),
    /// An option longer than its block, or of the wrong length.
    #[error("an option of an interface that does not fit")]
    Option,
    /// Too many of them.
    #[error("more than {0} interfaces in one section")]
    Interfaces(usize),
}

fn packed(magic: [u8; 4]) -> &'static str {
    match magic {
        [0x1f, 0x8b, ..] => ": it is packed with gzip, unpack it first",
        [0x28, 0xb5, 0x2f, 0xfd] => ": it is packed with zstd, unpack it first",
        [0xfd, b'7', b'z', b'X'] => ": it is packed with xz, unpack it first",
        [0x34, 0xcd, 0xb2, 0xa1] | [0xa1, 0xb2, 0xcd, 0x34] => {
            ": it is one of a variant of pcap that is not read"
        }
        _ => "",
    }
}

fn of(interface: Option<usize>, name: &str) -> String {
    match interface {
        None => "frames".to_owned(),
        Some(i) if name.is_empty() => format!("interface {i}"),
        Some(i) => format!("interface {i} ({name})"),
    }
}

/// The names of those that are met most.
fn known(link: u32) -> &'static str {
    match link {
        0 | 108 => " (loopback)",
        9 => " (PPP)",
        12 | 101 | 228 | 229 => " (raw IP)",
        105 | 127 => " (802.11)",
        113 | 276 => " (Linux cooked, as of tcpdump -i any)",
        189 | 220 | 249 => " (USB)",
        201 => " (Bluetooth)",
        _ => "",
    }
}
