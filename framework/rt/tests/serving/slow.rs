//! HTTP clients that send slowly, or do not read, or are too many: they cost their own connection and nobody else's.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use ringwright_rt::telemetry::Limits;

use crate::host::{Fake, PATIENCE, exporter, get};

#[track_caller]
fn others_are_served(to: SocketAddr) {
    for path in ["/metrics", "/api/v1/status", "/healthz", "/"] {
        assert_eq!(get(to, path).status, 200, "{path}");
    }
}

fn connect(to: SocketAddr, say: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    // A connection that has made way already is no failure of the test.
    let _ = stream.write_all(say);
    stream
}

/// Waits until the other side hangs up.
fn is_hung_up(mut stream: TcpStream) -> bool {
    let mut sink = [0; 4096];
    loop {
        match stream.read(&mut sink) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(e) => return e.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

#[test]
fn two_hundred_half_requests_keep_nobody_out() {
    let e = exporter(Fake::new(), Limits::default());
    let half: Vec<_> = (0..200).map(|_| connect(e.address(), b"GET /metrics HTTP/1.1\r\nX-Slow: ")).collect();
    others_are_served(e.address());
    // Those that had to make way were closed; the newest are still waited for.
    let gone = half.into_iter().take(100).map(is_hung_up).filter(|gone| *gone).count();
    assert_eq!(gone, 100);
    others_are_served(e.address());
}

#[test]
fn heads_and_silences_have_a_limit() {
    let e = exporter(Fake::new(), Limits { head: Duration::from_millis(100), ..Limits::default() });
    let never = connect(e.address(), b"");
    let half = connect(e.address(), b"GET / HT");
    let kept = connect(e.address(), format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", e.address()).as_bytes());
    for stream in [never, half, kept] {
        assert!(is_hung_up(stream));
    }
    // A byte now and then does not help.
    let mut dribble = connect(e.address(), b"GET / HTTP/1.1\r\n");
    let mut sent = 0;
    while dribble.write_all(b"X: y\r\n").is_ok() {
        sent += 1;
        assert!(sent < 2000, "it is still listened to");
        std::thread::sleep(Duration::from_millis(10));
    }
    others_are_served(e.address());
}

#[test]
fn whoever_never_reads_is_cut_off() {
    let e = exporter(Fake::new(), Limits { life: Duration::from_millis(300), ..Limits::default() });
    let request = format!("GET /api/v1/status HTTP/1.1\r\nHost: {}\r\n\r\n", e.address()).repeat(500);
    let stuffed: Vec<_> = (0..8)
        .map(|_| {
            let (to, request) = (e.address(), request.clone());
            std::thread::spawn(move || {
                let mut stream = connect(to, b"");
                // Answers fill the way back, then requests fill the way there.
                while stream.write_all(request.as_bytes()).is_ok() {}
                stream
            })
        })
        .collect();
    for _ in 0..10 {
        others_are_served(e.address());
    }
    for s in stuffed {
        assert!(is_hung_up(s.join().unwrap()));
    }
    others_are_served(e.address());
}

#[test]
fn heads_that_are_too_large_or_no_http_are_refused() {
    let e = exporter(Fake::new(), Limits::default());
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(1000));
    for bad in [
        long.as_bytes(),
        many.as_bytes(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        b"\0\0\0\0\r\n\r\n",
        b"\r\n\r\n\r\n\r\nGET",
    ] {
        let stream = connect(e.address(), bad);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        assert!(is_hung_up(stream));
    }
    let body = connect(
        e.address(),
        format!("GET / HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000000000\r\n\r\nhello", e.address())
            .as_bytes(),
    );
    let _ = body.shutdown(std::net::Shutdown::Write);
    assert!(is_hung_up(body));
    others_are_served(e.address());
}

#[test]
fn a_host_that_does_not_answer_is_said_so_and_the_page_is_still_there() {
    let (fake, open) = Fake::gated();
    let e = exporter(fake, Limits { host: Duration::from_millis(100), ..Limits::default() });
    for path in ["/metrics", "/api/v1/status", "/healthz"] {
        let a = get(e.address(), path);
        assert_eq!(a.status, 503, "{path}");
        assert!(a.body.contains("see its log"), "{}", a.body);
    }
    assert_eq!(get(e.address(), "/").status, 200);
    drop(open);
    let deadline = std::time::Instant::now() + PATIENCE;
    while get(e.address(), "/healthz").status != 200 {
        assert!(std::time::Instant::now() < deadline);
    }
}
