//! What a stage is.

use core::any::Any;
use core::marker::PhantomData;

use mem::{BURST, Batch, PacketBuf, PoolId};
use meter::{DropReason, StageMeter};

/// Where an exit leads unless the graph's wiring says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// Nowhere yet: it must be joined.
    Open,
    /// To the port that each packet is marked for.
    Marked,
    /// Dropped, for this reason.
    Drop(DropReason),
}

/// One way out of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitInfo {
    /// As in configuration: `out`, `filtered`.
    pub name: &'static str,
    /// Where it leads by itself.
    pub leads: Leads,
}

/// The ways out of a stage, as a small enum whose numbers are the places in `EXITS`.
pub trait Exit: Copy + Into<u8> {
    /// Names and ends, in order.
    const EXITS: &'static [ExitInfo];
}

/// A step of packet work. Sees a whole batch; decides an exit for each packet.
pub trait Stage {
    /// Its exits.
    type Exit: Exit;
    /// As in configuration: `l2switch`.
    const KIND: &'static str;
    /// Looks at, and may change, every packet of `batch`, and sets its exit. It must set one for each.
    fn process(&mut self, batch: &mut Batch, exits: &mut Exits<'_, Self::Exit>);
    /// Called about every millisecond between two breaths: ageing and the like. `now` in ticks of the cycle counter.
    fn tick(&mut self, _now: u64) {}
    /// Counts of its own, for status: what happened that is not a drop.
    fn notes(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// The decisions about one batch: an exit per packet, copies made, packets consumed.
pub struct Exits<'g, E> {
    to: &'g mut [u8; BURST],
    mixed: &'g mut bool,
    made: &'g mut Made,
    meter: &'g mut StageMeter,
    now: u64,
    _e: PhantomData<E>,
}

impl<E: Exit> Exits<'_, E> {
    /// Packet `i` leaves by `exit`.
    #[inline(always)]
    pub fn set(&mut self, i: usize, exit: E) {
        self.to[i % BURST] = exit.into();
        *self.mixed = true;
    }
    /// All packets leave by `exit`.
    #[inline(always)]
    pub fn set_all(&mut self, exit: E) {
        *self.to = [exit.into(); BURST];
        *self.mixed = false;
    }
    /// The time stamp of this breath, in ticks of the cycle counter.
    #[inline]
    pub const fn now(&self) -> u64 {
        self.now
    }
    /// A copy of packet `i`, marked for `port`, leaves by `exit`. It counts as created; without a buffer from `pool`
    /// it counts as created and dropped at once (`no_buffer`).
    pub fn copy(&mut self, batch: &Batch, i: usize, pool: PoolId, port: u16, exit: E) {
        self.meter.created += 1;
        match batch.copy(i, pool) {
            Some(mut copy) => {
                copy.pkt().set_port(port);
                self.made.push(exit.into(), copy, batch);
            }
            None => self.meter.drops.add(DropReason::NoBuffer, 1),
        }
    }
    /// A packet that the stage made itself leaves by `exit`. It counts as created.
    pub fn create(&mut self, packet: PacketBuf, batch: &Batch, exit: E) {
        self.meter.created += 1;
        self.made.push(exit.into(), packet, batch);
    }
    /// The stage ended `packet` on purpose: reassembled into another, or answered.
    pub fn consume(&mut self, packet: PacketBuf) {
        self.meter.consumed += 1;
        packet.consume();
    }
}

/// Packets that a stage made during one call, by exit. Its batches are kept for the next call.
#[derive(Default)]
pub struct Made {
    batches: Vec<(u8, Batch)>,
    used: usize,
}

impl Made {
    fn push(&mut self, exit: u8, packet: PacketBuf, like: &Batch) {
        let mut packet = Some(packet);
        for (_, batch) in self.batches[..self.used].iter_mut().filter(|b| b.0 == exit) {
            packet = packet.and_then(|p| batch.push_buf(p).err());
        }
        let Some(packet) = packet else { return };
        if self.used == self.batches.len() {
            self.batches.push((exit, Batch::new(like.local())));
        }
        let slot = &mut self.batches[self.used];
        slot.0 = exit;
        self.used += 1;
        // An unused batch is empty.
        let _ = slot.1.push_buf(packet);
    }
    /// The batches of this call, to be sent on and left empty.
    pub(crate) fn take(&mut self) -> &mut [(u8, Batch)] {
        let n = core::mem::replace(&mut self.used, 0);
        &mut self.batches[..n]
    }
    pub(crate) fn len(&self) -> usize {
        self.batches.iter().map(|b| b.1.len()).sum()
    }
}

/// A stage behind a pointer: one indirect call per batch. Every [`Stage`] is one.
pub trait AnyStage: Any {
    /// Runs it on a batch.
    fn run(&mut self, batch: &mut Batch, call: Call<'_>);
    /// Its exits.
    fn exits(&self) -> &'static [ExitInfo];
    /// Its kind.
    fn kind(&self) -> &'static str;
    /// See [`Stage::tick`].
    fn tick(&mut self, now: u64);
    /// See [`Stage::notes`].
    fn notes(&self) -> Vec<(&'static str, u64)>;
}

/// What a call of a stage may write to.
pub struct Call<'g> {
    pub(crate) to: &'g mut [u8; BURST],
    /// Whether the exits of packets may differ.
    pub(crate) mixed: &'g mut bool,
    pub(crate) made: &'g mut Made,
    pub(crate) meter: &'g mut StageMeter,
    pub(crate) now: u64,
}

impl<S: Stage + 'static> AnyStage for S {
    #[inline]
    fn run(&mut self, batch: &mut Batch, call: Call<'_>) {
        let Call { to, mixed, made, meter, now } = call;
        self.process(batch, &mut Exits { to, mixed, made, meter, now, _e: PhantomData });
    }
    fn exits(&self) -> &'static [ExitInfo] {
        S::Exit::EXITS
    }
    fn kind(&self) -> &'static str {
        S::KIND
    }
    fn tick(&mut self, now: u64) {
        Stage::tick(self, now);
    }
    fn notes(&self) -> Vec<(&'static str, u64)> {
        Stage::notes(self)
    }
}
