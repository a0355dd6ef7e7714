//! One round of a worker: pull, work, push, reap.

use core::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mem::{BURST, Batch, Local};
use meter::{DropReason, Published, StageMeter};

use crate::stage::Call;
use crate::{Entry, RxLane, Stage, To, TxLane};

/// What one breath did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breath {
    /// Packets received.
    pub received: usize,
    /// Whether anything moved at all: packets, or buffers that came back.
    pub worked: bool,
}

/// The transmit side, apart from the stages so that both can be borrowed.
struct Out {
    lanes: Vec<TxLane>,
    /// One batch per lane, and one for packets marked for a port that has no lane here.
    marked: Vec<Batch>,
    now: u64,
    sample: bool,
    abort: Arc<AtomicBool>,
}

/// A worker's stages and queues.
pub struct Graph {
    local: Local,
    nodes: Vec<Entry>,
    source: To,
    rx: Vec<RxLane>,
    /// The receive queue that this breath began with.
    turn: usize,
    out: Out,
    scratch: Batch,
    /// Counts of edges that start at no stage.
    direct: StageMeter,
    direct_published: Option<Arc<Published<StageMeter>>>,
}

impl Graph {
    pub(crate) fn new(local: &Local, nodes: Vec<Entry>, source: To) -> Self {
        let out = Out {
            lanes: Vec::new(),
            marked: vec![Batch::new(local)],
            now: 0,
            sample: false,
            abort: Arc::default(),
        };
        let scratch = Batch::new(local);
        Self {
            local: local.clone(),
            nodes,
            source,
            rx: Vec::new(),
            turn: 0,
            out,
            scratch,
            direct: StageMeter::default(),
            direct_published: None,
        }
    }

    /// One breath at time `now` (ticks of the cycle counter). With `sample` each stage's call is timed.
    #[inline]
    pub fn breathe(&mut self, now: u64, sample: bool) -> Breath {
        self.out.now = now;
        self.out.sample = sample;
        let mut breath = Breath::default();
        // A lane that waits holds back receiving: the ring before it fills, and the device counts what it misses.
        let mut clear = true;
        for lane in &mut self.out.lanes {
            clear &= lane.retry(now);
        }
        // Each breath begins with another queue, so that none is always served last when there is not room for all.
        self.turn = if self.turn + 1 < self.rx.len() { self.turn + 1 } else { 0 };
        for i in (self.turn..self.rx.len()).chain(0..self.turn) {
            if !clear {
                break;
            }
            let n = self.pull(i);
            breath.received += n;
            clear = n == 0 || self.out.lanes.iter().all(|l| l.waiting() == 0);
        }
        let idle = breath.received == 0;
        let mut reaped = 0;
        for lane in &mut self.out.lanes {
            lane.queue.flush(now, idle);
            reaped += lane.queue.reap();
        }
        breath.worked = !idle || reaped > 0;
        breath
    }

    /// Receives one burst and sends it through the stages.
    #[inline]
    fn pull(&mut self, i: usize) -> usize {
        let queue = &mut self.rx[i].queue;
        if let To::Node(id) = self.source {
            let n = queue.rx_burst(&mut self.nodes[id.0].inbox);
            if n > 0 {
                self.out.drain(&mut self.nodes[id.0..], id.0);
            }
            return n;
        }
        let n = queue.rx_burst(&mut self.scratch);
        if n > 0 {
            self.out.deliver(&mut self.scratch, self.source, &mut [], 0, &mut self.direct);
        }
        n
    }

    /// Sends a batch into the graph as if it had just been received. The batch is empty afterwards.
    pub fn inject(&mut self, batch: &mut Batch, now: u64) {
        self.out.now = now;
        self.out.deliver(batch, self.source, &mut self.nodes, 0, &mut self.direct);
        self.out.drain(&mut self.nodes, 0);
    }

    /// Lets each stage see the time: about every millisecond.
    pub fn tick(&mut self, now: u64) {
        self.nodes.iter_mut().for_each(|e| e.stage.tick(now));
    }

