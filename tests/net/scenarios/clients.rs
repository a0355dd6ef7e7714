//! Those who watch a run: however slow or rude they are, packets go on, and others are served.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::PATIENCE;
use crate::rig::{Net, is_bridge};
use crate::switch::{Mode, Running, Setup, each_mode};
use crate::traffic::{flow_while, ping};

each_mode!(silent_control_clients slow_scrapers);

/// Connects to the exporter.
#[track_caller]
fn connect(net: &Net) -> TcpStream {
    net.middle.inside(|| {
        let stream = TcpStream::connect_timeout(&"127.0.0.1:9464".parse().expect("an address"), PATIENCE);
        let stream = stream.expect("somebody listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time");
        stream
    })
}

/// The body of a page.
#[track_caller]
fn get(net: &Net, path: &str) -> String {
    let mut stream = connect(net);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    assert!(text.starts_with("HTTP/1.1 200 "), "{path}: {text}");
    text.split_once("\r\n\r\n").expect("a body").1.to_owned()
}

fn silent_control_clients(mode: Mode) {
    let Some(net) = Net::new(2).filter(|_| !is_bridge()) else { return };
    let running = Running::start(&net, &Setup::switch(&net, mode));
    let [a, b] = &net.stations[..] else { unreachable!() };
    let (sent, arrived, rude) = flow_while(a, b, Duration::from_micros(500), || {
        // It asks and asks, and reads nothing, until nobody listens to it any more.
        let mut rude = UnixStream::connect(&running.control).expect("somebody listens");
        rude.set_nonblocking(true).expect("a socket of ours");
        let mut asked = 0;
        loop {
            match rude.write(b"{\"version\":1,\"command\":\"status\"}\n") {
                Ok(_) => asked += 1,
                Err(e) => {
                    assert!(
                        [ErrorKind::WouldBlock, ErrorKind::BrokenPipe, ErrorKind::ConnectionReset]
                            .contains(&e.kind()),
                        "{e}"
                    );
                    break;
                }
            }
            assert!(asked < 1_000_000, "what is not read is not answered for ever");
        }
        // One that begins to say something, and more that say nothing: more than there are places.
        let mut unfinished = UnixStream::connect(&running.control).expect("somebody listens");
        unfinished.write_all(b"{\"version\":1,").expect("it is read");
        let silent: Vec<_> = (0..40).map(|_| UnixStream::connect(&running.control)).collect();
        for _ in 0..10 {
            let hello = running.ask(json!({ "command": "hello" })).expect("an answer");
            assert_eq!(hello["pid"], running.id(), "{hello}");
        }
        assert!(running.status()["ports"][0]["rx"]["packets"].as_u64() > Some(0));
        (rude, unfinished, silent)
    });
    arrived.assert_whole(&net, sent);
    drop(rude);
    running.stop();
}

fn slow_scrapers(mode: Mode) {
    let Some(net) = Net::new(2).filter(|_| !is_bridge()) else { return };
    let running = Running::start(&net, &Setup::switch(&net, mode));
    let [a, b] = &net.stations[..] else { unreachable!() };
    let (sent, arrived, slow) = flow_while(a, b, Duration::from_micros(500), || {
        // Some say half of what they want, some want it and do not read it; more than there are places.
        let slow: Vec<_> = (0..100)
            .map(|i| {
                let mut stream = connect(&net);
                let said =
                    if i % 2 == 0 { "GET /metr" } else { "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" };
                let _ = stream.write_all(said.as_bytes());
                stream
            })
            .collect();
        for _ in 0..10 {
            let metrics = get(&net, "/metrics");
            let counted = metrics.lines().any(|l| {
                l.starts_with("ringwright_port_packets_total{") && l.contains("\"p0\"") && !l.ends_with(" 0")
            });
            assert!(counted && metrics.ends_with("# EOF\n"), "{metrics}");
            let status: Value = serde_json::from_str(&get(&net, "/api/v1/status")).expect("JSON");
            assert_eq!(status["ports"][0]["name"], "p0", "{status}");
        }
        slow
    });
    arrived.assert_whole(&net, sent);
    ping(a, &b.ip(), "");
    drop(slow);
    running.stop();
}
