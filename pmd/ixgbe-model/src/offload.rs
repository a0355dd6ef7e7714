//! What the device changes in a frame on its way out: checksums and the VLAN tag (82599 7.2.5, 7.4.3).

use ixgbe_defs::{Context, L4Type, MAX_FRAME_BYTES, TxData, tx_cmd, tx_popts};

use crate::mac::CRC;
use crate::parse::{fold, sum};

/// The shortest frame without its CRC.
pub(crate) const SHORTEST: usize = 60;

/// A packet of one buffer that is in order and leaves as it is: none of what the queue's `gather`,
/// `check` and `packet` look for applies to it.
#[inline]
pub(crate) fn is_plain(d: &TxData) -> bool {
    const MUST: u8 = tx_cmd::EOP | tx_cmd::IFCS;
    d.cmd & (MUST | tx_cmd::TSE | tx_cmd::VLE) == MUST
        && d.popts & (tx_popts::IXSM | tx_popts::TXSM) == 0
        && d.payload_len == u32::from(d.len)
        && (SHORTEST..=MAX_FRAME_BYTES - CRC).contains(&d.len.into())
}

/// Why an offload cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfFrame;

/// Inserts the checksums that `popts` asks for.
pub(crate) fn checksums(frame: &mut [u8], popts: u8, c: &Context) -> Result<(), OutOfFrame> {
    let ip = usize::from(c.mac_len);
    let l4 = ip + usize::from(c.ip_len);
    if popts & tx_popts::IXSM != 0 && c.ipv4 {
        // Software has cleared the field (7.2.5.1): what is in it is summed.
        let header = frame.get_mut(ip..l4).filter(|h| h.len() >= 20).ok_or(OutOfFrame)?;
        let value = !fold(sum(header));
        header[10..12].copy_from_slice(&value.to_be_bytes());
    }
    if popts & tx_popts::TXSM != 0 {
        let (at, zero_is_special) = match c.l4 {
            L4Type::TCP => (16, false),
            L4Type::UDP => (6, true),
            _ => return Err(OutOfFrame),
        };
        // Software has put the sum of the pseudo header into the field (7.2.5.2): it is summed with the rest.
        let payload = frame.get_mut(l4..).filter(|p| p.len() >= at + 2).ok_or(OutOfFrame)?;
        let value = match !fold(sum(payload)) {
            0 if zero_is_special => 0xFFFF,
            v => v,
        };
        payload[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
    Ok(())
}

/// Inserts a tag after the addresses. `frame` has at least 14 bytes.
pub(crate) fn insert_tag(frame: &mut Vec<u8>, vlan_type: u16, tag: u16) {
    let len = frame.len();
    frame.resize(len + 4, 0);
    frame.copy_within(12..len, 16);
    frame[12..14].copy_from_slice(&vlan_type.to_be_bytes());
    frame[14..16].copy_from_slice(&tag.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    fn context(l4: L4Type) -> Context {
        Context { mac_len: 14, ip_len: 20, ipv4: true, l4, ..Context::default() }
    }

    #[test]
    fn what_is_inserted_is_what_the_receive_side_accepts() {
        let both = tx_popts::IXSM | tx_popts::TXSM;
        for len in [0, 1, 64, 1001] {
            let mut f = Vec::new();
            let b =
                etherparse::PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
            b.udp(7, 9).write(&mut f, &vec![0x5A; len]).expect("a frame");
            let right = f.clone();
            f[24..26].fill(0);
            let seed = fold(sum(&f[26..34]) + u64::from(17u16.to_be()) + u64::from((len as u16 + 8).to_be()));
            f[40..42].copy_from_slice(&seed.to_be_bytes());
            assert_ne!(parse(&f, 14).errors, 0);
            checksums(&mut f, both, &context(L4Type::UDP)).expect("fits");
            assert_eq!(f, right);
        }
    }

    #[test]
    fn headers_beyond_the_frame_are_refused() {
        let mut f = vec![0; 60];
        let far = Context { mac_len: 127, ip_len: 511, ..context(L4Type::TCP) };
        assert_eq!(checksums(&mut f, tx_popts::IXSM, &far), Err(OutOfFrame));
        assert_eq!(checksums(&mut f, tx_popts::TXSM, &far), Err(OutOfFrame));
        assert_eq!(checksums(&mut f, tx_popts::TXSM, &context(L4Type::SCTP)), Err(OutOfFrame));
        assert_eq!(f, vec![0; 60]);
    }

    #[test]
    fn a_tag_goes_between_the_addresses_and_the_type() {
        let mut f: Vec<u8> = (0..20).collect();
        insert_tag(&mut f, 0x8100, 0x2ABC);
        assert_eq!(f[..12], (0..12).collect::<Vec<u8>>());
        assert_eq!(f[12..16], [0x81, 0x00, 0x2A, 0xBC]);
        assert_eq!(f[16..], (12..20).collect::<Vec<u8>>());
    }
}