    /// Copies all counts out to where others read them.
    pub fn publish(&self) {
        for e in &self.nodes {
            e.published.iter().for_each(|p| p.publish(&e.meter));
        }
        self.direct_published.iter().for_each(|p| p.publish(&self.direct));
        self.rx.iter().for_each(|l| l.published.publish(&l.counts()));
        self.out.lanes.iter().for_each(|l| l.published.publish(&l.counts()));
    }

    /// The stages: name, kind, counts, notes.
    pub fn stages(
        &self,
    ) -> impl Iterator<Item = (&str, &'static str, &StageMeter, Vec<(&'static str, u64)>)> {
        self.nodes.iter().map(|e| (&*e.name, e.stage.kind(), &e.meter, e.stage.notes()))
    }
    /// Stage `name`, to be changed between two breaths; `None` if there is none of that name, or it is no `S`.
    pub fn stage_mut<S: Stage + 'static>(&mut self, name: &str) -> Option<&mut S> {
        let entry = self.nodes.iter_mut().find(|e| &*e.name == name)?;
        let stage: &mut dyn Any = &mut *entry.stage;
        stage.downcast_mut()
    }
    /// Names a place for each stage's counts, and one, called `edge`, for edges that start at no stage.
    pub fn publish_stages(
        &mut self,
        mut place: impl FnMut(Arc<str>, &'static str) -> Arc<Published<StageMeter>>,
    ) {
        for e in &mut self.nodes {
            e.published = Some(place(Arc::clone(&e.name), e.stage.kind()));
        }
        if !matches!(self.source, To::Node(_)) {
            self.direct_published = Some(place("edge".into(), "edge"));
        }
    }

    /// When `abort` becomes true, packets that wait for a full queue are dropped, with reason `stopping`.
    pub fn abort_when(&mut self, abort: Arc<AtomicBool>) {
        self.out.abort = abort;
    }
    /// Adds a receive queue.
    pub fn add_rx(&mut self, lane: RxLane) {
        self.rx.push(lane);
    }
    /// Adds a transmit queue.
    ///
    /// # Panics
    /// If there are 255 already: a way out is a byte.
    pub fn add_tx(&mut self, lane: TxLane) {
        assert!(self.out.lanes.len() < usize::from(u8::MAX), "at most 255 transmit queues of a worker");
        self.out.lanes.push(lane);
        self.out.marked.push(Batch::new(&self.local));
    }
    /// Takes a receive queue out.
    pub fn remove_rx(&mut self, port: u16, id: u16) -> Option<RxLane> {
        let i = self.rx.iter().position(|l| (l.port, l.id) == (port, id))?;
        Some(self.rx.remove(i))
    }
    /// Takes a transmit queue out, with what waits for it. Later packets for its port have no route.
    pub fn remove_tx(&mut self, port: u16, id: u16) -> Option<TxLane> {
        let i = self.out.lanes.iter().position(|l| (l.port, l.id) == (port, id))?;
        self.out.marked.pop();
        Some(self.out.lanes.remove(i))
    }
    /// The receive queues.
    pub fn rx(&self) -> &[RxLane] {
        &self.rx
    }
    /// The transmit queues.
    pub fn tx(&self) -> &[TxLane] {
        &self.out.lanes
    }
    /// The transmit queues, to be changed between two breaths.
    pub fn tx_mut(&mut self) -> &mut [TxLane] {
        &mut self.out.lanes
    }

    /// Buffers posted to devices.
    pub fn posted(&self) -> usize {
        self.rx.iter().map(|l| l.queue.posted()).sum()
    }
    /// Buffers in flight.
    pub fn inflight(&self) -> usize {
        self.out.lanes.iter().map(|l| l.queue.inflight()).sum()
    }
    /// Packets in batches. Between two breaths only those that wait for a full queue.
    pub fn batched(&self) -> usize {
        let nodes = self
            .nodes
            .iter()
            .map(|e| e.inbox.len() + e.made.len() + e.outs.iter().map(Batch::len).sum::<usize>());
        nodes.sum::<usize>()
            + self.out.lanes.iter().map(TxLane::waiting).sum::<usize>()
            + self.out.marked.iter().map(Batch::len).sum::<usize>()
            + self.scratch.len()
    }
}

