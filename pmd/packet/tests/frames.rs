//! Frames in and out, byte by byte.

mod rig;

use mem::{Ext, Flags};
use meter::DropReason;
use rig::bpf::Tagging;
use rig::peer::Peer;
use rig::{Bench, cable, config, frame, ip, isolated};

const LENGTHS: [usize; 8] = [22, 60, 61, 64, 127, 590, 1513, 1514];

fn tagged(mut f: Vec<u8>, tags: &[[u8; 4]]) -> Vec<u8> {
    for tag in tags.iter().rev() {
        f.splice(12..12, *tag);
    }
    f
}

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
        // Nor do those of the interface's own protocol stack.
        ip("addr add 10.1.0.1/24 dev va");
        rig::output("ping", "-c 1 -W 0.05 10.1.0.2");
        b.quiet();
        b.stop();
    });
}

#[test]
fn tags_stay_in_the_bytes_both_ways() {
    isolated(|| {
        cable("va", "vb");
        let (peer, mut b) = (Peer::new("vb"), Bench::new("interface = \"va\""));
        let all = [
            tagged(frame(60, 1), &[[0x81, 0, 0x20, 5]]),
            tagged(frame(61, 2), &[[0x88, 0xa8, 0, 7], [0x81, 0, 0, 8]]),
            tagged(frame(1514, 3), &[[0x81, 0, 0x0f, 0xff]]),
            tagged(frame(62, 4), &[[0x81, 0, 0, 0]]),
        ];
        all.iter().for_each(|f| peer.send(f));
        assert_eq!(b.receive(4), all);
        all.iter().for_each(|f| b.put(f));
        assert_eq!(b.send(), 4);
        all.iter().for_each(|f| assert_eq!(&peer.receive(), f));
        // One that a device took out, and that is to be put in.
        b.put(&frame(60, 5));
        let mut p = b.batch.pkt(0).unwrap();
        p.set_flags(Flags::VLAN);
        p.set_ext(Ext::tagged(0x6123));
        assert_eq!(b.send(), 1);
        assert_eq!(peer.receive(), tagged(frame(60, 5), &[[0x81, 0, 0x61, 0x23]]));
        b.stop();
    });
}

#[test]
fn a_tag_that_the_kernel_puts_in_is_there_and_one_of_ours_is_taken_out() {
    isolated(|| {
        cable("va", "vb");
        let _tagging = Tagging::new("vb", 0x2007);
        let (peer, mut b) = (Peer::new("vb"), Bench::new("interface = \"va\""));
        peer.send(&frame(60, 1));
        let want = tagged(frame(60, 1), &[[0x81, 0, 0x20, 7]]);
        assert_eq!(b.receive(1), std::slice::from_ref(&want));
        b.put(&want);
        assert_eq!(b.send(), 1);
        // The peer sees it before the kernel takes the tag off.
        assert_eq!(peer.receive(), want);
        b.stop();
    });
}

#[test]
fn an_unfinished_checksum_stays_where_it_is_behind_a_tag() {
    isolated(|| {
        cable("va", "vb");
        let mut a = Bench::new("interface = \"va\"");
        let mut b = a.beside("interface = \"vb\"", &config(1));
        for tags in [&[][..], &[[0x81, 0, 0, 5]], &[[0x88, 0xa8, 0, 6], [0x81, 0, 0, 5]]] {
            let mut plain = Vec::new();
            etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
                .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
                .udp(1, 2)
                .write(&mut plain, &[7; 40])
                .unwrap();
            let udp = tagged(plain, tags);
            b.put(&udp);
            let start = 34 + 4 * tags.len() as u16;
            let mut p = b.batch.pkt(0).unwrap();
            p.set_flags(Flags::TX_L4);
            let mut ext = Ext::default();
            (ext.csum_start, ext.csum_offset) = (start, 6);
            p.set_ext(ext);
            assert_eq!(b.send(), 1);
            rig::wait_for("the frame", || a.rx[0].rx_burst(&mut a.batch) == 1);
            let p = a.batch.pkt(0).unwrap();
            let e = p.ext();
            assert_eq!((p.flags(), p.bytes()), (Flags::TX_L4, &udp[..]));
            assert_eq!((e.csum_start, e.csum_offset, e.mss), (start, 6, 0));
            assert_eq!((u16::from(e.l2_len) + 20, e.l3_len, e.l4_len), (start, 20, 8));
            a.batch.free_sent();
        }
        // They share their memory, so that it is whole only when both have ended.
        drop(b);
        a.stop();
    });
}

