//! Packets that take more than a plain descriptor: chains, VLAN tags, checksums (7.2.3.2.3, 7.2.5).

use ixgbe_defs::{Context, L4Type, TxData, TxDesc, tx_cmd, tx_popts};
use mem::{Ext, Flags, Outgoing};
use meter::DropReason;

use crate::tx::{ALWAYS, MAX_SEGMENTS, SHORTEST, Tx};

/// Bytes of an Ethernet header without a tag.
const ETHERNET: u16 = 14;
/// Bytes of the shortest IPv4 header (RFC 791).
const IPV4: u16 = 20;

/// What the device is to do with a packet, or why it cannot.
fn context(flags: Flags, e: &Ext, total: u32) -> Result<Option<Context>, DropReason> {
    if flags.has(Flags::TSO.with(Flags::USO)) {
        return Err(DropReason::UnsupportedOffload);
    }
    if !flags.has(Flags(Flags::VLAN.0 | Flags::TX_L3.0 | Flags::TX_L4.0)) {
        return Ok(None);
    }
    let mac_len = if e.l2_len == 0 { ETHERNET } else { e.l2_len.into() };
    let mut c = Context { mac_len: mac_len as u8, ..Context::default() };
    if flags.has(Flags::VLAN) {
        c.vlan = e.vlan;
    }
    // MACLEN has 7 bits, IPLEN 9 (7.2.3.2.3).
    if !(ETHERNET..=127).contains(&mac_len) {
        return Err(DropReason::UnsupportedOffload);
    }
    let mut end = u32::from(mac_len);
    if flags.has(Flags::TX_L3) {
        (c.ipv4, c.ip_len) = (true, e.l3_len.into());
        if c.ip_len < IPV4 {
            return Err(DropReason::UnsupportedOffload);
        }
        end += u32::from(c.ip_len);
    }
    if flags.has(Flags::TX_L4) {
        let ip_len = e.csum_start.checked_sub(mac_len).filter(|n| (1..=511).contains(n));
        let ip_len = ip_len.filter(|&n| !flags.has(Flags::TX_L3) || n == c.ip_len);
        c.ip_len = ip_len.ok_or(DropReason::UnsupportedOffload)?;
        // Where the checksum goes says what it is: RFC 9293 3.1, RFC 768.
        c.l4 = match e.csum_offset {
            16 => L4Type::TCP,
            6 => L4Type::UDP,
            _ => return Err(DropReason::UnsupportedOffload),
        };
        end = u32::from(e.csum_start) + u32::from(e.csum_offset) + 2;
    }
    if end > total { Err(DropReason::TooShort) } else { Ok(Some(c)) }
}

impl Tx {
    #[inline(never)]
    pub fn send_slow(&mut self, p: Outgoing) -> Result<(), Outgoing> {
        let (flags, total, segments) = (p.flags(), p.total_len(&self.local), p.segments(&self.local) as u32);
        let most = MAX_SEGMENTS.min(self.state.held.slots.len() as u32 - 2);
        let wish = match context(flags, &p.ext(&self.local), total) {
            _ if total < SHORTEST => Err(DropReason::TooShort),
            _ if total > self.state.longest || segments > most => Err(DropReason::TooLong),
            other => other,
        };
        let wish = match wish {
            Ok(wish) => wish,
            Err(reason) => {
                self.refuse(p, reason);
                return Ok(());
            }
        };
        // A context is sent only when it changes (7.2.3.2.3: the device keeps it for the queue).
        let fresh = wish.filter(|_| wish != self.state.context);
        if self.state.room() < segments + u32::from(fresh.is_some()) {
            return Err(p);
        }
        if let Some(c) = fresh {
            self.state.store(TxDesc::context(c), None, false);
            self.state.context = wish;
        }
        self.send_segments(p, first(flags, wish.is_some(), total));
        Ok(())
    }

