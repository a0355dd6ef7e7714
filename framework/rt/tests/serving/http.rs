//! What the exporter answers.

use std::io::Write;
use std::net::TcpStream;

use ringwright_rt::control::ServeError;
use ringwright_rt::telemetry::{Exporter, Limits};
use serde_json::Value;

use crate::host::{Fake, exporter, fetch, get, read_answer};

#[test]
fn every_path_is_what_it_says() {
    let e = exporter(Fake::new(), Limits::default());
    let page = get(e.address(), "/");
    assert_eq!(page.status, 200);
    assert!(page.head.contains("content-type: text/html; charset=utf-8"), "{}", page.head);
    assert!(page.head.contains("content-security-policy: default-src 'none'"), "{}", page.head);
    for path in ["/metrics", "/api/v1/status", "/healthz"] {
        assert!(page.body.contains(path));
    }
    assert!(!page.body.contains("http://") && !page.body.contains("https://"), "nothing from elsewhere");

    let status = get(e.address(), "/api/v1/status?pretty");
    assert_eq!(status.status, 200);
    assert!(status.head.contains("content-type: application/json"));
    let object: Value = serde_json::from_str(&status.body).unwrap();
    assert_eq!((&object["schema"], &object["ports"][0]["name"]), (&1.into(), &"p0".into()));

    let health = get(e.address(), "/healthz");
    assert_eq!((health.status, &*health.body), (200, "ok\n"));
}

#[test]
fn metrics_come_as_the_client_likes_them() {
    let e = exporter(Fake::new(), Limits::default());
    let openmetrics = fetch(e.address(), "GET", "/metrics", "Accept: application/openmetrics-text\r\n");
    assert!(openmetrics.head.contains("content-type: application/openmetrics-text; version=1.0.0"));
    assert!(openmetrics.body.ends_with("\n# EOF\n"));
    assert!(openmetrics.body.contains("# TYPE ringwright_port_packets counter\n"));
    let text = fetch(e.address(), "GET", "/metrics", "Accept: text/html, */*\r\n");
    assert!(text.head.contains("content-type: text/plain; version=0.0.4"), "{}", text.head);
    assert!(text.body.contains("# TYPE ringwright_port_packets_total counter\n"));
    assert!(!text.body.contains("# EOF"));
}

#[test]
fn other_methods_and_paths_are_refused() {
    let e = exporter(Fake::new(), Limits::default());
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let a = fetch(e.address(), method, "/metrics", "Content-Length: 0\r\n");
        assert_eq!(a.status, 405, "{method}");
        assert!(a.head.contains("allow: get, head"), "{}", a.head);
    }
    for path in ["/metrics/", "/api", "/api/v2/status", "//", "/../etc/passwd", "/%2e%2e/", "/index.html"] {
        let a = get(e.address(), path);
        assert_eq!(a.status, 404, "{path}");
        assert!(a.body.contains("/metrics"));
    }
    let head = fetch(e.address(), "HEAD", "/metrics", "");
    assert_eq!((head.status, &*head.body), (200, ""));
    let length = head.head.lines().find_map(|l| l.strip_prefix("content-length: "));
    assert!(length.is_some_and(|n| n.parse::<usize>().unwrap() > 100), "{}", head.head);
}

#[test]
fn pages_of_elsewhere_cannot_read_it() {
    let e = exporter(Fake::new(), Limits::default());
    let ask = |host: &str| {
        let mut stream = TcpStream::connect(e.address()).unwrap();
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        read_answer(stream).status
    };
    assert_eq!(
        ["evil.example", "evil.example:9464", "localhost:9464", "[::1]"].map(ask),
        [421, 421, 200, 200]
    );
}

#[test]
fn a_port_that_is_in_use_is_named() {
    let e = exporter(Fake::new(), Limits::default());
    let second = Exporter::start(e.address(), false, Fake::new(), Limits::default()).unwrap_err();
    assert!(matches!(second, ServeError::InUse { address } if address == e.address()), "{second}");
    assert!(second.to_string().contains("telemetry.listen"), "{second}");
    let address = e.address();
    e.stop();
    let again = Exporter::start(address, false, Fake::new(), Limits::default()).unwrap();
    assert_eq!(get(again.address(), "/healthz").status, 200, "the port is free at once");
}

#[test]
fn requests_within_a_moment_share_an_observation() {
    let fake = Fake::new();
    let e = exporter(fake.clone(), Limits::default());
    let start = std::time::Instant::now();
    std::thread::scope(|s| {
        for _ in 0..20 {
            s.spawn(|| (0..10).for_each(|_| assert_eq!(get(e.address(), "/metrics").status, 200)));
        }
    });
    // One for each 50 ms, and one that was asked for while another was made.
    let most = start.elapsed().as_millis() as u64 / 50 * 2 + 2;
    let observed = fake.lock().unwrap().observed;
    assert!((1..=most).contains(&observed), "{observed} observations, {most} at most");
    // These counts are as old as the observation, so a new one it must be.
    std::thread::sleep(std::time::Duration::from_millis(60));
    let counts = get(e.address(), "/metrics").body;
    let scrapes = |result: &str| {
        let name = format!("ringwright_scrapes_total{{result=\"{result}\"}} ");
        counts.lines().find_map(|l| l.strip_prefix(&*name)?.parse::<u64>().ok()).unwrap_or(0)
    };
    assert_eq!(scrapes("hit") + scrapes("miss"), 201);
    assert_eq!(scrapes("failed"), 0);
}

#[test]
fn other_machines_are_let_in_only_with_leave() {
    for remote in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "[2001:db8::1]:80", "[::ffff:192.0.2.1]:80"] {
        let e = Exporter::start(remote.parse().unwrap(), false, Fake::new(), Limits::default()).unwrap_err();
        assert!(matches!(e, ServeError::Remote { .. }), "{remote}: {e}");
        assert!(e.to_string().contains("telemetry.allow_remote = true"), "{e}");
    }
    for own in ["127.0.0.1:0", "127.9.9.9:0"] {
        Exporter::start(own.parse().unwrap(), false, Fake::new(), Limits::default()).unwrap();
    }
    let open = Exporter::start("0.0.0.0:0".parse().unwrap(), true, Fake::new(), Limits::default()).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", open.address().port())).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: any.example\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(read_answer(stream).status, 200);
}
