//! The learning bridge between two ports, all stations known: what the demo's worker does to a packet between its rings.

use graph::{Graph, GraphBuilder, To};
use mem::{Batch, Local, Meta, PoolId};
use stages::{L2Switch, L2SwitchConfig};

use super::paths::{BURST, BURSTS, collect, null_ports, packet_memory};

/// Ticks a second, of which none pass here.
const HZ: u64 = 2_000_000_000;
/// Always the same table.
const SEED: u64 = 1;
/// Bytes of a frame in its buffer: the shortest.
const LEN: u16 = 60;

/// Bursts of 32, each packet of another station, sent into the graph from either side in turn and freed by a null port.
pub fn l2switch() -> u64 {
    let (local, pool) = packet_memory();
    let mut graph = bridge(&local, pool);
    let mut ports = null_ports(&local, true, &mut graph);
    let mut batch = Batch::new(&local);
    for side in 0..2 {
        burst(&mut batch, pool, side);
        graph.inject(&mut batch, 0);
    }
    for n in 0..BURSTS {
        burst(&mut batch, pool, (n % 2) as u16);
        collect(&mut || graph.inject(&mut batch, 0));
    }
    let sent: u64 = graph.tx().iter().map(|l| l.counts().packets).sum();
    assert_eq!(sent, (BURSTS + 2) * BURST as u64, "nothing is flooded twice, nothing filtered");
    ports.iter_mut().for_each(|p| p.rx_off().expect("a source can always be told to end"));
    BURSTS * BURST as u64
}

fn bridge(local: &Local, pool: PoolId) -> Graph {
    let switch =
        L2Switch::new(&L2SwitchConfig::new(&[0, 1]), pool, HZ, SEED).expect("two ports are a bridge");
    let mut builder = GraphBuilder::new(local);
    let sw = builder.add("sw", Box::new(switch));
    builder.build(To::Node(sw)).expect("its exits lead somewhere of their own accord")
}

/// A burst received on port `side`: station `i` there writes to station `i` on the other.
fn burst(batch: &mut Batch, pool: PoolId, side: u16) {
    let made = batch.fill(pool, BURST, LEN, Meta { port: side, ..Meta::default() });
    assert_eq!(made, BURST, "the last burst was freed");
    for (i, mut p) in (0u8..).zip(batch.iter_mut()) {
        let station = |side: u16| [0x02, 0, 0, 0, side as u8, i];
        if let Some((dst, rest)) = p.bytes_mut().split_first_chunk_mut::<6>() {
            *dst = station(1 - side);
            rest[..6].copy_from_slice(&station(side));
        }
    }
}