    /// One descriptor per buffer. What the first says goes for the packet; the device wants no empty ones, so that a
    /// descriptor is written when the next buffer that is not empty shows that it is not the last.
    fn send_segments(&mut self, p: Outgoing, mut like: TxData) {
        let (state, local) = (&mut self.state, &self.local);
        let mut ready: Option<(TxData, mem::Slot)> = None;
        p.for_each_segment(local, |iova, len, slot| {
            if len == 0 {
                return local.put(slot);
            }
            let d = TxData { buffer: iova.to_bits(), len, ..like };
            // The tag, the context and the options are read from the first descriptor (7.2.3.2.4).
            like = TxData { cmd: ALWAYS, check_context: false, popts: 0, ..like };
            if let Some((before, slot)) = ready.replace((d, slot)) {
                state.store(TxDesc::data(before), Some(slot), false);
                state.inflight += 1;
            }
        });
        if let Some((d, slot)) = ready {
            let d = TxData { cmd: d.cmd | tx_cmd::EOP, ..d };
            state.store(TxDesc::data(d), Some(slot), true);
            state.inflight += 1;
        }
    }
}

/// The first descriptor, without its buffer.
fn first(flags: Flags, with_context: bool, total: u32) -> TxData {
    let bit = |flag, value| if flags.has(flag) { value } else { 0 };
    TxData {
        cmd: ALWAYS | bit(Flags::VLAN, tx_cmd::VLE),
        popts: bit(Flags::TX_L3, tx_popts::IXSM) | bit(Flags::TX_L4, tx_popts::TXSM),
        check_context: with_context,
        payload_len: total,
        ..TxData::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Flags = Flags(Flags::TX_L3.0 | Flags::TX_L4.0);

    fn changed(mut e: Ext, f: impl FnOnce(&mut Ext)) -> Ext {
        f(&mut e);
        e
    }
    fn udp() -> Ext {
        changed(Ext::default(), |e| (e.l2_len, e.l3_len, e.csum_start, e.csum_offset) = (14, 20, 34, 6))
    }

    #[test]
    fn contexts_say_where_headers_are() {
        assert_eq!(context(Flags::CHAIN, &udp(), 60), Ok(None));
        let want = Context { mac_len: 14, ip_len: 20, ipv4: true, l4: L4Type::UDP, ..Context::default() };
        assert_eq!(context(BOTH, &udp(), 60), Ok(Some(want)));
        let tag = Context { mac_len: 14, vlan: 5, ..Context::default() };
        assert_eq!(context(Flags::VLAN, &Ext::tagged(5), 60), Ok(Some(tag)));
        let v6 = changed(Ext::default(), |e| (e.csum_start, e.csum_offset) = (54, 16));
        let want = Context { mac_len: 14, ip_len: 40, l4: L4Type::TCP, ..Context::default() };
        assert_eq!(context(Flags::TX_L4, &v6, 80), Ok(Some(want)), "lengths from where the sum starts");
    }

    #[test]
    fn what_the_device_cannot_do_is_said_and_never_asked_of_it() {
        use DropReason::{TooShort, UnsupportedOffload};
        assert_eq!(context(Flags::TSO, &udp(), 60), Err(UnsupportedOffload));
        assert_eq!(context(BOTH, &changed(udp(), |e| e.csum_offset = 8), 60), Err(UnsupportedOffload));
        assert_eq!(context(BOTH, &changed(udp(), |e| e.l3_len = 24), 60), Err(UnsupportedOffload));
        assert_eq!(context(BOTH, &changed(udp(), |e| e.l2_len = 200), 60), Err(UnsupportedOffload));
        assert_eq!(context(BOTH, &changed(udp(), |e| e.csum_start = 9), 60), Err(UnsupportedOffload));
        assert_eq!(context(Flags::TX_L3, &changed(udp(), |e| e.l3_len = 0), 60), Err(UnsupportedOffload));
        assert_eq!(context(BOTH, &udp(), 41), Err(TooShort));
        assert_eq!(context(Flags::TX_L3, &udp(), 33), Err(TooShort));
    }
}
