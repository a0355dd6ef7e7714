//! Ports and their queues.

use meter::{Direction, QueueMeter};

use super::sheet::{Buckets, Number, Sheet, Title, labels, rebucket};
use crate::control::Observation;
use crate::status::PortStatus;

const PACKETS: Title =
    Title::of("port", "packets", "Packets that receive queues delivered and transmit queues took.");
const BYTES: Title = Title::of("port", "bytes", "Bytes of these packets, without check sequences.");
const BURSTS: Title = Title::of("burst", "packets", "Packets in a burst, empty polls left out.");
const POLLS: Title = Title::plain("polls", "Calls of a queue, by whether they moved anything.");
const FULL: Title = Title::plain("queue_full", "Calls that left packets behind for want of room.");
const DOORBELLS: Title = Title::plain("doorbells", "Tail writes.");
const HOLD: Title = Title::of("doorbell_hold", "seconds", "How long tail writes were held back.");
pub(super) const DROPS: Title = Title::plain("drops", "Packets dropped, by where and why.");
const UP: Title = Title::plain("port_up", "Whether frames can pass: 1 or 0.");
const INFO: Title = Title::plain("port_info", "A port's driver and memory node.");
const SPEED: Title = Title::plain("port_speed_bits_per_second", "The link's speed.");
/// What devices count begins anew when a device does; see [`super::Memory`].
pub(super) const DEVICE: &str = "port_device";
const DEVICE_PACKETS: Title =
    Title::of(DEVICE, "packets", "Frames that the device itself says it delivered (rx) and sent (tx).");
pub(super) const DEVICE_GOOD: &str = "port_device_good";
const GOOD: Title =
    Title::of(DEVICE_GOOD, "packets", "Good frames that the device says came in, whatever became of them.");
pub(super) const DEVICE_MISSED: &str = "port_device_missed";
const MISSED: Title =
    Title::of(DEVICE_MISSED, "packets", "Good frames that the device says it lost for want of room.");
pub(super) const DEVICE_BAD: &str = "port_device_bad";
const BAD: Title =
    Title::of(DEVICE_BAD, "packets", "Frames that the device threw away for faults of their own.");

/// Bounds of bursts: the meter's buckets are 1, 2-3, 4-7, 8-15, 16-31, 32-63 and more.
const BURST_BOUNDS: [f64; 7] = [1.0, 3.0, 7.0, 15.0, 31.0, 63.0, f64::INFINITY];
/// Bounds of hold times: the same on every machine, whatever its clock.
const HOLD_BOUNDS: [f64; 12] = [1e-7, 2e-7, 5e-7, 1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4];

pub(super) fn fill(o: &Observation, sheet: &mut Sheet) {
    let hz = o.status.tsc_hz;
    for ((port, queue, direction), m) in &o.meters.queues {
        fill_queue(sheet, port, *queue, *direction, m, hz);
    }
    for p in &o.status.ports {
        fill_port(sheet, p);
    }
}

fn fill_queue(s: &mut Sheet, port: &str, queue: u16, direction: Direction, m: &QueueMeter, hz: u64) {
    let of = || labels! { port: port, queue: queue, direction: direction.name() };
    s.count(PACKETS, of(), m.packets);
    s.count(BYTES, of(), m.bytes);
    let buckets = BURST_BOUNDS.into_iter().zip(m.bursts).collect();
    s.histogram(BURSTS, of(), Buckets { buckets, sum: m.packets as f64 });
    for (result, n) in [("work", m.polls - m.empty_polls), ("empty", m.empty_polls)] {
        let labels = labels! { port: port, queue: queue, direction: direction.name(), result: result };
        s.count(POLLS, labels, n);
    }
    s.count(FULL, of(), m.full);
    s.count(DOORBELLS, of(), m.doorbells);
    if direction == Direction::Tx && hz > 0 {
        s.histogram(HOLD, of(), rebucket(&m.hold, &HOLD_BOUNDS, 1.0 / hz as f64, None));
    }
    for (reason, n) in m.drops.iter() {
        s.count(DROPS, labels! { port: port, queue: queue, reason: reason.name() }, n);
    }
}

fn fill_port(s: &mut Sheet, p: &PortStatus) {
    let of = || labels! { port: p.name };
    s.gauge(UP, of(), Number::Whole(p.link.up.into()));
    let mut info = labels! { port: p.name, driver: p.driver };
    info.extend(p.node.map(|n| ("node", n.to_string())));
    s.gauge(INFO, info, Number::Whole(1));
    if let Some(bps) = p.link.speed_bps {
        s.gauge(SPEED, of(), Number::Whole(bps));
    }
    let d = &p.device;
    for (direction, n) in [(Direction::Rx, d.rx_delivered), (Direction::Tx, d.tx_sent)] {
        if let Some(n) = n {
            s.count(DEVICE_PACKETS, labels! { port: p.name, direction: direction.name() }, n);
        }
    }
    for (title, n) in [(GOOD, d.rx_good), (MISSED, d.rx_missed), (BAD, d.rx_errors)] {
        if let Some(n) = n {
            s.count(title, of(), n);
        }
    }
}
