//! A runtime that moves packets, looked at from all sides.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use graph::{GraphBuilder, OnFull, To};
use hw::{Pages, Window};
use mem::{Layout, Memory};
use port::{Driver, OpenEnv, OpenPort, PortConfig};
use ringwright_rt::control::{Client, Code, Command, Host, Limits, Observation, Refusal, Request};
use ringwright_rt::{Idle, Role, Runtime, WorkerPlan, telemetry};
use serde_json::Value;
use stages::{MacSwap, PortMap};

use crate::host::{PATIENCE, Rig, exporter, get};

/// A runtime as a host; it can stand still, so that several views are of one moment.
pub struct Instance {
    runtime: Runtime,
    frozen: Option<Observation>,
}

impl Host for Instance {
    fn observe(&mut self) -> Observation {
        self.frozen.clone().unwrap_or_else(|| self.runtime.observe())
    }
    fn execute(&mut self, command: Command) -> Result<Value, Refusal> {
        Err(Refusal::new(Code::UNSUPPORTED, command.name()))
    }
}

/// A port that makes frames and takes them.
fn open(runtime: &Runtime, name: &str) -> (Box<dyn OpenPort>, PortConfig) {
    let env = OpenEnv { memory: runtime.memory().clone(), name: name.into() };
    let mut cfg = PortConfig::new(0);
    (cfg.rx_ring, cfg.tx_ring) = (256.try_into().unwrap(), 256.try_into().unwrap());
    (null::Null::new().open(&"frames = \"udp\"".parse().unwrap(), &env).unwrap(), cfg)
}

/// Two ports that make and take frames, one worker, one stage.
pub struct Running {
    pub host: Arc<Mutex<Instance>>,
}

impl Running {
    pub fn start() -> Self {
        let memory =
            Memory::new(Window::reserve(Window::LEN).unwrap(), Layout::for_frame_room(2048).unwrap());
        memory.add_pool(4096, None, Pages::Any).unwrap();
        let mut runtime = Runtime::new(memory);
        for name in ["left", "right"] {
            let (open, cfg) = open(&runtime, name);
            runtime.add_port(name, open, cfg, OnFull::Drop);
        }
        let swap = MacSwap::new(Some(PortMap::pairs(&[(0, 1)]).unwrap()));
        let plan = WorkerPlan {
            core: None,
            role: Role::RunToCompletion,
            idle: Idle::Busy,
            rx: vec![(0, 0), (1, 0)],
            tx: vec![(0, 0), (1, 0)],
            stages: 1,
            graph: Some(Box::new(|local| {
                let mut graph = GraphBuilder::new(local);
                let swap = graph.add("swap", Box::new(swap));
                graph.build(To::Node(swap))
            })),
        };
        runtime.start(vec![plan]).unwrap();
        let mut instance = Instance { runtime, frozen: None };
        let deadline = Instant::now() + PATIENCE;
        while instance.observe().status.stages.iter().all(|s| s.cycles.is_none()) {
            assert!(Instant::now() < deadline, "nothing moves");
            std::thread::sleep(Duration::from_millis(2));
        }
        Self { host: Arc::new(Mutex::new(instance)) }
    }
}

/// Series and values of a scrape.
fn series(text: &str) -> BTreeMap<&str, f64> {
    let samples = text.lines().filter(|l| !l.starts_with('#'));
    samples.map(|l| l.rsplit_once(' ').unwrap()).map(|(name, v)| (name, v.parse().unwrap())).collect()
}

