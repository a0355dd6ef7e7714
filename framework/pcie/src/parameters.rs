//! How a function, its link and its root port cut transfers up.

use std::fmt;

use crate::{Link, Overhead, PcieError};

/// A Max_Payload_Size or Max_Read_Request_Size: 128, 256, 512, 1024, 2048 or 4096 bytes (Base 7.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TlpSize(u16);

impl TlpSize {
    /// A size of `bytes`.
    pub const fn new(bytes: u32) -> Result<Self, PcieError> {
        match bytes {
            128 | 256 | 512 | 1024 | 2048 | 4096 => Ok(Self(bytes as u16)),
            _ => Err(PcieError::TlpSize(bytes)),
        }
    }

    /// Bytes.
    pub const fn bytes(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Display for TlpSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The Read Completion Boundary: where completions of one read may be cut (Base 2.3.1.1, Link Control bit 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReadBoundary {
    /// 64 bytes.
    B64,
    /// 128 bytes.
    B128,
}

impl ReadBoundary {
    /// A boundary of `bytes`: 64 or 128.
    pub const fn new(bytes: u32) -> Result<Self, PcieError> {
        match bytes {
            64 => Ok(Self::B64),
            128 => Ok(Self::B128),
            _ => Err(PcieError::ReadBoundary(bytes)),
        }
    }

    /// Bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::B64 => 64,
            Self::B128 => 128,
        }
    }
}

/// How a completer uses its freedom to cut the data of one read (Base 2.3.1.1). The two ends of what is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Completions {
    /// Fewest TLPs: as much as fits, up to the last boundary within Max_Payload_Size. Published rates of a Haswell root
    /// complex (512-byte reads at 13.45 M/s on Gen3 x8) are possible only so.
    #[default]
    Largest,
    /// Most TLPs: a cut at each Read Completion Boundary.
    EveryBoundary,
}

/// Whether an address needs 32 or 64 bits. A request below 4 GiB must use the short header (Base 2.2.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressWidth {
    /// Below 4 GiB: a header of three double words.
    Bits32,
    /// At or above 4 GiB: a header of four.
    Bits64,
}

impl AddressWidth {
    /// What `address` needs.
    pub const fn of(address: u64) -> Self {
        if address <= u32::MAX as u64 { Self::Bits32 } else { Self::Bits64 }
    }
}

/// Bytes on the wire of a TLP that are no payload: header, and framing, sequence number and LCRC where a TLP has its
/// own. Without ECRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Headers {
    request32: u32,
    request64: u32,
    completion: u32,
}

impl Headers {
    /// Generations 1 to 5: headers of 12, 16 and 12 bytes and 8 bytes around them (framing 2, sequence number 2 and
    /// LCRC 4; from generation 3 on a start token of 4 and LCRC 4). As pcie-bench counts.
    pub const FRAMED: Self = Self { request32: 20, request64: 24, completion: 20 };
    /// Flits: the bare headers.
    pub const FLIT: Self = Self { request32: 12, request64: 16, completion: 12 };
    /// As counted by Kalia et al., "Design Guidelines for High Performance RDMA Systems", ATC 2016, for generation 3:
    /// 2 bytes more a TLP, and every request with a 64-bit address.
    pub const ATC16: Self = Self { request32: 26, request64: 26, completion: 22 };

    /// Headers of other sizes, in bytes on the wire: a write's or read request's with a 32-bit and a 64-bit address, and a
    /// completion's with data. Each must hold at least the header itself (12, 16, 12) and at most 64 bytes.
    pub fn new(request32: u32, request64: u32, completion: u32) -> Result<Self, PcieError> {
        let all = [
            ("32-bit request header", request32, 12),
            ("64-bit request header", request64, 16),
            ("completion header", completion, 12),
        ];
        match all.into_iter().find(|&(_, bytes, min)| !(min..=64).contains(&bytes)) {
            Some((name, bytes, min)) => Err(PcieError::Header { name, bytes, min }),
            None => Ok(Self { request32, request64, completion }),
        }
    }

    /// A write's or a read request's.
    pub const fn request(self, width: AddressWidth) -> u32 {
        match width {
            AddressWidth::Bits32 => self.request32,
            AddressWidth::Bits64 => self.request64,
        }
    }

    /// A completion's with data.
    pub const fn completion(self) -> u32 {
        self.completion
    }
}

/// What decides how transfers are cut into TLPs. Every value is valid, so every combination is.
///
/// Real ones are in the configuration space of the function and of its root port, whose Max_Payload_Size also bounds
/// completions. Start from the usual ones:
///
/// ```
/// use ringwright_pcie::{Parameters, TlpSize};
/// let p = Parameters { max_payload: TlpSize::new(512)?, ..Parameters::default() };
/// assert_eq!(p.write(0x10_0000, 1514).requests, 3);
/// # Ok::<(), ringwright_pcie::PcieError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// MPS: the most payload of one TLP.
    pub max_payload: TlpSize,
    /// MRRS: the most that one read request may ask for.
    pub max_read: TlpSize,
    /// RCB.
    pub read_boundary: ReadBoundary,
    /// How reads are answered.
    pub completions: Completions,
    /// Bytes that are no payload.
    pub headers: Headers,
    /// An end-to-end CRC of 4 bytes on each TLP (Base 2.7.1).
    pub ecrc: bool,
    /// What is taken off the link before TLPs are compared with it.
    pub overhead: Overhead,
}

impl Default for Parameters {
    /// The usual ones of a server's slot up to generation 5, as pcie-bench assumes them: MPS 256, MRRS 512, RCB 64, no
    /// ECRC.
    fn default() -> Self {
        Self {
            max_payload: TlpSize(256),
            max_read: TlpSize(512),
            read_boundary: ReadBoundary::B64,
            completions: Completions::Largest,
            headers: Headers::FRAMED,
            ecrc: false,
            overhead: Overhead::Spec,
        }
    }
}

impl Parameters {
    /// The default ones, with the headers that `link` has: [`Headers::FLIT`] on generation 6.
    pub fn usual(link: Link) -> Self {
        let headers = if link.generation.has_flits() { Headers::FLIT } else { Headers::FRAMED };
        Self { headers, ..Self::default() }
    }
}
