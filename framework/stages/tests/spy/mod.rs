//! A stage that keeps what it saw, all buffers of it, and what was known of it; and packets with such knowledge.
#![allow(dead_code, reason = "each test file uses its part")]

use graph::{Exit, ExitInfo, Exits, Leads, Stage};
use mem::{Batch, Chain, Ext, Flags, Local, Meta, PoolId, Slot};
use meter::DropReason;

/// A packet as it came by.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub bytes: Vec<u8>,
    /// Bytes of the first buffer.
    pub first: usize,
    pub port: u16,
    pub flags: Flags,
    pub ext: Ext,
}

/// Keeps what it sees, and drops it.
#[derive(Default)]
pub struct Spy(pub Vec<Seen>);

#[derive(Clone, Copy)]
pub struct Out;
impl From<Out> for u8 {
    fn from(_: Out) -> Self {
        0
    }
}
impl Exit for Out {
    const EXITS: &'static [ExitInfo] = &[ExitInfo { name: "out", leads: Leads::Drop(DropReason::Policed) }];
}
impl Stage for Spy {
    type Exit = Out;
    const KIND: &'static str = "spy";
    fn process(&mut self, batch: &mut Batch, exits: &mut Exits<'_, Out>) {
        exits.set_all(Out);
        for p in batch.iter_mut() {
            let bytes = p.segments().flatten().copied().collect();
            assert_eq!(p.segments().map(<[u8]>::len).sum::<usize>(), p.total_len());
            self.0.push(Seen { bytes, first: p.len(), port: p.port(), flags: p.flags(), ext: p.ext() });
        }
    }
}

/// A buffer with `bytes` in it.
pub fn buffer(local: &Local, pool: PoolId, bytes: &[u8]) -> Slot {
    let mut batch = Batch::new(local);
    assert_eq!(batch.fill(pool, 1, bytes.len() as u16, Meta::default()), 1);
    batch.pkt(0).unwrap().bytes_mut().copy_from_slice(bytes);
    let mut slot = None;
    batch.drain_while(|p| {
        slot = Some(p.into_slot());
        Ok(())
    });
    slot.unwrap()
}

/// Adds a frame in buffers of `pieces`, with what is known of it.
pub fn push(batch: &mut Batch, pool: PoolId, pieces: &[&[u8]], meta: Meta, ext: Ext) {
    let local = batch.local().clone();
    let mut chain = Chain::new(&local, buffer(&local, pool, pieces[0]), pieces[0].len() as u16).unwrap();
    for piece in &pieces[1..] {
        chain.push(buffer(&local, pool, piece), piece.len() as u16).unwrap();
    }
    chain.finish(batch, meta).map_err(Chain::free).unwrap();
    batch.pkt(batch.len() - 1).unwrap().set_ext(ext);
}