#[test]
fn command_line_api_and_metrics_agree() {
    let running = Running::start();
    {
        let mut host = running.host.lock().unwrap();
        host.frozen = Some(host.runtime.observe());
    }
    let rig = Rig::new(running.host.clone(), Limits::default());
    let e = exporter(running.host.clone(), telemetry::Limits::default());
    let by_socket = Client::connect(&rig.path, PATIENCE).unwrap().request(&Request::Status).unwrap();
    let by_api = get(e.address(), "/api/v1/status").body;
    assert_eq!(by_socket.get(), by_api.trim_end(), "byte for byte");

    let status: Value = serde_json::from_str(&by_api).unwrap();
    let metrics = get(e.address(), "/metrics").body;
    let metrics = series(&metrics);
    let mut compared = 0;
    let mut same = |name: String, value: &Value| {
        let got = metrics.get(&*name).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(Some(*got), value.as_f64(), "{name}");
        compared += 1;
    };
    for p in status["ports"].as_array().unwrap() {
        let port = p["name"].as_str().unwrap();
        for q in p["queues"].as_array().unwrap() {
            for d in ["rx", "tx"] {
                let labels = format!("{{port=\"{port}\",queue=\"{}\",direction=\"{d}\"}}", q["id"]);
                assert!(q[d]["packets"].as_u64().unwrap() > 0);
                same(format!("ringwright_port_packets_total{labels}"), &q[d]["packets"]);
                same(format!("ringwright_port_bytes_total{labels}"), &q[d]["bytes"]);
                same(format!("ringwright_doorbells_total{labels}"), &q[d]["doorbells"]);
                let bursts =
                    q[d]["bursts"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum::<u64>();
                same(format!("ringwright_burst_packets_count{labels}"), &bursts.into());
            }
        }
    }
    let w = &status["workers"][0];
    same("ringwright_worker_packets_total{worker=\"0\"}".to_owned(), &w["packets"]);
    same("ringwright_worker_cycles_total{worker=\"0\",state=\"useful\"}".to_owned(), &w["cycles"]["useful"]);
    let s = &status["stages"][0];
    for field in ["packets", "calls", "cycles"] {
        let name = format!("ringwright_stage_{field}_total{{worker=\"0\",stage=\"swap\"}}");
        same(name, &s[field]);
    }
    same("ringwright_packets_held".to_owned(), &status["conservation"]["held"]);
    assert_eq!(compared, 22);
    assert_eq!(status["conservation"]["unexplained"], Value::Null);
    assert!(!metrics.contains_key("ringwright_packets_unexplained"));
}

#[test]
fn counters_only_grow_under_traffic_and_sums_hold() {
    let running = Running::start();
    let e = exporter(running.host.clone(), telemetry::Limits::default());
    let mut last: Vec<(String, f64)> = Vec::new();
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(60));
        let text = get(e.address(), "/metrics").body;
        let now = series(&text);
        for (name, before) in &last {
            let after = now.get(&**name).unwrap_or_else(|| panic!("{name} is gone"));
            assert!(after >= before, "{name}: {before} and then {after}");
        }
        let counts = |n: &str| n.contains("_total") || n.contains("_bucket") || n.contains("_count");
        last = now.iter().filter(|(n, _)| counts(n)).map(|(n, v)| ((*n).to_owned(), *v)).collect();
        let moved = |d: &str| -> f64 {
            let of = format!("direction=\"{d}\"");
            let all =
                now.iter().filter(|(n, _)| n.starts_with("ringwright_port_packets_total") && n.contains(&of));
            all.map(|(_, v)| v).sum()
        };
        assert!(moved("rx") > 0.0 && moved("tx") > 0.0);
    }
    assert!(last.len() > 100);
    let status = running.host.lock().unwrap().runtime.stop();
    assert_eq!(status.conservation.unexplained, Some(0));
}

#[test]
fn counters_do_not_go_backwards_when_ports_go_and_come_back() {
    let running = Running::start();
    let e = exporter(running.host.clone(), telemetry::Limits::default());
    let scrape = || {
        std::thread::sleep(Duration::from_millis(60));
        let text = get(e.address(), "/metrics").body;
        let counters =
            series(&text).into_iter().filter(|(n, _)| n.contains("_total") || n.contains("_count"));
        counters.map(|(n, v)| (n.to_owned(), v)).collect::<BTreeMap<_, _>>()
    };
    let mine = r#"ringwright_port_packets_total{port="right",queue="0",direction="rx"}"#;
    let mut seen = scrape();
    assert!(seen[mine] > 0.0);
    for round in 0..3 {
        {
            let runtime = &mut running.host.lock().unwrap().runtime;
            let number = runtime.port("right").unwrap();
            runtime.remove_port(number).unwrap();
        }
        let without = scrape();
        {
            let runtime = &mut running.host.lock().unwrap().runtime;
            let (open, cfg) = open(runtime, "right");
            runtime.add_port_live("right", open, cfg, OnFull::Drop, None).unwrap();
        }
        let again = scrape();
        for now in [&without, &again] {
            for (name, value) in now {
                let before = seen.insert(name.clone(), *value).unwrap_or(0.0);
                assert!(*value >= before, "round {round}: {name}: {before} and then {value}");
            }
        }
        assert!(without.contains_key(mine), "what it had counted stays");
        assert!(again[mine] > without[mine], "and goes on");
    }
    let status = running.host.lock().unwrap().runtime.stop();
    assert_eq!(status.conservation.unexplained, Some(0));
}
