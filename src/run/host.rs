//! What the control socket can do to a running configuration.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use port::PortError;
use rt::RtError;
use rt::config::{Kinds, PortNames, PortSection};
use rt::control::{Code, Command, Host, Observation, QueueName, Refusal};
use serde_json::{Value, json};
use toml::Table;

use super::system::{System, on_full, open_port, port_config};
use crate::log::Log;

/// A running configuration, with what of the process can be changed besides.
pub struct Running {
    pub system: System,
    pub log: Log,
    /// Set to end the run.
    pub stop: Arc<AtomicBool>,
}

impl Host for Running {
    fn observe(&mut self) -> Observation {
        self.system.runtime.observe()
    }

    fn execute(&mut self, command: Command) -> Result<Value, Refusal> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Refusal::new(Code::STOPPING, "the instance is stopping"));
        }
        match command {
            Command::AddPort { port, worker } => self.add_port(&port, worker),
            Command::RemovePort { name } => self.remove_port(&name),
            Command::MoveQueue { queue, worker } => self.move_queue(&queue, worker),
            Command::SetBatching { port, packets, delay } => self.set_batching(&port, packets, delay),
            Command::SetLog { filter } => {
                let set = self.log.set(&filter).map_err(|e| Refusal::new(Code::BAD_REQUEST, e))?;
                Ok(json!({ "filter": set }))
            }
            Command::Shutdown => {
                self.stop.store(true, Ordering::SeqCst);
                Ok(json!({ "stopping": true }))
            }
            other => {
                let message = format!("{} is not for a running configuration", other.name());
                Err(Refusal::new(Code::UNSUPPORTED, message))
            }
        }
    }
}

impl Running {
    fn number(&self, name: &str) -> Result<u16, Refusal> {
        let names = &self.system.names;
        names.number(name).ok_or_else(|| Refusal::no_such_port(name, names.iter()))
    }

    fn add_port(&mut self, table: &Table, worker: Option<usize>) -> Result<Value, Refusal> {
        let s = &mut self.system;
        let kinds = Kinds { drivers: &s.drivers, stages: &s.kinds };
        let bad = |e: &dyn std::fmt::Display| Refusal::new(Code::BAD_CONFIG, e.to_string());
        let section = PortSection::from_table(table, kinds).map_err(|e| bad(&e))?;
        if s.names.number(&section.name).is_some() {
            let message = format!("a port is called {:?} already: remove it first", section.name);
            return Err(Refusal::new(Code::PORT_EXISTS, message));
        }
        let open = open_port(&s.runtime, kinds, &section).map_err(|e| refused(&e))?;
        let cfg = port_config(&section, open.info().max_frame);
        // The stages are told first, so that they know the port from its first packet on.
        let mut names = s.names.clone();
        names.add(&section.name, names.next());
        s.tell_stages(&names).map_err(|e| bad(&e))?;
        let added = s.runtime.add_port_live(&section.name, open, cfg, on_full(&section), worker);
        match added {
            Ok(number) => {
                s.names.add(&section.name, number);
                Ok(
                    json!({ "port": &*section.name, "queues": section.queues, "worker": s.runtime.receiver(number, 0) }),
                )
            }
            Err(e) => {
                let known = s.names.clone();
                // The number is used up even so.
                s.names.skip();
                if let Err(also) = s.tell_stages(&known) {
                    tracing::error!("stages still have the port that was not added: {also}");
                }
                Err(refusal(&e))
            }
        }
    }

    fn remove_port(&mut self, name: &str) -> Result<Value, Refusal> {
        let number = self.number(name)?;
        let s = &mut self.system;
        s.runtime.remove_port(number).map_err(|e| refusal(&e))?;
        s.names.remove(name);
        let names = s.names.clone();
        s.tell_stages(&names).map_err(|e| Refusal::new(Code::FAILED, e))?;
        Ok(json!({ "port": name }))
    }

    fn move_queue(&mut self, queue: &QueueName, worker: usize) -> Result<Value, Refusal> {
        let number = self.number(&queue.port)?;
        let from = self.system.runtime.receiver(number, queue.queue);
        self.system.runtime.move_queue(number, queue.queue, worker).map_err(|e| refusal(&e))?;
        Ok(json!({ "queue": queue.to_string(), "from": from, "worker": worker }))
    }

    fn set_batching(
        &mut self,
        name: &str,
        packets: Option<NonZeroU16>,
        delay: Option<Duration>,
    ) -> Result<Value, Refusal> {
        let number = self.number(name)?;
        let runtime = &mut self.system.runtime;
        let (now_packets, now_delay) = runtime.batching(number).map_err(|e| refusal(&e))?;
        let (packets, delay) = (packets.map_or(now_packets, NonZeroU16::get), delay.unwrap_or(now_delay));
        runtime.set_batching(number, packets, delay).map_err(|e| refusal(&e))?;
        let delay = humantime::format_duration(delay).to_string();
        Ok(json!({ "port": name, "packets": packets, "delay": delay }))
    }
}

impl System {
    /// Tells every stage of every worker which ports there are.
    fn tell_stages(&self, names: &PortNames) -> Result<(), String> {
        let (stages, names) = (Arc::clone(&self.stages), names.clone());
        let told = self.runtime.with_graph(None, move |graph| {
            stages.iter().try_for_each(|(name, recipe)| {
                recipe.set_ports(graph, name, &names).map_err(|e| format!("stage {name}: {e}"))
            })
        });
        told.map_err(|e| e.to_string())?.into_iter().try_for_each(|(_, told)| told)
    }
}

fn refused(e: &PortError) -> Refusal {
    match e {
        PortError::Config { key, problem, .. } => Refusal::new(Code::BAD_CONFIG, format!("{key}: {problem}")),
        e => Refusal::new(Code::FAILED, e.to_string()),
    }
}

fn refusal(e: &RtError) -> Refusal {
    let code = match e {
        RtError::NoWorker { .. } => Code::NO_SUCH_WORKER,
        RtError::NoPort { .. } => Code::NO_SUCH_PORT,
        RtError::NoQueue { .. } => Code::NO_SUCH_QUEUE,
        RtError::PortThere(_) => Code::PORT_EXISTS,
        RtError::Role { .. } => Code::UNSUPPORTED,
        RtError::TooFewQueues { .. } | RtError::PoolTooSmall(_) => Code::BAD_CONFIG,
        _ => Code::FAILED,
    };
    Refusal::new(code, e.to_string())
}
