//! The control side.

use std::fs::File;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use mem::{Local, Memory};
use port::{
    DeviceCounts, Input, Link, OpenEnv, OpenPort, PortConfig, PortError, PortInfo, Queues, RxSetup, TxSetup,
};

use crate::absent::{Nothing, Nowhere};
use crate::claims::Claims;
use crate::keys::{Keys, ReadKeys, WriteKeys};
use crate::output::{Output, advice, is_deleted, said};
use crate::pace::Pace;
use crate::rx::{RxShared, RxState};
use crate::source::Source;
use crate::tx::TxState;
use crate::writer::{Lane, TxShared, Writer};
use crate::{MAX_QUEUES, NAME, wrong};

/// How long a stop waits for the writer, which by then has little left to write.
const PATIENCE: Duration = Duration::from_secs(5);

/// A capture that is read.
struct Reading {
    keys: ReadKeys,
    /// Opened, and not yet started.
    source: Option<Source>,
    shared: Arc<RxShared>,
}

/// A capture that is written.
struct Writing {
    keys: WriteKeys,
    shared: Arc<TxShared>,
    lanes: Vec<Arc<Lane>>,
    thread: Option<(JoinHandle<()>, Receiver<()>)>,
    /// The file, unless it is a pipe.
    file: Option<Arc<File>>,
}

/// A port that reads, writes, or both.
pub struct PcapPort {
    info: PortInfo,
    name: Arc<str>,
    memory: Arc<Memory>,
    claims: Claims,
    reading: Option<Reading>,
    writing: Option<Writing>,
    started: bool,
}

impl PcapPort {
    /// Opens what is read, and looks whether what is to be written can be; nothing is written yet.
    pub fn open(keys: Keys, env: &OpenEnv, claims: &Claims) -> Result<Self, PortError> {
        let info = PortInfo {
            driver: NAME,
            node: None,
            mac: None,
            max_queues: MAX_QUEUES,
            max_frame: u16::MAX,
            max_segments: mem::MAX_SEGMENTS as u16,
        };
        let open = |keys: ReadKeys| {
            let source = Some(Source::open(&keys, claims)?);
            Ok::<_, PortError>(Reading { keys, source, shared: Arc::default() })
        };
        let reading = keys.read.map(open).transpose()?;
        let check = |keys: WriteKeys| {
            let folder = keys.path.parent().filter(|p| !p.as_os_str().is_empty());
            if folder.is_some_and(|f| !f.is_dir()) {
                let problem = format!("{} cannot be written: there is no such folder", keys.path.display());
                return Err(wrong("write", problem));
            }
            if let Ok(meta) = std::fs::metadata(&keys.path) {
                claims.claim(&meta, true).map_err(|_| in_use(&keys))?;
            }
            Ok(Writing { keys, shared: Arc::default(), lanes: Vec::new(), thread: None, file: None })
        };
        let writing = keys.write.map(check).transpose()?;
        let (name, memory, claims) = (Arc::clone(&env.name), Arc::clone(&env.memory), claims.clone());
        Ok(Self { info, name, memory, claims, reading, writing, started: false })
    }

    fn start_reading(&mut self, cfg: &PortConfig, queues: &mut Queues) -> Result<(), PortError> {
        let nothing = |_| Box::new(Nothing) as Box<dyn RxSetup>;
        let Some(r) = &mut self.reading else {
            queues.rx.extend((0..cfg.queues).map(nothing));
            return Ok(());
        };
        let source = match r.source.take() {
            Some(source) => source,
            None => Source::open(&r.keys, &self.claims)?,
        };
        r.shared = Arc::default();
        r.shared.receiving.store(true, Ordering::Relaxed);
        let (pace, shared) = (Pace::new(r.keys.pace), Arc::clone(&r.shared));
        queues.rx.push(Box::new(RxState { port: cfg.port, source, pace, shared }));
        queues.rx.extend((1..cfg.queues).map(nothing));
        Ok(())
    }

    fn start_writing(&mut self, cfg: &PortConfig, queues: &mut Queues) -> Result<(), PortError> {
        let Some(w) = &mut self.writing else {
            queues.tx.extend((0..cfg.queues).map(|_| Box::new(Nowhere) as Box<dyn TxSetup>));
            return Ok(());
        };
        let output = Output::open(&w.keys.path, &self.claims)?;
        w.shared = Arc::default();
        w.file = output.file();
        w.lanes = (0..cfg.queues).map(|_| Lane::new(cfg.tx_ring.entries())).collect();
        for lane in &w.lanes {
            queues.tx.push(Box::new(TxState::new(Arc::clone(lane), Arc::clone(&w.shared))));
        }
        let writer = Writer {
            memory: Arc::clone(&self.memory),
            lanes: w.lanes.clone(),
            shared: Arc::clone(&w.shared),
            output,
            path: w.keys.path.display().to_string(),
            format: w.keys.format,
            snaplen: w.keys.snaplen,
            buffer: Vec::new(),
            ends: Vec::new(),
        };
        let (done, ended) = channel();
        let thread = Builder::new().name(format!("pcap-{}", self.name)).spawn(move || {
            writer.run();
            let _ = done.send(());
        });
        let thread = thread.map_err(|e| wrong("write", format!("no thread to write: {}", said(&e))))?;
        w.thread = Some((thread, ended));
        Ok(())
    }
}

