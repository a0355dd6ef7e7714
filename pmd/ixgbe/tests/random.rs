//! Random operations of driver and device against a queue of what should come out.

mod rig;

use std::collections::VecDeque;

use ixgbe_model::Parameters;
use port::{OpenPort, PortConfig};
use proptest::prelude::*;
use rig::{Live, Rig, bytes, config, frame, free};

#[derive(Clone, Debug)]
enum Op {
    /// A frame of so many bytes comes in.
    Arrive(usize),
    /// The device works.
    Step(u8),
    /// The driver takes a burst and sends it back.
    Echo,
    /// The driver takes a burst and drops it.
    Take,
    Reap,
    Flush(bool),
    /// The driver sends a frame of its own.
    Send(usize),
    /// Both queues leave the worker and come back.
    Move,
    /// The cable is out for so many steps.
    Unplug(u8),
    /// Stop and start: what is inside is lost.
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    let size = || prop_oneof![3 => 60usize..130, 2 => 1500usize..2200, 1 => 4000usize..9600];
    prop_oneof![
        8 => size().prop_map(Op::Arrive),
        6 => (1u8..4).prop_map(Op::Step),
        5 => Just(Op::Echo),
        2 => Just(Op::Take),
        3 => Just(Op::Reap),
        2 => any::<bool>().prop_map(Op::Flush),
        4 => size().prop_map(Op::Send),
        1 => Just(Op::Move),
        1 => (1u8..4).prop_map(Op::Unplug),
        1 => Just(Op::Restart),
    ]
}

/// What should happen.
#[derive(Default)]
struct Reference {
    seed: u32,
    now: u64,
    /// On the wire or in the device, towards the driver.
    coming: VecDeque<Vec<u8>>,
    /// Given to the driver for sending.
    going: VecDeque<Vec<u8>>,
}

struct World {
    rig: Rig,
    live: Option<Live>,
    batch: mem::Batch,
    cfg: PortConfig,
    model: Reference,
}

impl World {
    fn new(params: Parameters, start: u32, cfg: PortConfig) -> Self {
        let mut rig = Rig::with(params, rig::BUFFERS);
        rig.port.start_positions_at(start);
        let live = Some(rig.start(&cfg));
        let batch = rig.batch();
        Self { rig, live, batch, cfg, model: Reference::default() }
    }

    fn frame(&mut self, len: usize) -> Vec<u8> {
        self.model.seed += 1;
        frame(len, self.model.seed)
    }

    fn live(&mut self) -> &mut Live {
        self.live.as_mut().unwrap()
    }

    fn take(&mut self) {
        let Self { live, batch, model, .. } = self;
        let had = batch.len();
        live.as_mut().unwrap().rx[0].rx_burst(batch);
        for p in batch.iter_mut().skip(had) {
            let expected = model.coming.pop_front().expect("a frame that came in");
            assert!(bytes(&p) == expected, "frame of {} bytes", expected.len());
        }
    }

    fn send(&mut self) {
        let now = self.model.now;
        let frames: Vec<_> = self.batch.iter_mut().map(|p| bytes(&p)).collect();
        let Self { live, batch, .. } = self;
        let n = live.as_mut().unwrap().tx[0].tx_burst(batch, now);
        self.model.going.extend(frames.into_iter().take(n));
        free(batch);
    }

    fn check_sent(&mut self) {
        for f in self.rig.sent() {
            let expected = self.model.going.pop_front().expect("a frame that was given");
            assert!(f == expected, "frame of {} bytes", expected.len());
        }
    }

    fn restart(&mut self) {
        let live = self.live.take().unwrap();
        self.rig.stop(live);
        self.check_sent();
        self.rig.model.wire(|w| *w = ixgbe_model::Script::default());
        self.model.coming.clear();
        self.model.going.clear();
        let cfg = self.cfg;
        self.live = Some(self.rig.start(&cfg));
    }

    fn run(&mut self, op: &Op) {
        self.model.now += 10;
        let now = self.model.now;
        match *op {
            Op::Arrive(len) => {
                let f = self.frame(len);
                self.rig.arrive(f.clone());
                self.model.coming.push_back(f);
            }
            Op::Step(n) => {
                for _ in 0..n {
                    self.rig.model.step();
                }
            }
            Op::Echo => {
                self.take();
                self.send();
            }
            Op::Take => {
                self.take();
                free(&mut self.batch);
            }
            Op::Reap => {
                self.live().tx[0].reap();
            }
            Op::Flush(idle) => self.live().tx[0].flush(now, idle),
            Op::Send(len) => {
                let f = self.frame(len);
                self.rig.write(&mut self.batch, &f);
                self.send();
            }
            Op::Move => {
                let live = self.live.take().unwrap();
                self.live = Some(Live::attach(live.detach(), &self.rig.env));
            }
            Op::Unplug(n) => {
                self.rig.device().set_link(false);
                (0..n).for_each(|_| assert_eq!(self.rig.model.step(), 0));
                self.rig.device().set_link(true);
            }
            Op::Restart => self.restart(),
        }
        self.check_sent();
        let live = self.live.as_ref().unwrap();
        self.rig.check_census(live, 0);
    }

    /// Everything that is under way arrives in the end.
    fn finish(mut self) {
        for _ in 0..200 {
            self.live().tx[0].flush(u64::MAX, true);
            self.rig.model.step();
            self.take();
            free(&mut self.batch);
            self.live().tx[0].reap();
        }
        self.check_sent();
        assert_eq!((self.model.coming.len(), self.model.going.len()), (0, 0), "none was lost");
        assert_eq!(self.live().tx[0].inflight(), 0);
        assert_eq!(self.rig.device().malformed(), []);
        let c = self.rig.port.device_counts();
        assert_eq!((c.rx_missed, c.rx_errors), (Some(0), Some(0)));
        let live = self.live.take().unwrap();
        self.rig.stop(live);
    }
}

fn params() -> impl Strategy<Value = Parameters> {
    (1usize..40, 1usize..20, 1usize..40, 1usize..70).prop_map(|(rx_fetch, rx_write_back, tx_fetch, burst)| {
        Parameters { rx_fetch, rx_write_back, tx_fetch, burst, logged: true, ..Parameters::default() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 48 },
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(0x82599),
        ..ProptestConfig::default()
    })]
    #[test]
    fn nothing_is_lost_changed_or_reordered(
        params in params(),
        start in prop_oneof![Just(0u32), u32::MAX - 200..=u32::MAX],
        (rx, tx) in (4u32..7, 4u32..7),
        packets in 1u16..40,
        delay in prop_oneof![Just(0u64), Just(35), Just(u64::MAX)],
        prefetch in 0u8..9,
        ops in prop::collection::vec(op(), 1..if cfg!(miri) { 25 } else { 250 }),
    ) {
        let cfg = PortConfig {
            rx_ring: (1 << rx).try_into().unwrap(),
            tx_ring: (1 << tx).try_into().unwrap(),
            doorbell_packets: packets,
            doorbell_delay: delay,
            prefetch,
            ..config()
        };
        let mut world = World::new(params, start, cfg);
        ops.iter().for_each(|o| world.run(o));
        world.finish();
    }
}
