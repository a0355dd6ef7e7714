//! A device that lies costs counters; one that stalls costs time. Neither costs a buffer, or touches what is not its own.

mod rig;

use ixgbe_model::{Lie, Lies, Mode, Parameters, Stall};
use meter::DropReason;
use rig::{Live, Rig, config, frame, free};

/// Forwards for `rounds`; returns packets that came in.
fn forward(rig: &Rig, live: &mut Live, rounds: u32) -> usize {
    let (mut batch, mut got) = (rig.batch(), 0);
    for n in 0..rounds {
        for i in 0..1 + n % 5 {
            rig.arrive(frame(60 + ((n * 7 + i) as usize * 613) % 6000, n));
        }
        rig.model.step();
        got += live.rx[0].rx_burst(&mut batch);
        for p in batch.iter_mut() {
            let total: usize = p.segments().map(<[u8]>::len).sum();
            assert_eq!(total, p.total_len(), "a packet is what it says");
            assert!((1..=9604).contains(&total));
        }
        live.tx[0].tx_burst(&mut batch, 0);
        let waiting = batch.iter_mut().map(|p| p.segments().count()).sum();
        rig.check_census(live, waiting);
        if batch.room() < 16 {
            free(&mut batch);
        }
        live.tx[0].reap();
    }
    free(&mut batch);
    got
}

#[test]
fn all_lies_together_cost_no_buffer_and_reach_nothing() {
    let (seeds, rounds) = if cfg!(miri) { (2, 12) } else { (40, 150) };
    let mut dropped = 0;
    for seed in 0..seeds {
        let params = Parameters {
            rx_write_back: 1 + seed as usize % 16,
            rx_fetch: 1 + seed as usize % 9,
            logged: true,
            ..Parameters::default()
        };
        let mut rig = Rig::with(params, rig::BUFFERS);
        rig.port.start_positions_at((seed as u32).wrapping_mul(0x1357_9bdf));
        let mut live = rig.start(&port::PortConfig { vlan_strip: seed % 2 == 0, ..config() });
        rig.device().set_mode(Mode::Lying(Lies::all(seed, 1 + seed as u32 % 4)));
        forward(&rig, &mut live, rounds);
        rig.device().set_mode(Mode::Normal);
        let got = forward(&rig, &mut live, rounds);
        assert!(got > 0, "an honest device is believed again, seed {seed}");
        dropped += live.rx_counts().drops.total();
        rig.stop(live);
    }
    assert!(dropped > 0, "some lies were seen through");
}

#[test]
fn lengths_that_cannot_be_are_counted_frame_by_frame() {
    for lie in [Lie::LongLength, Lie::NoLength, Lie::NoEnd] {
        let mut rig = Rig::new();
        let mut live = rig.start(&config());
        rig.device().set_mode(Mode::Lying(Lies::only(lie, 3, 1)));
        let mut batch = rig.batch();
        for n in 0..200 {
            rig.arrive(frame(60 + n as usize, n));
            rig.model.step();
            assert_eq!(live.rx[0].rx_burst(&mut batch), 0, "{lie:?}");
            rig.check_census(&live, 0);
        }
        let m = live.rx_counts();
        assert_eq!((m.drops.of(DropReason::BadLength), m.drops.total()), (200, 200), "{lie:?}");
        rig.device().set_mode(Mode::Normal);
        rig.arrive(frame(60, 7));
        rig.model.settle(4);
        assert_eq!(live.rx[0].rx_burst(&mut batch), 1, "the next true one comes in");
        free(&mut batch);
        rig.stop(live);
    }
}

#[test]
fn a_frame_without_an_end_is_one_drop_however_long() {
    let mut rig = Rig::new();
    let mut live = rig.start(&port::PortConfig { max_frame: 4000, ..config() });
    rig.device().set_mode(Mode::Lying(Lies::only(Lie::NoEnd, 3, 1)));
    let mut batch = rig.batch();
    // Two full buffers without an end, twice: four, of which a frame of 4000 bytes has two at most.
    rig.arrive(frame(4096, 1).split_off(96));
    rig.model.settle(4);
    assert_eq!(live.rx[0].rx_burst(&mut batch), 0);
    rig.check_census(&live, 0);
    assert_eq!(live.rx_counts().drops.total(), 1);
    rig.device().set_mode(Mode::Normal);
    rig.arrive(frame(60, 1));
    rig.arrive(frame(60, 2));
    rig.model.settle(4);
    let got = live.rx[0].rx_burst(&mut batch);
    assert!((1..=2).contains(&got), "{got}");
    free(&mut batch);
    rig.stop(live);
}

#[test]
fn reports_out_of_order_are_taken_in_order() {
    let mut rig = Rig::new();
    let mut live = rig.start(&config());
    rig.device().set_mode(Mode::Lying(Lies::only(Lie::Disorder, 3, 1)));
    let mut batch = rig.batch();
    for round in 0..20u32 {
        (0..8).for_each(|i| rig.arrive(frame(60, round * 8 + i)));
        rig.model.settle(4);
        assert_eq!(live.rx[0].rx_burst(&mut batch), 8);
        for (p, i) in batch.iter_mut().zip(0..) {
            assert_eq!(rig::bytes(&p), frame(60, round * 8 + i));
        }
        assert_eq!(live.tx[0].tx_burst(&mut batch, 0), 8);
        rig.model.settle(4);
        live.tx[0].reap();
        assert_eq!(rig.sent().len(), 8);
    }
    rig.stop(live);
}

#[test]
fn a_device_that_does_not_report_keeps_its_buffers_until_it_is_reset() {
    let mut rig = Rig::new();
    let mut live = rig.start(&config());
    rig.device().set_mode(Mode::Stalled(Stall { rx: true, tx: true, reset: false }));
    assert_eq!(forward(&rig, &mut live, 30), 0);
    assert_eq!(live.rx[0].posted(), 31);
    rig.stop(live);
}
