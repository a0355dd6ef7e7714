//! The stages in the box, each between a batch and a null port; and what looks into one frame at a time.

use std::hint::black_box;

use graph::{GraphBuilder, To};
use mem::{Batch, Meta, PoolId};
use stages::{
    Choice, Filter, L2Switch, L2SwitchConfig, Peer, Sample, SampleConfig, Side, Vlan, VlanConfig, VlanPorts,
};
use wire::flow;

use super::paths::{BURST, BURSTS, collect, null_ports, packet_memory};

/// Ticks a second, of which none pass here.
const HZ: u64 = 2_000_000_000;
/// Always the same table, and the same samples.
const SEED: u64 = 1;
/// Bytes of a frame in its buffer: the shortest.
const LEN: usize = 60;

/// A TCP segment over IPv4: 192.0.2.1:49152 to 192.0.2.2:443, from station `i` on a side to the same on the other.
fn segment(side: u8, i: u8) -> [u8; LEN] {
    let mut f = [0; LEN];
    f[..12].copy_from_slice(&[0x02, 0, 0, 0, 1 - side, i, 0x02, 0, 0, 0, side, i]);
    // Type, IPv4 without options, 46 bytes, TTL 64, TCP.
    f[12..24].copy_from_slice(&[0x08, 0x00, 0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 6]);
    f[26..38].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2, 0xc0, 0x00, 0x01, 0xbb]);
    // Offset and ACK.
    f[46..48].copy_from_slice(&[0x50, 0x10]);
    f
}

/// The flow of each frame.
pub fn flow_hash() -> u64 {
    let frames: Vec<_> = (0..BURST as u8).map(|i| segment(0, i)).collect();
    let mut sum = 0;
    collect(&mut || {
        for _ in 0..BURSTS {
            for frame in black_box(&frames) {
                sum ^= flow::hash(frame);
            }
        }
    });
    black_box(sum);
    BURSTS * BURST as u64
}

/// A filter asked of each frame.
fn filter(expression: &str, passes: bool) -> u64 {
    let filter = Filter::new(expression).expect("an expression");
    let frames: Vec<_> = (0..BURST as u8).map(|i| segment(0, i)).collect();
    let mut passed = 0;
    collect(&mut || {
        for _ in 0..BURSTS {
            for frame in black_box(&frames) {
                passed += u64::from(filter.matches(frame));
            }
        }
    });
    assert_eq!(passed, if passes { BURSTS * BURST as u64 } else { 0 });
    BURSTS * BURST as u64
}
/// One comparison of the link header.
pub fn filter_type() -> u64 {
    filter("eth.type == arp", false)
}
/// Several, of all layers.
pub fn filter_flow() -> u64 {
    filter("ipv4.dst in {192.0.2.0/24, 198.51.100.0/24} and tcp.port in {80, 443} and not tcp.syn", true)
}

/// Bursts from either side in turn through `build`'s stages, which end in the marked port.
fn through(build: impl FnOnce(&mut GraphBuilder, PoolId) -> To) -> u64 {
    let (local, pool) = packet_memory();
    let mut builder = GraphBuilder::new(&local);
    let source = build(&mut builder, pool);
    let mut graph = builder.build(source).expect("all exits are joined");
    let mut ports = null_ports(&local, true, &mut graph);
    let mut batch = Batch::new(&local);
    for side in 0..2 {
        burst(&mut batch, pool, side);
        graph.inject(&mut batch, 0);
    }
    let before: u64 = graph.tx().iter().map(|l| l.counts().packets).sum();
    for n in 0..BURSTS {
        burst(&mut batch, pool, (n % 2) as u8);
        collect(&mut || graph.inject(&mut batch, 0));
    }
    let sent: u64 = graph.tx().iter().map(|l| l.counts().packets).sum();
    assert!(sent - before >= BURSTS * BURST as u64, "all leave");
    ports.iter_mut().for_each(|p| p.rx_off().expect("a source can always be told to end"));
    BURSTS * BURST as u64
}
fn burst(batch: &mut Batch, pool: PoolId, side: u8) {
    let made = batch.fill(pool, BURST, LEN as u16, Meta { port: side.into(), ..Meta::default() });
    assert_eq!(made, BURST, "the last burst was freed");
    for (i, mut p) in (0..).zip(batch.iter_mut()) {
        p.bytes_mut().copy_from_slice(&segment(side, i));
    }
}

/// One of two workers of a bridge, the other of which is silent.
pub fn l2switch_shared() -> u64 {
    let mut family = Peer::family(2);
    let mine = family.pop().expect("two");
    through(|b, pool| {
        let config = L2SwitchConfig::new(&[0, 1]);
        let switch = L2Switch::shared(&config, pool, HZ, SEED, mine).expect("two ports are a bridge");
        To::Node(b.add("sw", Box::new(switch)))
    })
}

/// Two access ports of one VLAN: a tag put in, the bridge, the tag taken out.
pub fn vlan_access() -> u64 {
    through(|b, pool| {
        let vlans = VlanPorts::new(&[(0, 10), (1, 10)], &[], &[]).expect("VLANs");
        let config = L2SwitchConfig { vlans: Some(vlans.clone()), ..L2SwitchConfig::new(&[0, 1]) };
        let half = |side| Box::new(Vlan::new(VlanConfig { ports: vlans.clone(), side }));
        let enter = b.add("in", half(Side::In));
        let switch = L2Switch::new(&config, pool, HZ, SEED).expect("two ports are a bridge");
        let sw = b.add("sw", Box::new(switch));
        let leave = b.add("out", half(Side::Out));
        b.join(enter, "out", To::Node(sw)).expect("forward");
        b.join(sw, "out", To::Node(leave)).expect("forward");
        b.join(leave, "out", To::Marked).expect("forward");
        To::Node(enter)
    })
}

/// All pass, and one in a thousand is copied and sent as well.
pub fn sample() -> u64 {
    through(|b, pool| {
        let config = SampleConfig { choice: Choice::OneIn(1000), length: Some(128), seed: Some(SEED) };
        let s = b.add("s", Box::new(Sample::new(&config, pool, SEED).expect("one in some")));
        b.join(s, "out", To::Marked).expect("forward");
        b.join(s, "sample", To::Marked).expect("forward");
        To::Node(s)
    })
}

/// A filter as a stage.
pub fn filter_stage() -> u64 {
    through(|b, _| {
        let f = b.add("f", Box::new(Filter::new("tcp.port == 443 or arp").expect("an expression")));
        b.join(f, "pass", To::Marked).expect("forward");
        To::Node(f)
    })
}
