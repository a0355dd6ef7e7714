//! What is done to frames on their way is what is counted, frame by frame.

mod rig;

use std::collections::BTreeMap;

use rig::{Fault, Loop};
use ringwright_gen::{Counts, Profile, prefix};

const COUNT: u64 = if cfg!(miri) { 300 } else { 10_000 };

fn profile(sizes: &str, flows: u32) -> Profile {
    Profile { flows, sizes: sizes.parse().unwrap(), count: Some(COUNT), ..Profile::default() }
}

/// Runs `profile` through `plan`.
fn counted(profile: Profile, plan: impl FnMut(u64) -> Fault + Send + 'static) -> Counts {
    let way = Loop::new(profile, plan);
    let handle = way.handle.clone();
    way.run(|ends| ends.settle());
    handle.counts()
}

#[test]
fn without_faults_each_frame_arrives_once_unchanged_and_in_order() {
    let v6 = ringwright_gen::Addresses::new(Some(prefix("2001:2::/64").unwrap()), None).unwrap();
    for profile in [
        profile("64", 1),
        profile("imix", 64),
        profile("65", 1000),
        Profile { addresses: v6, ..profile("84:2,1518:1", 7) },
        Profile { burst: 1, ..profile("1518", 3) },
    ] {
        let c = counted(profile, |_| Fault::Pass);
        assert_eq!((c.made, c.arrived, c.ordered, c.missing()), (COUNT, COUNT, COUNT, 0));
        assert_eq!(
            (c.reordered, c.repeated, c.changed, c.foreign, c.too_late, c.skipped),
            (0, 0, 0, 0, 0, 0)
        );
        assert_eq!((c.extent_max, c.extent_mean), (None, None), "unknown, not zero");
        let latency = c.latency.expect("frames arrived");
        assert!(latency.min <= latency.p50 && latency.p50 <= latency.p99 && latency.p999 <= latency.max);
        assert!(c.made_rate.is_some() && c.arrived_rate.is_some());
    }
}

#[test]
fn lost_frames_are_missing_and_nothing_else() {
    let c = counted(profile("64", 5), |n| if n % 7 == 3 { Fault::Lose } else { Fault::Pass });
    let lost = (0..COUNT).filter(|n| n % 7 == 3).count() as u64;
    assert_eq!((c.made, c.missing(), c.ordered), (COUNT, lost, COUNT - lost));
    assert_eq!((c.reordered, c.repeated, c.changed), (0, 0, 0));
}

#[test]
fn all_lost_is_all_missing() {
    let c = counted(profile("64", 5), |_| Fault::Lose);
    assert_eq!((c.made, c.missing(), c.arrived, c.latency), (COUNT, COUNT, 0, None));
}

#[test]
fn repeated_frames_are_counted_once_more() {
    let c = counted(profile("imix", 5), |n| if n % 10 == 0 { Fault::Twice } else { Fault::Pass });
    let twice = COUNT.div_ceil(10);
    assert_eq!((c.made, c.missing(), c.ordered, c.repeated), (COUNT, 0, COUNT, twice));
    assert_eq!(c.arrived, COUNT + twice);
}

#[test]
fn late_frames_are_reordered_by_as_much_as_they_were_late() {
    // One flow, so that the frames that pass a late one are all of its own.
    let plan = |n: u64| if n.is_multiple_of(100) && n + 100 < COUNT { Fault::Late(9) } else { Fault::Pass };
    let c = counted(profile("64", 1), plan);
    let late = COUNT / 100 - 1;
    assert_eq!((c.missing(), c.reordered, c.ordered), (0, late, COUNT - late));
    assert_eq!((c.extent_max, c.extent_mean), (Some(9), Some(9.0)));
}

#[test]
fn order_is_that_of_a_flow() {
    // Ten flows take turns: nine others pass, and none of the same flow.
    let c = counted(profile("64", 10), |n| if n % 100 == 0 { Fault::Late(9) } else { Fault::Pass });
    assert_eq!((c.ordered, c.reordered), (COUNT, 0));
    let c = counted(profile("64", 10), |n| if n % 100 == 0 { Fault::Late(11) } else { Fault::Pass });
    assert_eq!((c.ordered, c.reordered, c.extent_max), (COUNT - COUNT / 100, COUNT / 100, Some(1)));
}

