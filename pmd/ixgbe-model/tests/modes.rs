//! Lies and stalls: what they look like from the driver's side of the ring.

mod rig;

use ixgbe_defs::{RxDesc, rx_status};
use rig::{DESCRIPTORS, Rig, frame, parameters, queue};
use ringwright_ixgbe_model::{Count, Lie, Lies, Mode, Stall};

fn lying(lie: Lie) -> Rig {
    let rig = Rig::new(parameters());
    rig.model.device().set_mode(Mode::Lying(Lies::only(lie, 11, 1)));
    rig
}

/// Offers one frame of 100 bytes to a device with 8 buffers posted; the descriptors that are then done.
fn one_frame(rig: &mut Rig) -> Vec<RxDesc> {
    rig.post(8);
    rig.model.wire(|w| w.push(frame(1, 100)));
    rig.model.settle(4);
    (0..8).map_while(|p| rig.rx.poll(p)).collect()
}

#[test]
fn lengths_lie() {
    let d = one_frame(&mut lying(Lie::LongLength));
    assert!(d.len() == 1 && d[0].len() > 2048, "{d:?}");
    let d = one_frame(&mut lying(Lie::NoLength));
    assert!(d.len() == 1 && d[0].is_empty());
    let d = one_frame(&mut lying(Lie::WrongLength));
    assert!(d.len() == 1 && d[0].len() != 100 && d[0].len() <= 2048);
}

#[test]
fn the_end_may_never_come_and_status_may_be_made_up() {
    let d = one_frame(&mut lying(Lie::NoEnd));
    assert_eq!((d.len(), d[0].status() & rx_status::EOP), (1, 0));
    let d = one_frame(&mut lying(Lie::Garbage));
    assert_eq!(d[0].status() & (rx_status::DD | rx_status::EOP), rx_status::DD | rx_status::EOP);
    assert!(d[0].status() & !3 != 0 && d[0].errors() != 0 && d[0].len() == 100);
}

#[test]
fn a_spurious_completion_comes_before_the_frame_and_uses_up_its_buffer() {
    let mut rig = lying(Lie::Spurious);
    let d = one_frame(&mut rig);
    assert_eq!(d.len(), 2);
    assert_eq!(rig.received(1).expect("done").1, frame(1, 100));
    assert_eq!(rig.read(rig.buffer(0), 100), [0; 100], "the buffer was left alone");
}

#[test]
fn a_descriptor_that_was_not_posted_is_done_and_then_left_alone() {
    let mut rig = lying(Lie::NotPosted);
    assert_eq!(one_frame(&mut rig).len(), 1);
    assert!(rig.rx.poll(8).is_some(), "one past the tail");
    // The driver posts it without looking: what it stores takes the lie away, and the device uses it.
    rig.model.device().set_mode(Mode::Normal);
    rig.post(1);
    rig.model.wire(|w| (0..8).for_each(|n| w.push(frame(n, 60))));
    rig.model.settle(4);
    assert_eq!(rig.received(8).expect("done").1, frame(7, 60));
}

#[test]
fn a_posted_descriptor_that_carries_a_lie_is_passed_over() {
    let mut rig = lying(Lie::NotPosted);
    assert_eq!(one_frame(&mut rig).len(), 1);
    rig.model.device().set_mode(Mode::Normal);
    // As if the lie had come between the driver's store and its doorbell.
    rig.rx.store(8, RxDesc::post(rig.buffer(8), u64::from(rx_status::DD)));
    rig.rx_tail = 9;
    rig.post(1);
    rig.model.wire(|w| (1..=8).for_each(|n| w.push(frame(n, 60))));
    rig.model.settle(4);
    assert_eq!(rig.read(rig.buffer(8), 60), [0; 60], "its buffer may be the driver's again");
    assert_eq!(rig.received(9).expect("done").1, frame(8, 60));
}

#[test]
fn transmit_lies_about_what_was_sent_and_who_asked() {
    let mut rig = lying(Lie::Unsent);
    rig.put_frame(&frame(1, 60));
    rig.ring_tx();
    rig.model.settle(4);
    assert!(rig.tx.poll(0).is_some() && rig.model.wire(|w| w.take_sent()).is_empty());
    assert_eq!(rig.model.device().count(Count::TxGood), 0);
    let mut rig = lying(Lie::Unasked);
    let at = rig.packets.iova().to_bits() + rig::TX_BUFFERS;
    rig.write(at, &frame(1, 60));
    rig.put(rig::data(at, 60, rig::WHOLE & !ixgbe_defs::tx_cmd::RS));
    rig.ring_tx();
    rig.model.settle(4);
    assert!(rig.tx.poll(0).is_some());
    assert_eq!(rig.model.wire(|w| w.take_sent()), [frame(1, 60)]);
}

#[test]
fn a_stalled_side_works_but_does_not_report_until_it_recovers() {
    let mut rig = Rig::new(parameters());
    let stall = Stall { rx: true, tx: true, reset: false };
    rig.model.device().set_mode(Mode::Stalled(stall));
    rig.post(DESCRIPTORS - 1);
    (0..5).for_each(|n| rig.put_frame(&frame(n, 60)));
    rig.ring_tx();
    rig.model.wire(|w| (0..4).for_each(|n| w.push(frame(n, 80))));
    rig.model.settle(9);
    assert!(rig.rx.poll(0).is_none() && rig.tx.poll(0).is_none());
    assert_eq!(rig.model.wire(|w| w.take_sent()).len(), 5);
    rig.model.device().set_mode(Mode::Normal);
    rig.model.wire(|w| w.push(frame(4, 80)));
    rig.model.settle(9);
    assert!((0..5).all(|p| rig.received(p).is_some_and(|r| r.1 == frame(p as u8, 80))));
    assert!((0..5).all(|p| rig.tx.poll(p).is_some()));
}

#[test]
fn any_mixture_of_lies_is_told_without_a_fault_and_is_the_same_every_time() {
    let told = |seed| {
        let mut rig = Rig::new(parameters());
        rig.model.device().set_mode(Mode::Lying(Lies::all(seed, 3)));
        let mut seen = Vec::new();
        let rounds = if cfg!(miri) { 20u32 } else { 300 };
        let (mut rx, mut tx) = (0, 0);
        for n in 0..rounds {
            while rig.rx_tail - rx < DESCRIPTORS - 1 {
                rig.post(1);
            }
            if rig.tx_tail - tx < DESCRIPTORS - 1 {
                rig.put_frame(&frame(n as u8, 60 + n as usize));
            }
            rig.ring_tx();
            rig.model.wire(|w| w.push(frame(n as u8, 60)));
            rig.model.step();
            while let Some(d) = rig.rx.poll(rx).filter(|_| rx != rig.rx_tail) {
                seen.push((d.status(), d.len()));
                rx += 1;
            }
            while tx != rig.tx_tail && rig.tx.poll(tx).is_some() {
                tx += 1;
            }
        }
        let device = rig.model.device();
        assert!(device.faults().is_empty(), "{:?}", device.faults());
        assert!(device.count(Count::Lies) > u64::from(rounds) / 6);
        assert!(device.tally(ringwright_ixgbe_model::Direction::Rx, queue(0)) != Default::default());
        seen
    };
    assert_eq!(told(5), told(5));
    assert_ne!(told(5), told(6));
}
