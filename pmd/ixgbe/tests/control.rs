//! Open, start, stop, move, fail: the control side, and that no buffer is lost by it.

mod rig;

use std::sync::Arc;

use hw::Bus;
use ixgbe_defs::regs;
use ixgbe_model::{Cause, Direction, Mode, Parameters, Script, Stall, Stepped};
use port::{Driver, OpenPort, PortConfig, PortError, Queues};
use rig::{BUFFERS, ID, Live, MAC, Rig, bytes, config, frame, free, memory, open_env, worker};
use ringwright_ixgbe::{Ixgbe, IxgbeDriver, PciId};

#[test]
fn only_devices_of_the_data_sheet_are_opened() {
    let (memory, rings) = memory(BUFFERS);
    let model = Stepped::new(Parameters::default(), rings, Script::default()).unwrap();
    let open = |id| Ixgbe::open(model.bus(), id, &open_env(&memory));
    let refused = open(PciId { vendor: 0x8086, device: 0x10ED }).err().unwrap().to_string();
    assert!(refused.contains("8086:10ed is no 82599"), "{refused}");
    assert!(open(PciId { vendor: 0x15b3, ..ID }).is_err());
    for (device, longest) in [(0x10FB, 9_600), (0x1528, 9_600)] {
        let port = open(PciId { device, ..ID }).unwrap();
        assert_eq!(
            (port.info().mac, port.info().max_frame, port.info().max_queues),
            (Some(MAC), longest, 16)
        );
    }
}

#[test]
fn a_device_is_reset_in_the_order_of_the_data_sheet() {
    let rig = Rig::new();
    let log = rig.device().take_log();
    let at = |cause, reg: hw::Reg| {
        let found = log.iter().position(|e| e.cause == cause && e.address == u64::from(reg.0));
        found.unwrap_or_else(|| panic!("{cause:?} {reg:?} is missing"))
    };
    use Cause::{MmioRead, MmioWrite};
    let order = [
        at(MmioWrite, regs::EIMC),
        at(MmioRead, regs::EICR),
        at(MmioWrite, regs::CTRL),
        at(MmioRead, regs::EEC),
        at(MmioRead, regs::RDRXCTL),
        at(MmioRead, regs::ral(0)),
    ];
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(rig.device().count(ixgbe_model::Count::Resets), 1);
    assert!(log.iter().all(|e| matches!(e.cause, MmioRead | MmioWrite)), "no DMA before there are rings");
    assert_eq!(rig.device().stray(), 0);
}

#[test]
fn configurations_that_cannot_be_are_refused() {
    let mut rig = Rig::new();
    let mut refused = |cfg: PortConfig| rig.port.start(&cfg).err().unwrap().to_string();
    assert!(refused(PortConfig { queues: 17, ..config() }).contains("17 queues asked, ixgbe has 1 to 16"));
    assert!(refused(PortConfig { max_frame: 9601, ..config() }).contains("60 to 9600"));
    assert!(
        refused(PortConfig { rx_ring: 16_384.try_into().unwrap(), ..config() })
            .contains("16384 descriptors asked, ixgbe takes powers of two from 8 to 8192")
    );
    let live = rig.start(&config());
    let again = rig.port.start(&config()).err().unwrap().to_string();
    assert!(again.contains("stop it first"), "{again}");
    rig.stop(live);
}

#[test]
fn frames_longer_than_a_small_ring_are_refused_at_the_start() {
    let window = hw::Window::on_heap(8 << 20);
    let rings = window.arena(hw::GRANULE, None, hw::Pages::Any).unwrap();
    let memory = mem::Memory::new(window, mem::Layout::for_frame_room(1024).unwrap());
    memory.add_pool(BUFFERS, None, hw::Pages::Any).unwrap();
    let model = Stepped::new(Parameters::default(), rings, Script::default()).unwrap();
    let mut port = Ixgbe::open(model.bus(), ID, &open_env(&memory)).unwrap();
    let refused = port.start(&PortConfig { rx_ring: 8.try_into().unwrap(), ..config() }).err().unwrap();
    assert!(refused.to_string().contains("from 16 to 8192"), "{refused}: ten buffers of 1 KiB, and room");
}

#[test]
fn rings_that_find_no_memory_leave_nothing_behind() {
    let mut rig = Rig::new();
    let big = 8192.try_into().unwrap();
    let cfg = PortConfig { rx_ring: big, tx_ring: big, queues: 16, ..config() };
    assert!(matches!(rig.port.start(&cfg), Err(PortError::Hw(hw::HwError::NoDma { .. }))));
    assert_eq!(rig.device().rings().quarantined(), 0);
    let live = rig.start(&config());
    rig.stop(live);
    let all = rig.device().rings().take(2 << 20);
    assert!(all.is_ok(), "all ring memory came back");
}

