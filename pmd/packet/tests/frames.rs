//! Frames in and out, byte by byte.
// UNSAFETY: none here; the rig has some.
#![allow(unsafe_code)]

mod rig;

use meter::DropReason;
use rig::peer::Peer;
use rig::{Bench, cable, config, frame, ip, isolated};

const LENGTHS: [usize; 8] = [22, 60, 61, 64, 127, 590, 1513, 1514];

#[test]
fn what_comes_in_is_what_was_sent_in_order() {
    isolated(|| {
        cable("va", "vb");
        let (peer, mut b) = (Peer::new("vb"), Bench::new("interface = \"va\""));
        let sent: Vec<_> = (0..400).map(|i| frame(LENGTHS[i as usize % 8], i)).collect();
        sent.iter().for_each(|f| peer.send(f));
        assert_eq!(b.receive(sent.len()), sent);
        let (device, rx) = b.stop();
        assert_eq!((device.rx_good, device.rx_missed), (Some(400), Some(0)));
        assert_eq!(rx.bytes, sent.iter().map(|f| f.len() as u64).sum::<u64>());
    });
}

#[test]
fn what_is_sent_goes_out_in_order_and_does_not_come_back() {
    isolated(|| {
        cable("va", "vb");
        let (peer, mut b) = (Peer::new("vb"), Bench::new("interface = \"va\""));
        let sent: Vec<_> = (0..400).map(|i| frame(LENGTHS[i as usize % 8], i)).collect();
        for burst in sent.chunks(50) {
            burst.iter().for_each(|f| b.put(f));
            assert_eq!((b.send(), b.batch.len()), (50, 0));
        }
        for f in &sent {
            assert_eq!(&peer.receive(), f);
        }
        peer.quiet();
        b.quiet();
        let m = b.counts_tx();
        assert_eq!((m.packets, m.bytes), (400, sent.iter().map(|f| f.len() as u64).sum()));
        assert_eq!(m.doorbells, 8, "one call for a burst");
        b.stop();
    });
}

#[test]
fn without_bypass_own_frames_do_not_come_back_either() {
    isolated(|| {
        cable("va", "vb");
        let peer = Peer::new("vb");
        let mut b = Bench::with(rig::memory(), "interface = \"va\"\nqdisc_bypass = false", &config(2));
        b.put(&frame(60, 1));
        assert_eq!(b.send(), 1);
        assert_eq!(peer.receive(), frame(60, 1));
        b.quiet();
        ip("addr add 10.1.0.1/24 dev va");
        rig::output("ping", "-c 1 -W 0.05 10.1.0.2");
        b.quiet();
        b.stop();
    });
}
