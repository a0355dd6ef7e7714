//! The control side.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use mem::Local;
use port::{DeviceCounts, Input, Link, OpenEnv, OpenPort, PortConfig, PortError, PortInfo, Queues};

use crate::check::Checker;
use crate::counts::Counts;
use crate::frame::head_len;
use crate::pace::Pacer;
use crate::profile::{MOST_FLOWS, Pace, Profile};
use crate::run::{Gate, Run};
use crate::sink::Sink;
use crate::sizes::FCS;
use crate::source::{Cursor, Order, Source};
use crate::{MAX_QUEUES, NAME};

struct Shared {
    gate: Arc<Gate>,
    /// The latest run. Only the control side locks it.
    run: Mutex<Option<Arc<Run>>>,
}

impl Shared {
    fn counts(&self) -> Counts {
        let run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        run.as_ref().map(|r| r.counts()).unwrap_or_default()
    }
}

/// What whoever opened a port keeps, to hold and let go, and to read what was counted.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

impl Handle {
    /// No more frames are made until [`Handle::go`]; checking goes on.
    pub fn hold(&self) {
        self.0.gate.set_making(false);
    }
    /// Frames are made, as soon as the port has started.
    pub fn go(&self) {
        self.0.gate.set_making(true);
    }
    /// What was counted since the port last started.
    pub fn counts(&self) -> Counts {
        self.0.counts()
    }
}

/// A port that makes traffic and checks it.
pub struct GenPort {
    profile: Profile,
    info: PortInfo,
    shared: Arc<Shared>,
}

fn wrong(key: &str, problem: String) -> PortError {
    PortError::Config { driver: NAME, key: key.to_owned(), problem }
}

impl GenPort {
    /// A port that makes what `profile` says.
    ///
    /// # Errors
    /// [`PortError::Config`] if it cannot be: a frame too short for its headers or longer than a buffer, a number out of range.
    pub fn new(profile: Profile, env: &OpenEnv) -> Result<Self, PortError> {
        let room = env.memory.layout().room();
        let (least, most) = (head_len(&profile.addresses) + FCS, usize::from(room) + FCS);
        if profile.sizes.shortest() < least {
            let problem = format!("{} is too short: headers and tag take {least}", profile.sizes.shortest());
            return Err(wrong("size", problem));
        }
        if profile.sizes.longest() > most {
            let problem = format!("{} is more than a buffer takes, {most}", profile.sizes.longest());
            return Err(wrong("size", problem));
        }
        if !(1..=MOST_FLOWS).contains(&profile.flows) {
            return Err(wrong("flows", format!("{} is not from 1 to {MOST_FLOWS}", profile.flows)));
        }
        let info = PortInfo {
            driver: NAME,
            node: None,
            mac: Some(profile.src_mac.bytes()),
            max_queues: MAX_QUEUES,
            max_frame: room,
            max_segments: mem::MAX_SEGMENTS as u16,
        };
        let gate = Arc::new(Gate::new());
        Ok(Self { profile, info, shared: Arc::new(Shared { gate, run: Mutex::new(None) }) })
    }

    /// To hold the port and to read its counts while somebody else has it.
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.shared))
    }

    /// The receive queue `i` of `n`, with its share of flows, frames and rate.
    fn source(&self, i: u16, n: u16, run: &Arc<Run>, port: u16) -> Source {
        let p = &self.profile;
        let flow = |i: u16| (u64::from(p.flows) * u64::from(i) / u64::from(n)) as u32;
        let (nth, queues) = (u64::from(i), u64::from(n));
        let pacer = match p.pace {
            Pace::Max => None,
            Pace::At(rate) => Some(Pacer::new(rate, 1.0 / f64::from(n), &p.sizes, hw::tsc_hz(), p.catch_up)),
        };
        Source {
            port,
            burst: p.burst.clamp(1, mem::BURST),
            left: p.count.map_or(u64::MAX, |c| c / queues + u64::from(nth < c % queues)),
            order: Order {
                cursor: Cursor::new(flow(i), flow(i + 1), &p.sizes),
                sizes: p.sizes.clone(),
                pacer,
            },
            gate: Arc::clone(&self.shared.gate),
            run: Arc::clone(run),
            made: Arc::clone(&run.made[usize::from(i)]),
        }
    }
}

impl OpenPort for GenPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn start(&mut self, cfg: &PortConfig) -> Result<Queues, PortError> {
        cfg.check(&self.info)?;
        let longest = self.profile.sizes.longest();
        if longest - FCS > usize::from(cfg.max_frame) {
            let problem = format!(
                "{longest} is more than the port's longest frame, {}",
                usize::from(cfg.max_frame) + FCS
            );
            return Err(wrong("size", problem));
        }
        if self.profile.flows < u32::from(cfg.queues) {
            let problem =
                format!("{} for {} queues: each makes one at least", self.profile.flows, cfg.queues);
            return Err(wrong("flows", problem));
        }
        let seed = RandomState::new().hash_one(NAME);
        let run = Run::new(&self.profile, cfg.queues, seed)
            .ok_or_else(|| wrong("size", format!("{} B do not fit the headers", self.profile.sizes)))?;
        let mut queues = Queues::default();
        for i in 0..cfg.queues {
            queues.rx.push(Box::new(self.source(i, cfg.queues, &run, cfg.port)));
            let checked = &run.checked[usize::from(i)];
            queues.tx.push(Box::new(Sink(Checker::new(&run, self.profile.flows, checked))));
        }
        *self.shared.run.lock().unwrap_or_else(PoisonError::into_inner) = Some(run);
        self.shared.gate.set_receiving(true);
        Ok(queues)
    }

    fn link(&mut self) -> Link {
        let started = self.shared.run.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        Link { up: started, speed_bps: None }
    }

    fn device_counts(&mut self) -> DeviceCounts {
        let counts = self.shared.counts();
        DeviceCounts {
            rx_good: None,
            rx_delivered: Some(counts.made),
            tx_sent: Some(counts.arrived + counts.foreign),
            rx_missed: Some(0),
            rx_errors: Some(0),
        }
    }

    fn input(&mut self) -> Input {
        match self.profile.count {
            None => Input::Endless,
            Some(count) if self.shared.counts().made >= count => Input::Exhausted,
            Some(_) => Input::More,
        }
    }

    fn set_promiscuous(&mut self, _on: bool) -> Result<(), PortError> {
        Ok(())
    }

    fn rx_off(&mut self) -> Result<(), PortError> {
        self.shared.gate.set_receiving(false);
        Ok(())
    }

    fn stop(&mut self, queues: Queues, local: &Local) -> Result<(), PortError> {
        self.rx_off()?;
        queues.rx.into_iter().for_each(|q| q.reclaim(local));
        queues.tx.into_iter().for_each(|q| q.reclaim(local));
        let c = self.shared.counts();
        tracing::info!(
            made = c.made,
            arrived = c.arrived,
            missing = c.missing(),
            reordered = c.reordered,
            repeated = c.repeated,
            changed = c.changed,
            foreign = c.foreign,
            "traffic ended"
        );
        Ok(())
    }
}
