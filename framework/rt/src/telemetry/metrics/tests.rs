use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use meter::{Direction, DropReason, Meter, QueueMeter, Snapshot, StageMeter, WorkerMeter};

use super::*;
use crate::telemetry::cost::Found;
use crate::{
    Conservation, DeviceStatus, HandoffStatus, Idle, LinkStatus, Lint, PoolStatus, PortStatus, Role,
    StageStatus, Status, Traffic, WorkerStatus,
};

/// An observation in which everything that can be known is.
fn full() -> Observation {
    let mut queue = QueueMeter::default();
    [0, 1, 3, 32, 64].iter().for_each(|&n| queue.burst(n, 60 * n as u64));
    queue.doorbells = 2;
    queue.full = 1;
    queue.hold.add(2_000, 4);
    queue.drops.add(DropReason::TxFull, 7);
    let mut worker = WorkerMeter { polls: 10, empty_polls: 6, packets: 100, ..WorkerMeter::default() };
    (worker.idle_cycles, worker.useful_cycles) = (600, 9_000);
    (worker.cache_hits, worker.cache_misses) = (640, 3);
    (worker.cached, worker.posted, worker.inflight, worker.batched, worker.parked) = (64, 1024, 32, 5, 1);
    worker.cycles_per_packet.add(90, 100);
    (worker.sleeps, worker.over_bound, worker.longest_sleep) = (3, 1, 70);
    worker.sleep_gaps.add(40, 2);
    worker.sleep_gaps.add(70, 1);
    let mut stage = StageMeter { calls: 4, packets: 100, created: 2, consumed: 3, ..StageMeter::default() };
    (stage.timed_calls, stage.timed_packets, stage.timed_cycles) = (1, 50, 1_000);
    stage.drops.add(DropReason::NoRoute, 9);
    let name: std::sync::Arc<str> = "p0".into();
    let meters = Snapshot {
        queues: [Direction::Rx, Direction::Tx].map(|d| ((name.clone(), 0, d), queue)).into(),
        workers: vec![(0, worker)],
        stages: vec![((0, "sw".into(), "l2switch"), stage)],
    };
    let device = DeviceStatus {
        rx_good: Some(107),
        rx_delivered: Some(100),
        tx_sent: Some(90),
        rx_missed: Some(7),
        rx_errors: Some(1),
    };
    let traffic = Traffic::from(&queue);
    let port = PortStatus {
        name: "p0".into(),
        driver: "null",
        node: Some(0),
        link: LinkStatus { up: true, speed_bps: Some(10_000_000_000) },
        rx: traffic,
        tx: traffic,
        drops: BTreeMap::new(),
        device,
        queues: Vec::new(),
    };
    let pool = PoolStatus {
        node: Some(0),
        pages: "2M",
        capacity: 8192,
        available: 6618,
        cache_hits: 640,
        cache_misses: 3,
    };
    let mut w = WorkerStatus::new(
        0,
        Some(1),
        Role::Process,
        Idle::Sleep { bound: Duration::from_micros(50) },
        &worker,
    );
    w.cycles.stall = Some(50);
    let drops = BTreeMap::from([("handoff_full", 11)]);
    let ring =
        HandoffStatus { from: 0, to: 1, port: None, packets: 90, drops, occupancy: 256, capacity: 1024 };
    let link = HandoffStatus { port: Some("p0".into()), ..ring.clone() };
    let status = Status {
        handoffs: vec![ring, link],
        schema: 1,
        version: "0.1.0",
        elapsed_s: 1.5,
        tsc_hz: 2_596_139_800,
        ports: vec![port],
        workers: vec![w],
        stages: vec![StageStatus::new(0, "sw", "l2switch", &stage)],
        pools: vec![pool],
        conservation: Conservation { held: 6, unexplained: Some(0), ..Conservation::default() },
        lints: vec![Lint {
            lint: "core_shared",
            object: "core 1".into(),
            message: "a \"quoted\" word".into(),
        }],
    };
    Observation { status, meters }
}

fn text(o: &Observation, memory: &mut Memory) -> String {
    let cost = Cost::default();
    cost.scraped(Found::Hit);
    String::from_utf8(render(&Arc::new(sheet(o, memory)), &cost, Format::OpenMetrics).to_vec()).unwrap()
}

fn lines(o: &Observation) -> Vec<String> {
    text(o, &mut Memory::default()).lines().map(str::to_owned).collect()
}

#[track_caller]
fn has(lines: &[String], wanted: &str) {
    assert!(lines.iter().any(|l| l == wanted), "{wanted}\nis not in\n{}", lines.join("\n"));
}