fn in_use(keys: &WriteKeys) -> PortError {
    wrong(
        "write",
        format!("{} is read by a port, or written by another; write another file", keys.path.display()),
    )
}

impl Writing {
    /// Waits until all is written, then until it is on the disk. False if the writer does not end.
    fn finish(&mut self) -> bool {
        self.shared.finish.store(true, Ordering::Release);
        let Some((thread, ended)) = self.thread.take() else { return true };
        if matches!(ended.recv_timeout(PATIENCE), Err(RecvTimeoutError::Timeout)) {
            return false;
        }
        if thread.join().is_err() {
            self.shared.fail(format!("capture {}: the thread that writes has ended early", self.path()));
        }
        self.shared.ready.store(false, Ordering::Relaxed);
        if let Some(file) = self.file.as_ref().filter(|_| self.keys.sync)
            && let Err(e) = file.sync_all()
        {
            let (what, advice) = (said(&e), advice(&e));
            self.shared
                .fail(format!("capture {}: {what} as it was brought to the disk; {advice}", self.path()));
        }
        self.look_for_the_file();
        self.file = None;
        true
    }

    fn path(&self) -> String {
        self.keys.path.display().to_string()
    }

    /// Notices that the file has been deleted.
    fn look_for_the_file(&self) {
        let gone = |file: &Arc<File>| file.metadata().is_ok_and(|m| is_deleted(&m));
        if self.file.as_ref().is_some_and(gone) {
            let n = self.shared.written.load(Ordering::Relaxed);
            self.shared.fail(format!(
                "capture {}: deleted while it was written, with {n} packets in it",
                self.path()
            ));
        }
    }
}

impl OpenPort for PcapPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn start(&mut self, cfg: &PortConfig) -> Result<Queues, PortError> {
        cfg.check(&self.info)?;
        let mut queues = Queues::default();
        self.start_reading(cfg, &mut queues)?;
        self.start_writing(cfg, &mut queues)?;
        self.started = true;
        Ok(queues)
    }

    /// Up as long as frames can pass. A pipe is up when somebody reads it.
    fn link(&mut self) -> Link {
        let writes = |w: &Writing| w.shared.ready.load(Ordering::Relaxed);
        Link { up: self.started && self.writing.as_ref().is_none_or(writes), speed_bps: None }
    }

    fn device_counts(&mut self) -> DeviceCounts {
        let read = self.reading.as_ref().map(|r| r.shared.read.load(Ordering::Relaxed));
        let written = self.writing.as_ref().map(|w| w.shared.written.load(Ordering::Relaxed));
        DeviceCounts {
            rx_good: read,
            rx_delivered: read,
            tx_sent: written,
            rx_missed: read.map(|_| 0),
            rx_errors: None,
        }
    }

    fn input(&mut self) -> Input {
        match &self.reading {
            None => Input::None,
            Some(r) if r.shared.ended.load(Ordering::Acquire) => Input::Exhausted,
            Some(r) if r.keys.passes.is_none() => Input::Endless,
            Some(_) => Input::More,
        }
    }

    fn fault(&mut self) -> Option<String> {
        if let Some(r) = &self.reading
            && let Some(e) = &*r.shared.fault.lock().unwrap_or_else(PoisonError::into_inner)
        {
            return Some(format!("capture {} {e}", r.keys.path.display()));
        }
        let w = self.writing.as_ref()?;
        w.look_for_the_file();
        w.shared.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_promiscuous(&mut self, _on: bool) -> Result<(), PortError> {
        Ok(())
    }

    fn rx_off(&mut self) -> Result<(), PortError> {
        if let Some(r) = &self.reading {
            r.shared.receiving.store(false, Ordering::Relaxed);
        }
        if let Some(w) = &self.writing {
            let _ = w.shared.closing.compare_exchange(
                0,
                hw::cycles().max(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
        Ok(())
    }

    fn stop(&mut self, queues: Queues, local: &Local) -> Result<(), PortError> {
        self.rx_off()?;
        self.started = false;
        if let Some(w) = &mut self.writing
            && !w.finish()
        {
            // It may still read what it was given.
            let buffers = w.lanes.iter().map(|l| l.held.load(Ordering::Relaxed)).sum();
            return Err(PortError::Quarantined { rings: 0, buffers });
        }
        queues.rx.into_iter().for_each(|q| q.reclaim(local));
        queues.tx.into_iter().for_each(|q| q.reclaim(local));
        Ok(())
    }
}

impl Drop for PcapPort {
    /// A port that was started and never stopped: its thread ends all the same.
    fn drop(&mut self) {
        if let Some(w) = &self.writing {
            w.shared.closing.store(1, Ordering::Relaxed);
            w.shared.finish.store(true, Ordering::Release);
        }
    }
}
