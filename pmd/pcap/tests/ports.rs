//! Ports: pace, passes, full rings, full disks, pipes, offloads, accounts.

mod rig;

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mem::{Ext, Flags, MAX_SEGMENTS};
use meter::DropReason;
use port::{Input, PortConfig};
use rig::{BUFFERS, Bench, ROOM, Running, capture, frames, read_key, until, whole, write_key};

/// A capture with these frames, one a millisecond.
fn made(frames: &[Vec<u8>]) -> Vec<u8> {
    let word = |out: &mut Vec<u8>, w: u32| out.extend_from_slice(&w.to_le_bytes());
    let mut out = Vec::new();
    [0xa1b2_3c4d, 2 | 4 << 16, 0, 0, 262_144, 1].iter().for_each(|w| word(&mut out, *w));
    for (i, f) in frames.iter().enumerate() {
        let head = [1_000_000, i as u32 * 1_000_000, f.len() as u32, f.len() as u32];
        head.iter().for_each(|w| word(&mut out, *w));
        out.extend_from_slice(f);
    }
    out
}

fn numbered(n: u32, len: usize) -> Vec<Vec<u8>> {
    (0..n)
        .map(|i| {
            let mut f = vec![i as u8; len];
            f[..4].copy_from_slice(&i.to_be_bytes());
            f
        })
        .collect()
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn what_a_port_is_and_says() {
    let bench = Bench::new();
    let mut r = bench.start(&read_key(&capture("vlan.pcap")));
    assert_eq!((r.port.input(), r.port.link().up), (Input::More, true));
    assert_eq!(r.port.device_counts().tx_sent, None, "it writes nothing: unknown, not 0");
    assert_eq!(r.receive_all().len(), 6);
    assert_eq!(r.port.input(), Input::Exhausted);
    assert_eq!(r.rx[0].rx_burst(&mut r.batch), 0);
    r.fill(&[5; 60]);
    assert_eq!(r.tx[0].tx_burst(&mut r.batch, 0), 0);
    let (rx, tx, fault) = r.stop();
    assert_eq!(
        (rx.packets, tx.packets, tx.bytes, tx.drops.of(DropReason::NoRoute), fault),
        (6, 0, 0, 1, None)
    );
    let mut r = bench.start(&write_key(&bench.path("out.pcap")));
    assert_eq!((r.port.input(), r.rx[0].rx_burst(&mut r.batch)), (Input::None, 0));
    assert_eq!(r.port.device_counts().rx_delivered, None);
    r.stop();
    assert_eq!(whole(bench.path("out.pcap")), [], "a capture without packets is a capture");
}

#[test]
fn passes_are_counted_and_stamps_go_on_rising() {
    let bench = Bench::new();
    let x = bench.file("x", &made(&numbered(10, 60)));
    let mut r = bench.start(&(read_key(&x) + "loop = 3"));
    let all = r.receive_all();
    assert_eq!(all.len(), 30);
    let expected: Vec<_> = (0..30).map(|i| Some(1_000_000_000_000_000 + i * 1_000_000)).collect();
    assert_eq!(all.iter().map(|f| f.2).collect::<Vec<_>>(), expected, "at the seam as between two frames");
    assert!(all.chunks(10).all(|pass| pass.iter().map(|f| &f.0).eq(numbered(10, 60).iter())));
    r.stop();
    let mut r = bench.start(&(read_key(&x) + "loop = true"));
    let mut n = 0;
    while n < 1000 {
        n += r.rx[0].rx_burst(&mut r.batch);
        r.batch.free_sent();
    }
    assert_eq!(r.port.input(), Input::Endless);
    r.port.rx_off().unwrap();
    assert_eq!(r.rx[0].rx_burst(&mut r.batch), 0);
    r.stop();
    let empty = bench.file("empty", &made(&[]));
    let mut r = bench.start(&(read_key(&empty) + "loop = true"));
    assert_eq!(r.receive_all(), [], "nothing, for ever, is nothing");
    r.stop();
}

/// Nanoseconds until all frames have come.
fn takes(bench: &Bench, keys: &str) -> u64 {
    let mut r = bench.start(keys);
    let start = Instant::now();
    let n = r.receive_all().len();
    let elapsed = start.elapsed().as_nanos() as u64;
    let (rx, _, _) = r.stop();
    assert_eq!(rx.packets, n as u64);
    elapsed
}

#[test]
fn frames_never_come_before_they_are_due() {
    let bench = Bench::new();
    let x = bench.file("x", &made(&numbered(31, 60)));
    assert!(takes(&bench, &(read_key(&x) + "pace = \"recorded\"")) >= 30_000_000, "30 gaps of a millisecond");
    let twice = read_key(&x) + "pace = \"recorded\"\nloop = 2";
    assert!(takes(&bench, &twice) >= 61_000_000, "and one at the seam");
    assert!(takes(&bench, &(read_key(&x) + "pace = \"2K\"")) >= 15_000_000);
    // 30 frames of 84 bytes on the wire before the last.
    assert!(takes(&bench, &(read_key(&x) + "pace = \"1Mbps\"")) >= 30 * 84 * 8 * 1000 - 1000);
}

#[test]
fn long_frames_are_chains_and_those_that_do_not_fit_are_counted() {
    let bench = Bench::new();
    let room = usize::from(bench.memory.layout().room());
    let most = room * MAX_SEGMENTS;
    let lengths = [14, 60, room, room + 1, 9014, 65_549, most, 13, 0, most + 1, 262_144, 15];
    let all: Vec<Vec<u8>> = lengths.iter().map(|n| (0..*n).map(|i| (i * 7 + n) as u8).collect()).collect();
    let x = bench.file("x", &made(&all));
    let out = bench.path("out.pcapng");
    let mut to = bench.start(&write_key(&out));
    let mut r = bench.start(&read_key(&x));
    r.pump(Some(&mut to));
    let (rx, _, _) = r.stop();
    to.stop();
    assert_eq!((rx.drops.of(DropReason::TooShort), rx.drops.of(DropReason::TooLong)), (2, 2));
    let whole: Vec<_> = whole(&out).into_iter().map(|f| f.0).collect();
    let fit = |f: &&Vec<u8>| (14..=most).contains(&f.len());
    assert_eq!(whole, all.iter().filter(fit).cloned().collect::<Vec<_>>());
}

#[test]
fn a_frame_that_finds_no_buffer_waits_in_the_file() {
    let bench = Bench::new();
    let all: Vec<_> = numbered(BUFFERS as u32 + 100, 60);
    let x = bench.file("x", &made(&[all.clone(), vec![vec![9; ROOM * 3]]].concat()));
    let mut r = bench.start(&read_key(&x));
    let mut held = Vec::new();
    loop {
        let n = r.rx[0].rx_burst(&mut r.batch);
        let mut taken = mem::Batch::new(&bench.env.local);
        r.batch.append_to(&mut taken);
        held.push(taken);
        if n == 0 {
            break;
        }
    }
    assert_eq!(held.iter().map(mem::Batch::len).sum::<usize>(), BUFFERS);
    held.iter_mut().for_each(|b| {
        b.free_sent();
    });
    let rest = r.receive_all();
    assert_eq!(rest.len(), 101);
    assert_eq!(rest[100].0, vec![9; ROOM * 3]);
    assert!(rest[..100].iter().map(|f| &f.0).eq(&all[BUFFERS..]));
    let (rx, _, _) = r.stop();
    assert_eq!(rx.drops.total(), 0);
}

#[test]
fn a_full_queue_takes_nothing_and_loses_nothing() {
    let bench = Bench::new();
    let pipe = bench.path("pipe");
    fifo(&pipe);
    let mut r = bench.start(&write_key(&pipe));
    assert!(!r.port.link().up, "nobody reads it yet");
    let all = numbered(500, 1400);
    let mut next = all.iter();
    // Nobody reads: 64 buffers go, and the rest waits.
    for f in next.by_ref().take(64) {
        r.fill(f);
    }
    assert_eq!(r.tx[0].tx_burst(&mut r.batch, 0), 64);
    for f in next.by_ref().take(10) {
        r.fill(f);
    }
    assert_eq!((r.tx[0].tx_burst(&mut r.batch, 0), r.batch.len()), (0, 10));
    assert_eq!((r.tx_counts().full, r.tx_counts().packets, r.tx[0].inflight()), (1, 0, 64));
    let reader = thread::spawn({
        let pipe = pipe.clone();
        move || {
            let mut from = File::open(pipe).unwrap();
            thread::sleep(Duration::from_millis(30));
            let mut bytes = Vec::new();
            from.read_to_end(&mut bytes).unwrap();
            bytes
        }
    });
    for f in next {
        until("the pipe is read", || {
            r.tx[0].reap();
            r.tx[0].tx_burst(&mut r.batch, 0);
            r.batch.room() > 0
        });
        r.fill(f);
    }
    until("the rest is taken", || {
        r.tx[0].reap();
        r.tx[0].tx_burst(&mut r.batch, 0);
        r.batch.is_empty()
    });
    assert!(r.port.link().up);
    let (_, tx, fault) = r.stop();
    assert_eq!((tx.packets, tx.bytes, tx.drops.total(), fault), (500, 500 * 1400, 0, None));
    let (found, end) = frames(&reader.join().unwrap());
    assert_eq!(end, Ok(()));
    assert!(found.iter().map(|f| &f.0).eq(&all));
}

#[test]
fn a_pipe_is_read_as_it_is_filled() {
    let bench = Bench::new();
    let pipe = bench.path("pipe");
    fifo(&pipe);
    assert!(bench.refused(&(read_key(&pipe) + "loop = 2")).contains("cannot be read a second time"));
    let mut r = bench.start(&read_key(&pipe));
    let file = made(&numbered(3, 60));
    assert_eq!((r.rx[0].rx_burst(&mut r.batch), r.port.input()), (0, Input::More), "no writer yet");
    let mut to = OpenOptions::new().write(true).custom_flags(0o4000).open(&pipe).unwrap();
    assert_eq!((r.rx[0].rx_burst(&mut r.batch), r.port.input()), (0, Input::More), "no bytes yet");
    // Byte by byte: a frame comes with its last.
    let mut at = Vec::new();
    for (i, byte) in file.iter().enumerate() {
        to.write_all(&[*byte]).unwrap();
        if r.rx[0].rx_burst(&mut r.batch) > 0 {
            at.push(i + 1);
        }
    }
    assert_eq!(at, [24 + 76, 24 + 2 * 76, 24 + 3 * 76]);
    r.batch.free_sent();
    assert_eq!(r.port.input(), Input::More);
    drop(to);
    assert_eq!(r.receive_all(), []);
    assert_eq!(r.port.input(), Input::Exhausted);
    assert_eq!(r.stop().2, None);
}

#[test]
fn a_pipe_whose_reader_takes_nothing_is_given_up_at_the_end() {
    let bench = Bench::new();
    let pipe = bench.path("pipe");
    fifo(&pipe);
    let mut r = bench.start(&write_key(&pipe));
    let _reader = OpenOptions::new().read(true).custom_flags(0o4000).open(&pipe).unwrap();
    for f in numbered(64, 1400) {
        r.fill(&f);
    }
    assert_eq!(r.tx[0].tx_burst(&mut r.batch, 0), 64);
    let (_, tx, fault) = r.stop();
    // A pipe holds 65,536 bytes: some went, and the others are counted.
    assert!(tx.packets > 20 && tx.packets < 60, "{tx:?}");
    assert_eq!(tx.packets + tx.drops.total(), 64);
    let fault = fault.unwrap();
    assert!(fault.contains("whoever reads the pipe takes nothing"), "{fault}");
    let pipe = bench.path("pipe-2");
    fifo(&pipe);
    let mut r = bench.start(&write_key(&pipe));
    r.fill(&[0; 60]);
    r.tx[0].tx_burst(&mut r.batch, 0);
    let (_, tx, _) = r.stop();
    assert_eq!((tx.packets, tx.drops.of(DropReason::Stopping)), (0, 1), "nobody ever read it");
}

#[test]
fn a_reader_that_goes_away_is_a_fault() {
    let bench = Bench::new();
    let pipe = bench.path("pipe");
    fifo(&pipe);
    let mut r = bench.start(&write_key(&pipe));
    let reader = OpenOptions::new().read(true).custom_flags(0o4000).open(&pipe).unwrap();
    r.send(0, &numbered(2, 60));
    drop(reader);
    until("it is noticed", || {
        r.fill(&[0; 60]);
        r.tx[0].tx_burst(&mut r.batch, 0);
        r.tx[0].reap();
        r.port.fault().is_some()
    });
    assert!(!r.port.link().up);
    let (_, tx, fault) = r.stop();
    assert!(fault.unwrap().ends_with(": Broken pipe after 2 packets; whoever read the pipe has gone"));
    assert_eq!(tx.packets, 2);
    assert!(tx.drops.of(DropReason::LinkDown) > 0);
}

/// In a process of its own, whose working folder is a file system of 64 KiB.
fn fill_the_disk() {
    let bench = Bench::new();
    let out = std::env::current_dir().unwrap().join("out.pcap");
    let mut r = bench.start(&write_key(&out));
    let all = numbered(200, 900);
    for f in &all {
        until("a queue takes or drops a packet", || {
            if r.batch.is_empty() {
                r.fill(f);
            }
            r.tx[0].reap();
            r.tx[0].tx_burst(&mut r.batch, 0);
            r.batch.is_empty()
        });
    }
    assert!(!r.port.link().up);
    let (_, tx, fault) = r.stop();
    let found = whole(&out);
    let n = found.len();
    assert!((40..100).contains(&n), "{n}");
    assert_eq!((tx.packets, tx.bytes), (n as u64, n as u64 * 900));
    assert_eq!(tx.drops.of(DropReason::LinkDown), 200 - n as u64);
    assert!(found.iter().map(|f| &f.0).eq(&all[..n]), "the first so many, each whole");
    let want =
        format!("out.pcap: No space left on device after {n} packets; make room, or write to another disk");
    assert!(fault.as_ref().unwrap().ends_with(&want), "{fault:?}");
}

#[test]
fn a_full_disk_is_a_fault_and_the_file_holds_whole_frames() {
    const INSIDE: &str = "RINGWRIGHT_PCAP_TEST_ON_A_SMALL_DISK";
    if std::env::var_os(INSIDE).is_some() {
        return fill_the_disk();
    }
    // A mount namespace of its own: the file system goes with the process.
    let dir = rig::folder();
    let script = "mount -t tmpfs -o size=64k none \"$1\" && cd \"$1\" && exec \"$2\" --exact a_full_disk_is_a_fault_and_the_file_holds_whole_frames";
    let me = std::env::current_exe().unwrap();
    let args = [
        OsStr::new("-m"),
        OsStr::new("sh"),
        OsStr::new("-c"),
        script.as_ref(),
        "sh".as_ref(),
        dir.path().as_ref(),
        me.as_ref(),
    ];
    let can = Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
    if !can.is_ok_and(|o| o.status.success()) {
        eprintln!("SKIPPED: no right to mount a small disk");
        return;
    }
    let out = Command::new("unshare").args(args).env(INSIDE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn a_device_that_is_full_takes_the_link_down_as_well() {
    let bench = Bench::new();
    let mut r = bench.start("write = \"/dev/full\"");
    until("the header does not fit", || r.port.fault().is_some());
    assert!(!r.port.link().up);
    r.fill(&[0; 60]);
    assert_eq!((r.tx[0].tx_burst(&mut r.batch, 0), r.batch.len()), (0, 0));
    let (_, tx, fault) = r.stop();
    assert_eq!((tx.packets, tx.bytes, tx.drops.of(DropReason::LinkDown)), (0, 0, 1));
    assert!(fault.unwrap().contains("capture /dev/full: No space left on device after 0 packets"));
}

#[test]
fn a_file_that_is_deleted_is_a_fault() {
    let bench = Bench::new();
    let out = bench.path("out.pcap");
    let mut r = bench.start(&write_key(&out));
    r.send(0, &numbered(5, 60));
    assert_eq!(r.port.fault(), None);
    fs::remove_file(&out).unwrap();
    assert!(r.stop().2.unwrap().ends_with("deleted while it was written, with 5 packets in it"));
    let gone = bench.path("no-such-folder/out.pcap");
    assert!(bench.refused(&write_key(&gone)).contains("there is no such folder"));
    let mut port = bench.open(&write_key(&bench.path("x"))).unwrap();
    fs::create_dir(bench.path("x")).unwrap();
    let e = port.start(&PortConfig::new(0)).err().unwrap().to_string();
    assert!(e.contains("x cannot be written: Is a directory"), "{e}");
}

#[test]
fn a_file_is_overwritten_but_never_while_it_is_in_use() {
    let bench = Bench::new();
    let out = bench.file("out.pcap", &[b'x'; 100_000]);
    let port = bench.open(&write_key(&out)).unwrap();
    assert_eq!(fs::metadata(&out).unwrap().len(), 100_000, "nothing is lost by looking");
    drop(port);
    let mut r = bench.start(&write_key(&out));
    r.send(0, &numbered(2, 60));
    let mut second = bench.open(&write_key(&bench.path("other.pcap"))).unwrap();
    assert!(bench.refused(&write_key(&out)).contains("is read by a port, or written by another"));
    assert!(bench.refused(&read_key(&out)).contains("is written by another port"));
    second.start(&PortConfig::new(0)).unwrap();
    // As another process would.
    let e =
        Bench::new().open(&write_key(&out)).unwrap().start(&PortConfig::new(0)).err().unwrap().to_string();
    assert!(e.contains("is in use by another process that writes a capture"), "{e}");
    r.stop();
    assert_eq!(whole(&out).len(), 2);
    let same = read_key(&out) + &write_key(&bench.dir.path().join("./out.pcap"));
    assert!(bench.refused(&same).contains("is read by a port"));
    let reader = bench.open(&read_key(&out)).unwrap();
    assert!(bench.refused(&write_key(&out)).contains("is read by a port"));
    drop(reader);
    bench.open(&write_key(&out)).unwrap();
}

#[test]
fn packets_without_a_stamp_get_the_time_of_writing() {
    let bench = Bench::new();
    let out = bench.path("out.pcap");
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let before = now();
    let mut r = bench.start(&write_key(&out));
    r.send(0, &numbered(100, 60));
    r.stop();
    let stamps: Vec<u64> = whole(&out).iter().map(|f| f.2.unwrap()).collect();
    assert!(stamps.is_sorted() && stamps[0] >= before && stamps[99] <= now(), "{stamps:?}");
}

#[test]
fn several_queues_write_one_file_each_in_order() {
    let bench = Bench::new();
    let out = bench.path("out.pcap");
    let cfg = PortConfig { queues: 3, tx_ring: 64.try_into().unwrap(), ..PortConfig::new(3) };
    let mut r = bench.start_with(&write_key(&out), cfg);
    let all = numbered(300, 60);
    for (i, f) in all.iter().enumerate() {
        r.send(i % 3, std::slice::from_ref(f));
    }
    let (_, tx, _) = r.stop();
    assert_eq!(tx.packets, 300);
    let found = whole(&out);
    for q in 0..3 {
        let of = |f: &&rig::Owned| u32::from_be_bytes(f.0[..4].try_into().unwrap()) % 3 == q;
        assert!(found.iter().filter(of).map(|f| &f.0).eq(all.iter().skip(q as usize).step_by(3)));
    }
}

#[test]
fn queues_move_between_workers_and_the_counts_stay_right() {
    let bench = Bench::new();
    let (out, x) = (bench.path("out.pcap"), bench.file("x", &made(&numbered(200, 60))));
    let mut r = bench.start(&(read_key(&x) + &write_key(&out)));
    let mut sum = meter::QueueMeter::default();
    while r.port.input() != Input::Exhausted {
        r.rx[0].rx_burst(&mut r.batch);
        r.tx[0].tx_burst(&mut r.batch, 0);
        until("the batch is sent", || {
            r.tx[0].reap();
            r.tx[0].tx_burst(&mut r.batch, 0);
            r.batch.is_empty()
        });
        // Packets are in flight as the queue leaves; those that arrive meanwhile count for the next.
        let (tx, rx) = (r.tx.remove(0), r.rx.remove(0));
        tx.counts(&mut sum);
        let (tx, rx) = (tx.detach(), rx.detach());
        r.tx.push(tx.attach(&bench.env).map_err(|e| e.0).unwrap());
        r.rx.push(rx.attach(&bench.env).map_err(|e| e.0).unwrap());
    }
    r.drain();
    r.tx[0].counts(&mut sum);
    assert_eq!((sum.packets, sum.bytes), (200, 12_000));
    assert_eq!(r.port.device_counts().tx_sent, Some(200));
    let queues = port::Queues {
        rx: r.rx.drain(..).map(|q| q.detach()).collect(),
        tx: r.tx.drain(..).map(|q| q.detach()).collect(),
    };
    r.port.rx_off().unwrap();
    r.port.stop(queues, &bench.env.local).unwrap();
    drop(r);
    bench.assert_home();
    assert_eq!(fs::read(out).unwrap(), fs::read(x).unwrap());
}

/// Sends one frame with wishes; what was written, or the only reason for a drop.
fn written(r: &mut Running<'_>, frame: &[u8], flags: Flags, change: impl FnOnce(&mut Ext)) {
    r.fill(frame);
    let mut p = r.batch.pkt(0).unwrap();
    let mut ext = Ext::default();
    change(&mut ext);
    p.set_ext(ext);
    p.set_flags(flags);
    r.tx[0].tx_burst(&mut r.batch, 0);
    assert!(r.batch.is_empty());
}

#[test]
fn wishes_are_fulfilled_in_software_or_counted() {
    let bench = Bench::new();
    let out = bench.path("out.pcap");
    // A whole TCP segment as a stack left it; its sum is taken out, and that of the pseudo header put in.
    let good = whole(capture("tcp-data.pcap"))[3].0.clone();
    let mut partial = good.clone();
    let layers = wire::Layers::parse(&good);
    let sum = wire::checksum::pseudo(&good, &layers, true).unwrap().folded();
    partial[50..52].copy_from_slice(&sum.to_be_bytes());
    let mut r = bench.start(&(write_key(&out) + "snaplen = 1000"));
    let l4 = |e: &mut Ext| (e.csum_start, e.csum_offset, e.vlan) = (34, 16, 42);
    written(&mut r, &partial, Flags::TX_L4, l4);
    written(&mut r, &partial, Flags::TSO.with(Flags::VLAN), l4);
    written(&mut r, &[1; 14], Flags::VLAN, l4);
    written(&mut r, &[1; 51], Flags::TX_L4, l4);
    written(&mut r, &[1; 13], Flags::VLAN, l4);
    written(&mut r, &[1; 60], Flags::TX_L3, |e| e.l2_len = 41);
    r.drain();
    let (_, tx, fault) = r.stop();
    assert_eq!((tx.packets, tx.bytes, tx.drops.of(DropReason::TooShort), fault), (3, 1514 * 2 + 14, 3, None));
    let found = whole(&out);
    assert_eq!((found[0].1, &found[0].0[..]), (1514, &good[..1000]), "cut after the sum was made");
    let tagged = [&good[..12], &[0x81, 0, 0, 42], &good[12..996]].concat();
    assert_eq!((found[1].1, &found[1].0), (1518, &tagged));
    assert_eq!(found[2].0, [&[1; 12][..], &[0x81, 0, 0, 42, 1, 1]].concat());
}

#[test]
fn a_chain_of_more_buffers_than_the_ring_has_goes_alone() {
    let bench = Bench::new();
    let (out, x) =
        (bench.path("out.pcap"), bench.file("x", &made(&[vec![3; 60], vec![4; 120_000], vec![5; 60]])));
    let cfg = PortConfig { tx_ring: 8.try_into().unwrap(), ..PortConfig::new(3) };
    let mut r = bench.start_with(&(read_key(&x) + &write_key(&out)), cfg);
    r.pump(None);
    r.stop();
    assert_eq!(fs::read(out).unwrap(), fs::read(x).unwrap());
}

#[test]
fn a_port_can_be_started_again() {
    let bench = Bench::new();
    let out = bench.path("out.pcap");
    let mut port = bench.open(&(read_key(&capture("vlan.pcap")) + &write_key(&out))).unwrap();
    for _ in 0..3 {
        let queues = port.start(&PortConfig::new(3)).unwrap();
        let rx = queues.rx.into_iter().map(|q| q.attach(&bench.env).map_err(|e| e.0).unwrap()).collect();
        let tx = queues.tx.into_iter().map(|q| q.attach(&bench.env).map_err(|e| e.0).unwrap()).collect();
        let mut r = Running { bench: &bench, port, rx, tx, batch: mem::Batch::new(&bench.env.local) };
        r.pump(None);
        let queues = port::Queues {
            rx: r.rx.drain(..).map(|q| q.detach()).collect(),
            tx: r.tx.drain(..).map(|q| q.detach()).collect(),
        };
        r.port.stop(queues, &bench.env.local).unwrap();
        assert_eq!(r.port.device_counts().tx_sent, Some(6));
        port = r.port;
        assert_eq!(fs::read(&out).unwrap(), fs::read(capture("vlan.pcap")).unwrap());
    }
    bench.assert_home();
}