#[test]
fn samples_are_what_was_observed() {
    let lines = lines(&full());
    for wanted in [
        "# TYPE ringwright_port_packets counter",
        "# UNIT ringwright_port_packets packets",
        r#"ringwright_port_packets_total{port="p0",queue="0",direction="rx"} 100"#,
        r#"ringwright_port_bytes_total{port="p0",queue="0",direction="tx"} 6000"#,
        r#"ringwright_polls_total{port="p0",queue="0",direction="rx",result="work"} 4"#,
        r#"ringwright_polls_total{port="p0",queue="0",direction="rx",result="empty"} 1"#,
        r#"ringwright_burst_packets_sum{port="p0",queue="0",direction="rx"} 100.0"#,
        r#"ringwright_burst_packets_count{port="p0",queue="0",direction="rx"} 4"#,
        r#"ringwright_burst_packets_bucket{le="3.0",port="p0",queue="0",direction="rx"} 2"#,
        r#"ringwright_burst_packets_bucket{le="+Inf",port="p0",queue="0",direction="rx"} 4"#,
        r#"ringwright_doorbell_hold_seconds_count{port="p0",queue="0",direction="tx"} 4"#,
        r#"ringwright_drops_total{port="p0",queue="0",reason="tx_full"} 14"#,
        r#"ringwright_drops_total{stage="sw",reason="no_route"} 9"#,
        r#"ringwright_port_up{port="p0"} 1"#,
        r#"ringwright_port_info{port="p0",driver="null",node="0"} 1"#,
        r#"ringwright_port_device_packets_total{port="p0",direction="tx"} 90"#,
        r#"ringwright_port_device_missed_packets_total{port="p0"} 7"#,
        r#"ringwright_worker_cycles_total{worker="0",core="1",state="stall"} 50"#,
        r#"ringwright_cycles_per_packet_bucket{le="79.0",worker="0"} 0"#,
        r#"ringwright_cycles_per_packet_bucket{le="95.0",worker="0"} 100"#,
        r#"ringwright_cycles_per_packet_sum{worker="0"} 9000.0"#,
        r#"ringwright_worker_info{worker="0",core="1",role="process",idle="sleep"} 1"#,
        r#"ringwright_worker_sleeps_total{worker="0",core="1"} 3"#,
        r#"ringwright_worker_sleeps_over_bound_total{worker="0",core="1"} 1"#,
        r#"ringwright_worker_sleep_seconds_bucket{le="0.00005",worker="0"} 2"#,
        r#"ringwright_worker_sleep_seconds_bucket{le="0.0001",worker="0"} 3"#,
        r#"ringwright_worker_longest_sleep_seconds{worker="0",core="1"} 0.00007"#,
        r#"ringwright_worker_sleep_bound_seconds{worker="0",core="1"} 0.00005"#,
        r#"ringwright_handoff_packets_total{from="0",to="1"} 90"#,
        r#"ringwright_handoff_packets_total{from="0",to="1",port="p0"} 90"#,
        r#"ringwright_handoff_occupancy_ratio{from="0",to="1"} 0.25"#,
        r#"ringwright_drops_total{from="0",to="1",reason="handoff_full"} 11"#,
        r#"ringwright_stage_cycles_total{worker="0",stage="sw"} 2000"#,
        r#"ringwright_pool_buffers{node="0",state="free"} 6554"#,
        r#"ringwright_pool_buffers{node="0",state="other"} 518"#,
        r#"ringwright_pool_cache_total{worker="0",result="miss"} 3"#,
        "ringwright_packets_unexplained 0",
        r#"ringwright_lint{lint="core_shared",object="core 1"} 1"#,
        r#"ringwright_build_info{version="0.1.0"} 1"#,
        "ringwright_uptime_seconds 1.5",
        r#"ringwright_scrapes_total{result="hit"} 1"#,
        "# EOF",
    ] {
        has(&lines, wanted);
    }
    // 2000 ticks at 2.596 GHz are 0.77 microseconds.
    for (le, n) in [("5e-7", 0), ("0.000001", 4), ("+Inf", 4)] {
        let name = "ringwright_doorbell_hold_seconds_bucket";
        has(&lines, &format!(r#"{name}{{le="{le}",port="p0",queue="0",direction="tx"}} {n}"#));
    }
}

#[test]
fn what_is_unknown_is_absent() {
    let mut o = full();
    let p = &mut o.status.ports[0];
    (p.node, p.link.speed_bps, p.device) = (None, None, DeviceStatus::default());
    o.status.workers[0].core = None;
    o.status.workers[0].cycles.stall = None;
    o.status.stages[0].cycles = None;
    o.status.conservation.unexplained = None;
    o.status.pools[0].node = None;
    let lines = lines(&o);
    for absent in ["unexplained", "device", "speed", "stall", "node=", "core=", "stage_cycles"] {
        let there: Vec<_> = lines.iter().filter(|l| l.contains(absent) && !l.starts_with('#')).collect();
        assert!(there.is_empty(), "{there:?}");
    }
    has(&lines, r#"ringwright_port_info{port="p0",driver="null"} 1"#);
    has(&lines, r#"ringwright_pool_buffers{state="free"} 6554"#);
}

#[test]
fn with_several_pools_only_what_is_free_is_known() {
    let mut o = full();
    let mut second = o.status.pools[0].clone();
    second.node = Some(1);
    o.status.pools.push(second);
    let lines = lines(&o);
    let pools: Vec<_> = lines.iter().filter(|l| l.starts_with("ringwright_pool_buffers{")).collect();
    assert_eq!(
        pools,
        [
            r#"ringwright_pool_buffers{node="0",state="free"} 6618"#,
            r#"ringwright_pool_buffers{node="1",state="free"} 6618"#
        ]
    );
}

#[test]
fn a_port_that_was_there_before_counts_on() {
    let mut o = full();
    let again = o.meters.queues.clone();
    o.meters.queues.extend(again);
    let all = lines(&o);
    has(&all, r#"ringwright_port_packets_total{port="p0",queue="0",direction="rx"} 200"#);
    has(&all, r#"ringwright_burst_packets_count{port="p0",queue="0",direction="rx"} 8"#);
    let mut series: Vec<_> = all.iter().filter_map(|l| l.rsplit_once(' ').map(|s| s.0)).collect();
    let n = series.len();
    series.sort_unstable();
    series.dedup();
    assert_eq!(series.len(), n, "each series is there once");
}

#[test]
fn counters_never_go_backwards() {
    let mut memory = Memory::default();
    let sent = |o: &Observation, memory: &mut Memory| {
        let all = text(o, memory);
        let value = |name: &str| all.lines().find_map(|l| l.strip_prefix(name)?.trim().parse::<u64>().ok());
        (
            value(r#"ringwright_port_device_packets_total{port="p0",direction="tx"}"#),
            value(r#"ringwright_stage_cycles_total{worker="0",stage="sw"}"#),
        )
    };
    let mut o = full();
    assert_eq!(sent(&o, &mut memory), (Some(90), Some(2000)));
    o.status.stages[0].cycles = Some(1900);
    o.status.ports[0].device.tx_sent = Some(95);
    assert_eq!(sent(&o, &mut memory), (Some(95), Some(2000)), "an estimate waits");
    o.status.ports[0].device.tx_sent = Some(10);
    o.status.stages[0].cycles = Some(2100);
    assert_eq!(sent(&o, &mut memory), (Some(105), Some(2100)), "a device that was reset counts on");
    let port = o.status.ports.pop().unwrap();
    assert_eq!(sent(&o, &mut memory), (None, Some(2100)));
    o.status.ports.push(port);
    assert_eq!(sent(&o, &mut memory), (Some(105), Some(2100)));
    o.status.ports[0].device.tx_sent = Some(0);
    assert_eq!(sent(&o, &mut memory), (Some(105), Some(2100)));
    o.status.ports[0].device.tx_sent = Some(3);
    assert_eq!(sent(&o, &mut memory), (Some(108), Some(2100)));
}

/// Names, types and label names of all families in `text`.
fn families(text: &str) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let mut all: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    let mut now = String::new();
    for line in text.lines() {
        if let Some(t) = line.strip_prefix("# TYPE ringwright_") {
            let (name, kind) = t.split_once(' ').unwrap();
            now = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
            assert!(all.insert(now.clone(), (kind.to_owned(), BTreeSet::new())).is_none(), "{name} twice");
        } else if let Some((_, rest)) = line.split_once('{').filter(|_| !line.starts_with('#')) {
            let names = rest.split("\",").filter_map(|l| Some(l.split_once('=')?.0.to_owned()));
            all.get_mut(&now).unwrap().1.extend(names.filter(|n| n != "le"));
        }
    }
    all
}

#[test]
fn every_metric_is_documented_and_nothing_else_is() {
    let shown = families(&text(&full(), &mut Memory::default()));
    let page = include_str!("../../../../../docs/metrics.md");
    let rows = page.lines().filter_map(|l| l.strip_prefix("| `")).filter(|l| !l.starts_with('/'));
    let documented: BTreeMap<_, _> = rows
        .map(|row| {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            let labels = cells[2].split(", ").filter(|l| !l.is_empty()).map(str::to_owned).collect();
            (cells[0].trim_end_matches('`').to_owned(), (cells[1].to_owned(), labels))
        })
        .collect();
    assert_eq!(shown, documented);
}