#[test]
fn the_link_goes_down_and_up() {
    let mut rig = Rig::new();
    let mut live = rig.start(&config());
    assert_eq!(rig.port.link(), port::Link { up: true, speed_bps: Some(10_000_000_000) });
    rig.device().set_link(false);
    rig.model.step();
    assert_eq!(rig.port.link(), port::Link { up: false, speed_bps: None });
    rig.arrive(frame(60, 1));
    let mut batch = rig.batch();
    rig.write(&mut batch, &frame(60, 2));
    assert_eq!(live.tx[0].tx_burst(&mut batch, 0), 1);
    rig.model.settle(5);
    assert_eq!((live.rx[0].rx_burst(&mut batch), live.tx[0].reap(), rig.sent().len()), (0, 0, 0));
    rig.device().set_link(true);
    rig.model.step();
    rig.model.settle(5);
    assert!(rig.port.link().up);
    assert_eq!((live.rx[0].rx_burst(&mut batch), live.tx[0].reap(), rig.sent().len()), (1, 1, 1));
    free(&mut batch);
    rig.stop(live);
}

#[test]
fn receiving_ends_with_rx_off_and_what_is_there_can_be_taken() {
    let mut rig = Rig::new();
    let mut live = rig.start(&config());
    rig.arrive(frame(60, 1));
    rig.model.settle(3);
    rig.port.rx_off().unwrap();
    rig.arrive(frame(60, 2));
    rig.model.settle(3);
    let mut batch = rig.batch();
    assert_eq!(live.rx[0].rx_burst(&mut batch), 1);
    assert_eq!(bytes(&batch.pkt(0).unwrap()), frame(60, 1));
    rig.model.settle(3);
    assert_eq!(live.rx[0].rx_burst(&mut batch), 0);
    assert_eq!(live.tx[0].tx_burst(&mut batch, 0), 1, "sending goes on");
    rig.model.settle(3);
    assert_eq!((rig.sent().len(), live.tx[0].reap()), (1, 1));
    rig.stop(live);
    assert_eq!(rig.port.device_counts().rx_delivered, Some(1), "counts outlast the stop");
}