#[test]
fn changed_frames_are_neither_missing_nor_right() {
    for at in [15, 20, 30, 40, 43, 50, 59] {
        let c = counted(profile("64", 3), move |n| if n % 4 == 0 { Fault::Change(at) } else { Fault::Pass });
        let changed = COUNT.div_ceil(4);
        assert_eq!((c.missing(), c.changed, c.ordered), (0, changed, COUNT - changed), "byte {at}");
        assert_eq!((c.foreign, c.repeated, c.reordered), (0, 0, 0));
    }
    let c = counted(profile("1518", 3), |n| if n % 4 == 0 { Fault::Change(1400) } else { Fault::Pass });
    assert_eq!((c.missing(), c.changed), (0, COUNT.div_ceil(4)));
}

#[test]
fn frames_of_others_are_foreign() {
    let c = counted(profile("64", 3), |n| if n % 5 == 0 { Fault::Foreign } else { Fault::Pass });
    assert_eq!((c.missing(), c.ordered, c.arrived, c.foreign), (0, COUNT, COUNT, COUNT.div_ceil(5)));
}

#[test]
fn frames_that_come_in_pieces_are_put_together() {
    let split = |n| match n % 4 {
        0 => Fault::Split(1),
        1 => Fault::Split(50),
        2 => Fault::Split(1000),
        _ => Fault::Pass,
    };
    let c = counted(profile("1518", 3), split);
    assert_eq!((c.missing(), c.ordered, c.changed), (0, COUNT, 0));
}

#[test]
fn what_comes_later_than_the_window_is_said_to_be_too_late_to_tell() {
    // 70,000 flows would be too many; with 65,536 a window is 256 frames, with 20 it is 65,536.
    let count = 40 * 1000;
    if cfg!(miri) {
        return;
    }
    let many = Profile { count: Some(count), ..profile("64", 16_384) };
    let plan = |n: u64| if n == 5 { Fault::Late(10_000) } else { Fault::Pass };
    let c = counted(many, plan);
    assert_eq!((c.missing(), c.reordered, c.too_late), (0, 0, 0), "no other frame of its flow had passed");
    let one = Profile { count: Some(70_000), ..profile("64", 1) };
    let c = counted(one, |n| if n == 5 { Fault::Late(66_000) } else { Fault::Pass });
    assert_eq!((c.ordered, c.too_late, c.missing()), (69_999, 1, 1));
    assert_eq!(c.arrived, 70_000, "it arrived, but may have arrived before");
}

#[test]
fn all_faults_together_are_told_apart() {
    let mut random = 0x1234_5678_9abc_def1_u64;
    let mut tally = BTreeMap::new();
    let plan: Vec<Fault> = (0..COUNT)
        .map(|n| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // A flow's last frames pass, so that what is late has others to be late for.
            let fault = match random % 40 {
                _ if n + 200 > COUNT => Fault::Pass,
                0 | 1 => Fault::Lose,
                2 => Fault::Twice,
                3 => Fault::Change(55),
                4 => Fault::Foreign,
                5 => Fault::Late(40),
                _ => Fault::Pass,
            };
            *tally.entry(format!("{fault:?}")).or_insert(0u64) += 1;
            fault
        })
        .collect();
    let of = |name: &str| tally.get(name).copied().unwrap_or(0);
    let (lost, twice, changed) = (of("Lose"), of("Twice"), of("Change(55)"));
    let c = counted(profile("64", 4), move |n| plan[n as usize]);
    assert_eq!((c.missing(), c.repeated, c.changed, c.foreign), (lost, twice, changed, of("Foreign")));
    assert_eq!(c.reordered, of("Late(40)"));
    assert_eq!(c.ordered + c.reordered + c.changed + lost, COUNT);
    assert_eq!((c.arrived, c.too_late), (COUNT - lost + twice, 0));
}
