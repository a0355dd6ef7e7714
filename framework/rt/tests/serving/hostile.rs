//! Clients that do not mean well.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ringwright_rt::control::Limits;

use crate::host::{Fake, Line, PATIENCE, Rig};

const HELLO: &str = "{\"version\":1,\"command\":\"hello\"}";

/// Asserts that somebody who means well is served.
#[track_caller]
fn others_are_served(rig: &Rig) {
    assert_eq!(rig.connect().ask(HELLO)["ok"], true);
}

#[test]
fn what_is_no_request_is_refused_and_the_connection_goes_on() {
    let fake = Fake::new();
    let rig = Rig::new(fake.clone(), Limits::default());
    let mut line = rig.connect();
    for (bad, code) in [
        (&b"{"[..], "bad_json"),
        (b"\x00\xff\xfe\x80 binary \x01", "bad_json"),
        (b"GET / HTTP/1.1", "bad_json"),
        (b"{\"version\":9,\"command\":\"status\"}", "bad_version"),
        (b"{\"version\":1,\"command\":\"stop\"}", "unknown_command"),
        (b"{\"version\":1,\"command\":\"remove_port\",\"port\":\"p0\"}", "bad_request"),
    ] {
        line.send(&[bad, b"\n"].concat()).unwrap();
        assert_eq!(line.code(), code, "{}", String::from_utf8_lossy(bad));
    }
    assert_eq!(line.ask(HELLO)["ok"], true);
    assert!(fake.lock().unwrap().commands.is_empty());
}

#[test]
fn a_line_of_the_longest_is_read_and_a_longer_one_ends_the_connection() {
    let rig = Rig::new(Fake::new(), Limits::default());
    let mut line = rig.connect();
    let longest = format!("{HELLO}{}", " ".repeat((64 << 10) - HELLO.len()));
    assert_eq!(line.ask(&longest)["ok"], true);
    line.send(format!("{longest} \n").as_bytes()).unwrap();
    assert_eq!(line.code(), "line_too_long");
    assert_eq!(line.next(), None);
    others_are_served(&rig);
}

#[test]
fn a_line_without_an_end_is_not_kept() {
    let rig = Rig::new(Fake::new(), Limits::default());
    let mut line = rig.connect();
    // The server hangs up long before all of this is written.
    let sent = line.send(&vec![b'x'; 64 << 20]);
    assert!(sent.is_err(), "all of it was read");
    assert_eq!(line.code(), "line_too_long");
    others_are_served(&rig);
}

#[test]
fn half_a_line_and_a_silent_client_time_out() {
    let ms = Duration::from_millis;
    let limits = Limits { line: ms(50), silence: ms(100), ..Limits::default() };
    let rig = Rig::new(Fake::new(), limits);
    let mut half = rig.connect();
    half.send(b"{\"version\":1,").unwrap();
    let mut silent = rig.connect();
    assert_eq!((half.code(), silent.code()), ("too_slow".to_owned(), "too_slow".to_owned()));
    assert_eq!((half.next(), silent.next()), (None, None));
    others_are_served(&rig);
}

#[test]
fn a_client_that_dribbles_times_out_though_bytes_come() {
    let limits = Limits { line: Duration::from_millis(100), ..Limits::default() };
    let rig = Rig::new(Fake::new(), limits);
    let mut slow = rig.connect();
    let mut sent = 0;
    while slow.send(b" ").is_ok() {
        sent += 1;
        assert!(sent < 10_000, "it is still listened to");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(slow.code(), "too_slow");
    others_are_served(&rig);
}

/// Asks until nothing more can be sent, and never reads.
fn stuff(stream: &UnixStream) -> std::io::Error {
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let requests = "{\"version\":1,\"command\":\"status\"}\n".repeat(100);
    loop {
        if let Err(e) = (&*stream).write_all(requests.as_bytes()) {
            return e;
        }
    }
}

#[test]
fn a_client_that_never_reads_is_cut_off_and_holds_nobody_up() {
    let limits = Limits { answer: Duration::from_millis(100), ..Limits::default() };
    let fake = Fake::new();
    let rig = Rig::new(fake.clone(), limits);
    let stuffed: Vec<_> = (0..4)
        .map(|_| {
            let stream = UnixStream::connect(&rig.path).unwrap();
            std::thread::spawn(move || stuff(&stream).kind())
        })
        .collect();
    for _ in 0..20 {
        others_are_served(&rig);
        drop(fake.lock().unwrap());
    }
    for s in stuffed {
        // Cut off by the server, not by the patience of this test.
        let kind = s.join().unwrap();
        assert!(
            matches!(kind, std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset),
            "{kind:?}"
        );
    }
}

#[test]
fn of_a_hundred_idle_connections_the_oldest_make_way() {
    let rig = Rig::new(Fake::new(), Limits::default());
    let mut first = rig.connect();
    let mut idle: Vec<_> = (0..100).map(|_| rig.connect()).collect();
    others_are_served(&rig);
    assert_eq!(first.code(), "too_many_clients");
    assert_eq!(idle[0].code(), "too_many_clients");
    let newest = idle.last_mut().unwrap();
    assert_eq!(newest.ask(HELLO)["ok"], true, "the newest are still there");
}

#[test]
fn when_all_are_busy_a_newcomer_is_told_to_come_again() {
    let (fake, open) = Fake::gated();
    let rig = Rig::new(fake, Limits { clients: 3, ..Limits::default() });
    let mut busy: Vec<Line> = (0..3).map(|_| rig.connect()).collect();
    for b in &mut busy {
        b.send(b"{\"version\":1,\"command\":\"status\"}\n").unwrap();
    }
    // Until all three requests have been read: the newcomers of before then take an idle client's place.
    let refused = (0..1000).any(|_| {
        let mut newcomer = rig.connect();
        let answer = newcomer.ask(HELLO);
        answer["error"]["code"] == "too_many_clients"
    });
    assert!(refused);
    (0..3).for_each(|_| open.send(()).unwrap());
    let answered = busy.iter_mut().filter_map(Line::next).filter(|a| a["ok"] == true).count();
    assert!(answered > 0);
}