#[test]
fn a_device_is_reset_under_load_again_and_again() {
    let mut rig = Rig::new();
    for round in 0..if cfg!(miri) { 2 } else { 12 } {
        let mut live = rig.start(&PortConfig { vlan_strip: round % 2 == 1, ..config() });
        let mut batch = rig.batch();
        for n in 0..40 {
            rig.arrive(frame(60 + (n as usize * 401) % 5000, n));
            rig.model.step();
            live.rx[0].rx_burst(&mut batch);
            if n % 3 == round % 3 {
                live.tx[0].tx_burst(&mut batch, 0);
            }
            if batch.room() < 32 {
                free(&mut batch);
            }
        }
        free(&mut batch);
        (0..7).for_each(|n| rig.arrive(frame(3000, n)));
        rig.model.step();
        assert!(live.rx[0].posted() > 0);
        rig.stop(live);
        rig.model.wire(|w| *w = Script::default());
    }
    assert_eq!(rig.device().rings().quarantined(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "waits for a time-out, which is long for an interpreter")]
fn a_device_that_does_not_reset_keeps_its_memory_for_ever() {
    let mut rig = Rig::new();
    let mut live = rig.start(&config());
    let mut batch = rig.batch();
    rig.write(&mut batch, &frame(60, 2));
    rig.device().set_mode(Mode::Stalled(Stall { reset: true, tx: true, ..Stall::default() }));
    assert_eq!(live.tx[0].tx_burst(&mut batch, 0), 1);
    rig.model.settle(3);
    match rig.port.stop(live.detach(), &rig.env.local) {
        Err(PortError::Quarantined { rings, buffers }) => assert_eq!((rings, buffers), (2 * 4096, 32)),
        other => panic!("{other:?}"),
    }
    assert_eq!(rig.device().rings().quarantined(), 2 * 4096);
    assert_eq!(rig.home(), BUFFERS - 32);
    assert!(rig.port.start(&config()).is_err(), "it still does not reset");
    rig.device().set_mode(Mode::Normal);
    rig.model.step();
    let live = rig.start(&config());
    rig.port.stop(live.detach(), &rig.env.local).unwrap();
    assert_eq!(rig.home(), BUFFERS - 32, "what was kept stays kept");
}

#[test]
fn a_port_that_is_let_go_resets_its_device_first() {
    let mut rig = Rig::new();
    let live = rig.start(&config());
    let Rig { model, memory, env, port } = rig;
    drop(port);
    assert_eq!(model.device().count(ixgbe_model::Count::Resets), 2);
    let Queues { rx, tx } = live.detach();
    rx.into_iter().for_each(|q| q.reclaim(&env.local));
    tx.into_iter().for_each(|q| q.reclaim(&env.local));
    assert_eq!(memory.depot() + env.local.cached(), BUFFERS);
    assert_eq!(model.device().rings().quarantined(), 0);
}

#[test]
fn queues_move_to_another_worker_under_load_and_keep_their_order() {
    let mut rig = Rig::new();
    let mut queues = Some(rig.port.start(&config()).unwrap());
    let moves = if cfg!(miri) { 3 } else { 10 };
    let (per_move, mut expected) = (if cfg!(miri) { 4u32 } else { 25 }, 0u32);
    for n in 0..moves * per_move {
        rig.arrive(frame(if n % 5 == 0 { 5000 } else { 60 }, n));
    }
    for _ in 0..moves {
        let total = moves * per_move;
        let (mine, memory, model) = (queues.take().unwrap(), Arc::clone(&rig.memory), rig.model.clone());
        let first = expected;
        let back = std::thread::spawn(move || {
            let env = worker(&memory);
            let mut live = Live::attach(mine, &env);
            let mut batch = mem::Batch::new(&env.local);
            let mut n = first;
            while n < (first + per_move).min(total) {
                model.step();
                live.rx[0].rx_burst(&mut batch);
                for p in batch.iter_mut() {
                    let len = if n.is_multiple_of(5) { 5000 } else { 60 };
                    assert!(bytes(&p) == frame(len, n), "frame {n}");
                    n += 1;
                }
                while !batch.is_empty() {
                    live.tx[0].tx_burst(&mut batch, 0);
                    model.step();
                    live.tx[0].reap();
                }
            }
            (n, live.detach())
        });
        let (n, q) = back.join().unwrap();
        (expected, queues) = (n, Some(q));
    }
    rig.model.settle(20);
    let sent = rig.sent();
    assert_eq!(sent.len() as u32, expected);
    assert!(sent.iter().zip(0..).all(|(f, n)| *f == frame(f.len(), n)), "in order all the way");
    let live = Live::attach(queues.unwrap(), &rig.env);
    rig.stop(live);
}

#[test]
fn the_driver_opens_what_its_keys_name() {
    let (memory, rings) = memory(BUFFERS);
    let model = Stepped::new(Parameters::default(), rings, Script::default()).unwrap();
    let bus = model.clone();
    let driver = IxgbeDriver::new(move |device: &str| match device {
        "0000:01:00.0" => Ok((bus.bus(), ID)),
        other => Err(PortError::Device { driver: "ixgbe", problem: format!("there is no {other}") }),
    });
    let open = |keys: &str| driver.open(&keys.parse().unwrap(), &open_env(&memory)).map(|p| p.info().mac);
    assert_eq!(driver.name(), "ixgbe");
    assert_eq!(open("device = \"0000:01:00.0\"\nrss = \"ports\"").unwrap(), Some(MAC));
    let refused = |keys| open(keys).unwrap_err().to_string();
    assert!(refused("").contains("ixgbe: device: is missing: as in device = "));
    assert!(refused("device = \"x\"").contains("there is no x"));
    assert!(refused("device = \"x\"\nrss = 1").contains("is not one of \"addresses\", \"ports\""));
    assert!(refused("device = \"x\"\nqueue = 1").contains("queue: is not known"));
}

#[test]
fn a_swallowed_frame_shows_in_the_device_counts() {
    let mut rig = Rig::new();
    let mut live = rig.start(&config());
    rig.device().swallow(Direction::Rx, 1);
    rig.device().swallow(Direction::Tx, 1);
    let mut batch = rig.batch();
    for n in 0..5 {
        rig.arrive(frame(60, n));
    }
    rig.model.settle(3);
    assert_eq!(live.rx[0].rx_burst(&mut batch), 4);
    assert_eq!(live.tx[0].tx_burst(&mut batch, 0), 4);
    rig.model.settle(3);
    live.tx[0].reap();
    let c = rig.port.device_counts();
    assert_eq!((c.rx_good, c.rx_delivered, c.rx_missed), (Some(5), Some(4), Some(0)), "one lost inside");
    assert_eq!((c.tx_sent, live.tx_counts().packets), (Some(3), 4), "one never left");
    rig.stop(live);
}

#[test]
fn a_device_that_is_gone_is_told_apart_from_one_that_is_slow() {
    struct Gone;
    impl hw::Registers for Gone {
        fn len(&self) -> usize {
            ixgbe_defs::BAR_BYTES
        }
        fn read32(&self, _: hw::Reg) -> u32 {
            u32::MAX
        }
        fn write32(&self, _: hw::Reg, _: u32) {}
    }
    struct NoBus;
    impl Bus for NoBus {
        fn bar(&self, _: u8) -> Result<hw::Bar, hw::HwError> {
            Ok(hw::Bar::software(Arc::new(Gone)))
        }
        fn dma(&self, asked: usize, _: Option<hw::Node>) -> Result<hw::DmaRegion, hw::HwError> {
            Err(hw::HwError::NoDma { asked, free: 0 })
        }
        fn map(&self, _: &Arc<hw::Arena>) -> Result<(), hw::HwError> {
            Ok(())
        }
        fn unmap(&self, _: &Arc<hw::Arena>) {}
        fn pause(&self) {}
    }
    let (memory, _rings) = memory(BUFFERS);
    let refused = Ixgbe::open(NoBus, ID, &open_env(&memory)).err().unwrap().to_string();
    assert!(refused.contains("registers read all ones"), "{refused}");
}