impl Out {
    /// Runs the stages of `nodes` whose inboxes hold something. `first` is the number of the first of them.
    #[inline]
    fn drain(&mut self, nodes: &mut [Entry], first: usize) {
        for i in 0..nodes.len() {
            if nodes[i].inbox.is_empty() {
                continue;
            }
            let (head, tail) = nodes.split_at_mut(i + 1);
            self.run(&mut head[i], tail, first + i + 1);
        }
    }

    /// Runs one stage and sends its packets on. `tail` are the stages behind it, from number `next` on.
    #[inline]
    fn run(&mut self, e: &mut Entry, tail: &mut [Entry], next: usize) {
        let n = e.inbox.len();
        e.meter.calls += 1;
        e.meter.packets += n as u64;
        let (mut to, mut mixed) = ([0; BURST], false);
        let call =
            Call { to: &mut to, mixed: &mut mixed, made: &mut e.made, meter: &mut e.meter, now: self.now };
        if self.sample {
            let start = hw::cycles();
            e.stage.run(&mut e.inbox, call);
            e.meter.timed_cycles += hw::cycles().wrapping_sub(start);
            e.meter.timed_calls += 1;
            e.meter.timed_packets += n as u64;
        } else {
            e.stage.run(&mut e.inbox, call);
        }
        // A stage may only have taken packets out, to consume or park them.
        let n = e.inbox.len();
        if !mixed || to[..n].iter().all(|&x| x == to[0]) {
            if n > 0 {
                self.deliver(&mut e.inbox, e.edges[usize::from(to[0])], tail, next, &mut e.meter);
            }
        } else {
            e.inbox.scatter(&to, &mut e.outs);
            for (out, &edge) in e.outs.iter_mut().zip(&e.edges) {
                if !out.is_empty() {
                    self.deliver(out, edge, tail, next, &mut e.meter);
                }
            }
        }
        for (exit, batch) in e.made.take() {
            self.deliver(batch, e.edges[usize::from(*exit)], tail, next, &mut e.meter);
        }
    }

    /// Sends a batch along an edge. It is empty afterwards.
    #[inline]
    fn deliver(
        &mut self,
        batch: &mut Batch,
        to: To,
        tail: &mut [Entry],
        next: usize,
        meter: &mut StageMeter,
    ) {
        match to {
            To::Tx(port) => self.transmit(batch, port, meter),
            To::Marked => self.transmit_marked(batch, meter),
            To::Drop(reason) => {
                batch.drop_all(reason, &mut meter.drops);
            }
            To::Node(id) => loop {
                let tail = &mut tail[id.0 - next..];
                batch.append_to(&mut tail[0].inbox);
                if batch.is_empty() {
                    break;
                }
                // An inbox never overflows: the stages behind run first.
                self.drain(tail, id.0);
            },
        }
    }

    #[inline]
    fn transmit(&mut self, batch: &mut Batch, port: u16, meter: &mut StageMeter) {
        match self.lanes.iter_mut().find(|l| l.port == port) {
            Some(lane) => lane.send(batch, self.now, &self.abort),
            None => {
                batch.drop_all(DropReason::NoRoute, &mut meter.drops);
            }
        }
    }

    #[inline]
    fn transmit_marked(&mut self, batch: &mut Batch, meter: &mut StageMeter) {
        if let Some(port) = batch.one_port() {
            return self.transmit(batch, port, meter);
        }
        let nowhere = self.lanes.len();
        let mut to = [0; BURST];
        for (to, p) in to.iter_mut().zip(batch.iter_mut()) {
            *to = self.lanes.iter().position(|l| l.port == p.port()).unwrap_or(nowhere) as u8;
        }
        batch.scatter(&to, &mut self.marked);
        for (lane, out) in self.lanes.iter_mut().zip(&mut self.marked) {
            if !out.is_empty() {
                lane.send(out, self.now, &self.abort);
            }
        }
        self.marked[nowhere].drop_all(DropReason::NoRoute, &mut meter.drops);
    }
}
