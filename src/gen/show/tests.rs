//! What is said for people and for programs, from counts that are made up.

use generator::Pace;
use rt::{DeviceStatus, DropMap, LinkStatus, PortStatus, QueueSide, QueueStatus, Traffic};

use super::*;

fn basis(back: bool) -> Basis {
    let ceiling = Ceiling::of(12.3e6, "gen to gen", Some(1), "64 B, 64 flows".into());
    let profile = Profile { pace: Pace::Max, ..Profile::default() };
    Basis { tx: "packet".into(), rx: back.then(|| "packet".into()), profile, asked: None, ceiling }
}

fn speed(packets: f64) -> Option<Throughput> {
    Some(Throughput { packets_per_second: packets, wire_bits_per_second: packets * 672.0 })
}

fn counts(made: u64, ordered: u64) -> Counts {
    let latency =
        Some(Latency { min: 900, mean: 1500, p50: 1400, p99: 2_500_000, p999: 3_000_000, max: 1 << 32 });
    Counts {
        made,
        ordered,
        arrived: ordered,
        made_rate: speed(1e6),
        arrived_rate: speed(1e6),
        latency,
        ..Counts::default()
    }
}

#[test]
fn a_clean_run_says_so() {
    let text = Report::new(basis(true), &counts(1_000_000, 1_000_000), Status::default()).to_string();
    for words in [
        "64 B, 64 flows by packet, back by packet",
        "ceiling of this generator on core 1: 12.300 M/s packets (64 B, 64 flows; gen to gen)",
        "sent      1.000 M/s packets, 672.00 Mbit/s on the wire",
        "latency   min 900 ns, mean 1.5 us, median 1.4 us, 99 % below 2.50 ms, 99.9 % below 3.00 ms, max 4.29 s",
        "checker: each of 1 000 000 frames came back once, unchanged and in order",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("limited") && !text.contains("late:") && !text.contains("asked"), "{text}");
}

#[test]
fn what_went_wrong_on_the_way_is_said() {
    let c = Counts {
        reordered: 5,
        extent_max: Some(7),
        extent_mean: Some(2.5),
        repeated: 3,
        changed: 2,
        changed_new: 2,
        foreign: 9,
        too_late: 1,
        skipped: 44,
        ..counts(1000, 900)
    };
    let r = Report::new(Basis { asked: speed(2e6), ..basis(true) }, &c, Status::default());
    let text = r.to_string();
    for words in [
        "of 1 000 frames 93 lost (9.3000 %), 5 reordered, 3 duplicated, 2 corrupted",
        "extent 2.5 on average, 7 at most",
        "1 came too late to tell",
        "foreign: 9",
        "asked     2.000 M/s packets, 1.34 Gbit/s",
        "late: 44 frames were not sent",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json = serde_json::to_value(&r).unwrap();
    let g = &json["gen"];
    let got = ["sent", "lost", "reordered", "duplicated", "corrupted", "too_late", "foreign"].map(|k| &g[k]);
    assert_eq!(got, [1000, 93, 5, 3, 2, 1, 9]);
    assert_eq!((&g["rate"]["skipped"], &g["reordering_extent_max"]), (&44.into(), &7.into()));
}

#[test]
fn what_the_sending_port_dropped_is_said() {
    let side = QueueSide { drops: [("link_down", 30), ("too_long", 4)].into(), ..QueueSide::default() };
    let port = |name: &str, tx: &QueueSide| PortStatus {
        name: name.to_owned(),
        driver: "packet",
        node: None,
        link: LinkStatus::default(),
        rx: Traffic::default(),
        tx: Traffic::default(),
        drops: DropMap::default(),
        device: DeviceStatus::default(),
        queues: vec![QueueStatus { id: 0, worker: None, rx: side.clone(), tx: tx.clone() }],
    };
    let ports = vec![port("gen", &side), port("tx", &side), port("rx", &QueueSide::default())];
    let status = Status { ports, ..Status::default() };
    let r = Report::new(basis(true), &counts(100, 66), status);
    assert_eq!((r.figures.dropped_by_tx, r.figures.lost), (34, Some(34)));
    assert!(r.to_string().contains("dropped by the sending port: 34"), "{r}");
}

#[test]
fn what_cannot_come_back_is_unknown_and_not_zero() {
    let counts = Counts { latency: None, arrived_rate: None, ..counts(1000, 0) };
    let r = Report::new(basis(false), &counts, Status::default());
    let text = r.to_string();
    assert!(text.contains("back by nowhere") && text.contains("what became of them is unknown"), "{text}");
    assert!(!text.contains("lost") && !text.contains("received  "), "{text}");
    let json = serde_json::to_value(&r).unwrap();
    for key in [
        "rx",
        "received",
        "lost",
        "duplicated",
        "reordered",
        "corrupted",
        "foreign",
        "too_late",
        "latency_ns",
    ] {
        assert_eq!(json["gen"].get(key), Some(&serde_json::Value::Null), "{key}");
    }
    assert_eq!(json["gen"]["sent"], 1000);
}

#[test]
fn nothing_that_came_back_is_loss_with_a_hint() {
    let counts = Counts { latency: None, arrived_rate: None, ..counts(1000, 0) };
    let text = Report::new(basis(true), &counts, Status::default()).to_string();
    assert!(
        text.contains("is there a loop or a reflector") && text.contains("1 000 lost (100.0000 %)"),
        "{text}"
    );
    let none = Counts { made_rate: None, ..Counts::default() };
    let text = Report::new(basis(true), &none, Status::default()).to_string();
    assert!(text.contains("too few to tell a rate") && text.contains("of 0 frames 0 lost"), "{text}");
}

#[test]
fn a_result_near_the_ceiling_is_marked() {
    for (packets, limited) in [(11.6e6, false), (11.7e6, true), (13e6, true)] {
        let c = Counts { made_rate: speed(packets), ..counts(10, 10) };
        let r = Report::new(basis(true), &c, Status::default());
        assert_eq!(r.figures.limited_by_generator, limited, "{packets}");
        assert_eq!(r.to_string().contains("limited by the generator"), limited);
    }
}

#[test]
fn a_line_is_of_the_time_since_the_last() {
    let mut p = Progress::new(true);
    p.update(1.0, counts(1_000_000, 999_900));
    p.update(3.0, counts(5_000_000, 4_999_900));
    let line = p.to_string();
    for words in [
        "3.0 s",
        "sent 2.000 M/s",
        "received 2.000 M/s",
        "not back 100",
        "latency 1.4 us (99 % below 2.50 ms)",
    ] {
        assert!(line.contains(words), "{words}: {line}");
    }
    let mut blind = Progress::new(false);
    blind.update(1.0, counts(5, 0));
    assert!(!blind.to_string().contains("back"), "{blind}");
}
