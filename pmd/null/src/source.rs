//! Source and sink.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mem::{Batch, Local, Meta, PoolId};
use meter::QueueMeter;
use port::{
    DeviceCounts, Input, Link, OpenEnv, OpenPort, PortConfig, PortError, PortInfo, Queues, RxQueue, RxSetup,
    TxQueue, TxSetup, WorkerEnv,
};

use crate::frame::Template;
use crate::keys::{Frames, SourceKeys};
use crate::{Counts, Gate, MAX_QUEUES, NAME, add};

/// The control side.
pub struct SourcePort {
    keys: SourceKeys,
    info: PortInfo,
    receiving: Gate,
    counts: Vec<Arc<Counts>>,
}

impl SourcePort {
    pub fn new(keys: SourceKeys, env: &OpenEnv) -> Self {
        let info = PortInfo {
            driver: NAME,
            node: None,
            mac: None,
            max_queues: MAX_QUEUES,
            max_frame: env.memory.layout().room(),
            max_segments: mem::MAX_SEGMENTS as u16,
        };
        Self { keys, info, receiving: Arc::new(AtomicBool::new(false)), counts: Vec::new() }
    }
}

impl OpenPort for SourcePort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn start(&mut self, cfg: &PortConfig) -> Result<Queues, PortError> {
        cfg.check(&self.info)?;
        if self.keys.len > cfg.max_frame {
            let problem =
                format!("{} is more than the port's longest frame, {}", self.keys.len + 4, cfg.max_frame);
            return Err(PortError::Config { driver: NAME, key: "size".into(), problem });
        }
        self.receiving.store(true, Ordering::Relaxed);
        self.counts = (0..cfg.queues).map(|_| Arc::default()).collect();
        let mut queues = Queues::default();
        for (i, counts) in self.counts.iter().enumerate() {
            let n = u64::from(cfg.queues);
            let left = self.keys.count.map_or(u64::MAX, |c| c / n + u64::from((i as u64) < c % n));
            queues.rx.push(Box::new(Source {
                port: cfg.port,
                len: self.keys.len,
                burst: self.keys.burst,
                left,
                writer: (self.keys.frames == Frames::Udp).then(|| Writer {
                    template: Template::new(self.keys.len),
                    flows: self.keys.flows,
                    flow: 0,
                    number: 0,
                }),
                receiving: Arc::clone(&self.receiving),
                counts: Arc::clone(counts),
            }));
            queues.tx.push(Box::new(Sink { counts: Arc::clone(counts) }));
        }
        Ok(queues)
    }

    fn link(&mut self) -> Link {
        Link { up: !self.counts.is_empty(), speed_bps: None }
    }

    fn device_counts(&mut self) -> DeviceCounts {
        DeviceCounts {
            rx_good: None,
            rx_delivered: Counts::sum(&self.counts, |c| &c.rx),
            tx_sent: Counts::sum(&self.counts, |c| &c.tx),
            rx_missed: Some(0),
            rx_errors: Some(0),
        }
    }

    fn input(&mut self) -> Input {
        match (self.keys.count, self.device_counts().rx_delivered) {
            (Some(count), Some(n)) if n >= count => Input::Exhausted,
            (Some(_), _) => Input::More,
            (None, _) => Input::Endless,
        }
    }

    fn set_promiscuous(&mut self, _on: bool) -> Result<(), PortError> {
        Ok(())
    }

    fn rx_off(&mut self) -> Result<(), PortError> {
        self.receiving.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn stop(&mut self, queues: Queues, local: &Local) -> Result<(), PortError> {
        self.rx_off()?;
        queues.rx.into_iter().for_each(|q| q.reclaim(local));
        queues.tx.into_iter().for_each(|q| q.reclaim(local));
        Ok(())
    }
}

/// Writes frames of flows that take turns.
struct Writer {
    template: Template,
    flows: u32,
    flow: u32,
    number: u64,
}

impl Writer {
    fn write(&mut self, out: &mut Batch, from: usize) {
        for mut p in out.iter_mut().skip(from) {
            self.template.write(p.bytes_mut(), self.flow, self.number);
            self.flow += 1;
            if self.flow == self.flows {
                self.flow = 0;
                self.number += 1;
            }
        }
    }
}

/// The receive side: detached, it is its own setup.
struct Source {
    port: u16,
    len: u16,
    burst: usize,
    left: u64,
    writer: Option<Writer>,
    receiving: Gate,
    counts: Arc<Counts>,
}

impl RxSetup for Source {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn RxQueue>, (PortError, Box<dyn RxSetup>)> {
        match env.pool() {
            Ok(pool) => Ok(env.boxed_rx(SourceRx { source: *self, pool })),
            Err(e) => Err((e, self)),
        }
    }
    fn reclaim(self: Box<Self>, _: &Local) {}
}

struct SourceRx {
    source: Source,
    pool: PoolId,
}

impl RxQueue for SourceRx {
    #[inline]
    fn rx_burst(&mut self, out: &mut Batch) -> usize {
        let s = &mut self.source;
        if !s.receiving.load(Ordering::Relaxed) {
            return 0;
        }
        let from = out.len();
        let want = s.left.min(s.burst as u64) as usize;
        let n = out.fill(self.pool, want, s.len, Meta { port: s.port, ..Meta::default() });
        s.left -= n as u64;
        if let Some(w) = &mut s.writer {
            w.write(out, from);
        }
        add(&s.counts.rx, n);
        n
    }
    fn posted(&self) -> usize {
        0
    }
    fn counts(&self, _: &mut QueueMeter) {}
    fn detach(self: Box<Self>) -> Box<dyn RxSetup> {
        Box::new(self.source)
    }
}

/// The transmit side, which has no state but its count.
struct Sink {
    counts: Arc<Counts>,
}

impl TxSetup for Sink {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn TxQueue>, (PortError, Box<dyn TxSetup>)> {
        Ok(env.boxed_tx(*self))
    }
    fn reclaim(self: Box<Self>, _: &Local) {}
}

impl TxQueue for Sink {
    #[inline]
    fn tx_burst(&mut self, from: &mut Batch, _now: u64) -> usize {
        let n = from.free_sent();
        add(&self.counts.tx, n);
        n
    }
    fn flush(&mut self, _now: u64, _idle: bool) {}
    fn reap(&mut self) -> usize {
        0
    }
    fn inflight(&self) -> usize {
        0
    }
    fn counts(&self, _: &mut QueueMeter) {}
    fn detach(self: Box<Self>) -> Box<dyn TxSetup> {
        self
    }
}