#[test]
fn frames_of_several_buffers_are_chains_both_ways() {
    isolated(|| {
        cable("va", "vb");
        ip("link set va mtu 9000");
        ip("link set vb mtu 9000");
        let peer = Peer::new("vb");
        // Buffers so small that even short frames take several.
        let mut b = Bench::with(rig::memory_of(8192, 256), "interface = \"va\"", &config(1));
        let room = usize::from(b.memory.layout().room());
        let lengths = [60, room - 4, room, room + 1, 2 * room, 1514, 2054, 2055, 9014];
        let all: Vec<_> = (0..).zip(lengths).map(|(i, n)| frame(n, i)).collect();
        let with_tags: Vec<_> = all.iter().map(|f| tagged(f.clone(), &[[0x81, 0, 0, 9]])).collect();
        for f in all.iter().chain(&with_tags) {
            peer.send(f);
        }
        let got = b.receive(18);
        assert!(got[..9] == all && got[9..] == with_tags, "as sent");
        for f in &all {
            b.put(f);
        }
        // Without and with a tag to be put in.
        assert_eq!(b.send(), 9);
        all.iter().for_each(|f| assert_eq!(&peer.receive(), f));
        for f in &all {
            b.put(f);
        }
        for mut p in b.batch.iter_mut() {
            let (flags, mut ext) = (p.flags(), p.ext());
            ext.vlan = 9;
            p.set_ext(ext);
            p.set_flags(flags.with(Flags::VLAN));
        }
        assert_eq!(b.send(), 9);
        with_tags.iter().for_each(|f| assert_eq!(&peer.receive(), f));
        b.stop();
    });
}

#[test]
fn what_cannot_be_sent_is_dropped_and_its_neighbours_are_not() {
    isolated(|| {
        cable("va", "vb");
        let (peer, mut b) = (Peer::new("vb"), Bench::new("interface = \"va\""));
        let good: Vec<_> = (0..4).map(|i| frame(100, i)).collect();
        b.put(&good[0]);
        b.put(&frame(1519, 9));
        b.put(&good[1]);
        b.put(&good[2]);
        b.batch.pkt(3).unwrap().resize(13);
        b.put(&frame(200, 9));
        b.batch.pkt(4).unwrap().set_flags(Flags::TX_L3);
        b.put(&good[3]);
        // Three go, three are refused: frame 2 has become one of them.
        assert_eq!((b.send(), b.batch.len()), (3, 0));
        for i in [0, 1, 3] {
            assert_eq!(peer.receive(), good[i]);
        }
        peer.quiet();
        let m = b.counts_tx();
        let of = |r| m.drops.of(r);
        assert_eq!(
            (of(DropReason::TooLong), of(DropReason::TooShort), of(DropReason::UnsupportedOffload)),
            (1, 1, 1)
        );
        assert_eq!((m.packets, m.bytes, m.full), (3, 300, 0));
        // 1518 bytes are a whole frame with a tag.
        b.put(&tagged(frame(1514, 1), &[[0x81, 0, 0, 1]]));
        assert_eq!(b.send(), 1);
        assert_eq!(peer.receive().len(), 1518);
        b.stop();
    });
}

#[test]
fn a_wish_that_the_kernel_refuses_costs_that_packet_only() {
    isolated(|| {
        cable("va", "vb");
        let (peer, mut b) = (Peer::new("vb"), Bench::new("interface = \"va\""));
        for i in 0..5 {
            b.put(&frame(100, i));
        }
        // A sum that begins at the frame's last bytes but two and is put behind them: inside, but not for every kernel.
        for i in [1, 3] {
            let mut p = b.batch.pkt(i).unwrap();
            p.set_flags(Flags::TX_L4.with(Flags::TSO));
            let mut ext = Ext::default();
            (ext.csum_start, ext.csum_offset, ext.mss) = (34, 16, 1000);
            p.set_ext(ext);
        }
        assert_eq!(b.send(), 3);
        for i in [0, 2, 4] {
            assert_eq!(peer.receive(), frame(100, i));
        }
        assert_eq!(b.counts_tx().drops.of(DropReason::UnsupportedOffload), 2);
        b.stop();
    });
}

