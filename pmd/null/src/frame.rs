//! The bytes of a generated frame.

/// Ethernet, IPv4 without options, UDP.
const HEADERS: usize = 14 + 20 + 8;
const IP: usize = 14;
const UDP: usize = IP + 20;

/// A frame of flow 0, from which those of other flows differ in a few places.
pub struct Template {
    bytes: Vec<u8>,
    /// One's complement sum of the IPv4 header without source address and checksum.
    sum: u32,
}

impl Template {
    /// Frames of `len` bytes, at least 60.
    pub fn new(len: u16) -> Self {
        let mut b = vec![0; usize::from(len)];
        b[..6].copy_from_slice(&[0x02, 0, 0, 0, 0, 2]);
        b[6..12].copy_from_slice(&[0x02, 0, 0, 0, 0, 1]);
        b[12..14].copy_from_slice(&[0x08, 0x00]);
        let ip_len = len - IP as u16;
        b[IP..IP + 2].copy_from_slice(&[0x45, 0]);
        b[IP + 2..IP + 4].copy_from_slice(&ip_len.to_be_bytes());
        b[IP + 6] = 0x40; // do not fragment
        b[IP + 8..IP + 10].copy_from_slice(&[64, 17]);
        b[IP + 16..IP + 20].copy_from_slice(&[198, 18, 0, 1]);
        b[UDP + 2..UDP + 4].copy_from_slice(&9u16.to_be_bytes());
        b[UDP + 4..UDP + 6].copy_from_slice(&(ip_len - 20).to_be_bytes());
        let words = b[IP..UDP].as_chunks::<2>().0;
        let sum = words.iter().map(|w| u32::from(u16::from_be_bytes(*w))).sum();
        Self { bytes: b, sum }
    }

    /// Writes frame `number` of `flow` into `to`, which has the template's length.
    #[inline]
    pub fn write(&self, to: &mut [u8], flow: u32, number: u64) {
        let Some((head, payload)) = to.split_first_chunk_mut::<HEADERS>() else { return };
        let Some((h, p)) = self.bytes.split_first_chunk::<HEADERS>() else { return };
        *head = *h;
        payload.copy_from_slice(p);
        let source = 0x0a00_0000 + flow;
        head[IP + 12..IP + 16].copy_from_slice(&source.to_be_bytes());
        head[IP + 10..IP + 12].copy_from_slice(&self.checksum(source).to_be_bytes());
        head[UDP..UDP + 2].copy_from_slice(&(1024 + (flow % 32_768) as u16).to_be_bytes());
        if let Some(p) = payload.first_chunk_mut::<12>() {
            p[..4].copy_from_slice(&flow.to_be_bytes());
            p[4..].copy_from_slice(&number.to_be_bytes());
        }
    }

    /// The IPv4 header checksum (RFC 791, 3.1).
    const fn checksum(&self, source: u32) -> u16 {
        let mut sum = self.sum + (source >> 16) + (source & 0xffff);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        !(sum as u16)
    }
}