#[test]
fn what_nobody_reads_is_dropped_by_the_kernel_and_counted() {
    isolated(|| {
        cable("va", "vb");
        let (peer, mut b) = (Peer::new("vb"), Bench::new("interface = \"va\"\nblock = \"4K\"\nblocks = 4"));
        const SENT: u64 = 500;
        (0..SENT).for_each(|i| peer.send(&frame(1000, i)));
        let device = b.port.device_counts();
        let (delivered, missed) = (device.rx_delivered.unwrap(), device.rx_missed.unwrap());
        assert_eq!((device.rx_good, delivered + missed), (Some(SENT), SENT));
        assert!(missed > 400, "{device:?}");
        let got = b.receive(delivered as usize);
        assert_eq!(got, (0..delivered).map(|i| frame(1000, i)).collect::<Vec<_>>(), "the first ones");
        // It goes on once there is room.
        peer.send(&frame(60, 1));
        assert_eq!(b.receive(1), [frame(60, 1)]);
        let (device, rx) = b.stop();
        assert_eq!((device.rx_good, rx.packets, rx.drops.total()), (Some(SENT + 1), delivered + 1, 0));
    });
}

#[test]
fn a_frame_larger_than_a_block_is_dropped_and_never_cut() {
    isolated(|| {
        cable("va", "vb");
        let (peer, mut b) = (Peer::new("vb"), Bench::new("interface = \"va\"\nblock = \"4K\"\nblocks = 8"));
        // What a block must hold was looked at before the MTU was raised.
        ip("link set va mtu 9000");
        ip("link set vb mtu 9000");
        for (i, len) in [60, 5000, 61, 9000, 62].into_iter().enumerate() {
            peer.send(&frame(len, i as u64));
        }
        assert_eq!(b.receive(3), [frame(60, 0), frame(61, 2), frame(62, 4)]);
        let (device, rx) = b.stop();
        assert_eq!(rx.drops.of(DropReason::TooLong), 2);
        assert_eq!(device.rx_delivered, Some(5));
    });
}

#[test]
fn a_pool_that_is_empty_leaves_frames_where_they_are() {
    isolated(|| {
        cable("va", "vb");
        let peer = Peer::new("vb");
        let mut b = Bench::with(rig::memory_of(64, 2048), "interface = \"va\"", &config(1));
        let held: Vec<_> = b.env.local.take_bulk(b.env.pool().unwrap(), 62).collect();
        (0..10).for_each(|i| peer.send(&frame(60, i)));
        rig::wait_for("the first frames", || {
            b.rx[0].rx_burst(&mut b.batch);
            b.batch.len() == 2
        });
        assert_eq!(b.rx[0].rx_burst(&mut b.batch), 0, "no buffers");
        b.env.local.put_bulk(held);
        b.batch.free_sent();
        assert_eq!(b.receive(8), (2..10).map(|i| frame(60, i)).collect::<Vec<_>>(), "none was lost");
        // At the end there is no later for them: a drop with its reason.
        let held: Vec<_> = b.env.local.take_bulk(b.env.pool().unwrap(), 64).collect();
        (0..3).for_each(|i| peer.send(&frame(60, i)));
        b.port.rx_off().unwrap();
        assert_eq!(b.poll(), Vec::<Vec<u8>>::new());
        b.env.local.put_bulk(held);
        let (_, rx) = b.stop();
        assert_eq!(rx.drops.of(DropReason::NoBuffer), 3);
    });
}

#[test]
fn only_own_frames_are_received_when_not_promiscuous() {
    isolated(|| {
        cable("va", "vb");
        ip("link set va address 02:00:00:00:00:01");
        let peer = Peer::new("vb");
        let mut b = Bench::new("interface = \"va\"\npromiscuous = false");
        assert_eq!(rig::promiscuity("va"), 0);
        let (mine, mut other, mut all) = (frame(60, 1), frame(60, 2), frame(60, 3));
        other[5] = 9;
        all[..6].fill(0xff);
        let send = || [&other, &mine, &all].map(|f| peer.send(f));
        send();
        assert_eq!(b.receive(2), [mine.clone(), all.clone()]);
        b.port.set_promiscuous(true).unwrap();
        assert_eq!(rig::promiscuity("va"), 1);
        send();
        assert_eq!(b.receive(3), [other.clone(), mine.clone(), all.clone()]);
        b.port.set_promiscuous(false).unwrap();
        assert_eq!(rig::promiscuity("va"), 0);
        send();
        assert_eq!(b.receive(2), [mine, all]);
        let (device, _) = b.stop();
        assert_eq!(device.rx_good, Some(7), "what the filter keeps out is not counted");
    });
}
