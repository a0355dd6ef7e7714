//! Requests and their answers.

use std::num::NonZeroU16;
use std::time::Duration;

use ringwright_rt::control::{Client, ClientError, Code, Command, Limits, QueueName, Request};
use serde_json::{Value, json};

use crate::host::{Fake, PATIENCE, Rig};

#[test]
fn every_command_reaches_its_host_and_its_result_the_client() {
    let fake = Fake::new();
    let rig = Rig::new(fake.clone(), Limits::default());
    let mut client = Client::connect(&rig.path, PATIENCE).unwrap();
    let port: toml::Table = "name = \"p2\"\ndriver = \"null\"\nqueues = 1".parse().unwrap();
    let queue = QueueName { port: "p2".into(), queue: 0 };
    let batching = |packets, delay| Command::SetBatching { port: "p2".into(), packets, delay };
    let changes = [
        (Command::AddPort { port, worker: Some(1) }, json!({"port": "p2", "queues": 1, "worker": 1})),
        (Command::MoveQueue { queue, worker: 0 }, json!({"queue": "p2:0", "from": 1, "worker": 0})),
        (batching(NonZeroU16::new(8), None), json!({"port": "p2", "packets": 8, "delay": "2us"})),
        (
            batching(None, Some(Duration::from_micros(9))),
            json!({"port": "p2", "packets": 32, "delay": "9us"}),
        ),
        (Command::SetLog { filter: "info".into() }, json!({"filter": "info"})),
        (Command::RemovePort { name: "p2".into() }, json!({"port": "p2"})),
        (Command::Shutdown, json!({"stopping": true})),
    ];
    for (command, result) in &changes {
        let got = client.request(&Request::Change(command.clone())).unwrap();
        assert_eq!(serde_json::from_str::<Value>(got.get()).unwrap(), *result);
    }
    let told = fake.lock().unwrap();
    assert!(told.commands.iter().eq(changes.iter().map(|(c, _)| c)));
    assert!(told.stopping);
}

#[test]
fn status_and_hello_are_answered() {
    let rig = Rig::new(Fake::new(), Limits::default());
    let mut client = Client::connect(&rig.path, PATIENCE).unwrap();
    let status: Value = serde_json::from_str(client.request(&Request::Status).unwrap().get()).unwrap();
    assert_eq!((&status["schema"], &status["ports"][1]["name"]), (&json!(1), &json!("p1")));
    let hello: Value = serde_json::from_str(client.request(&Request::Hello).unwrap().get()).unwrap();
    assert_eq!(hello["name"], "sw");
    assert_eq!(hello["pid"], std::process::id());
    assert_eq!(hello["protocol"], 1);
    assert_eq!(hello["commands"], json!(Request::NAMES));
}

#[test]
fn refusals_reach_the_client_and_the_connection_goes_on() {
    let rig = Rig::new(Fake::new(), Limits::default());
    let mut client = Client::connect(&rig.path, PATIENCE).unwrap();
    let remove = |name: &str| Request::Change(Command::RemovePort { name: name.into() });
    let ClientError::Refused(refusal) = client.request(&remove("p9")).unwrap_err() else { panic!() };
    assert_eq!(refusal.code, Code::NO_SUCH_PORT);
    assert_eq!(refusal.message, "no port is called \"p9\"; did you mean p0?");
    client.request(&remove("p1")).unwrap();
}

#[test]
fn nobody_there_is_said_so() {
    let rig = Rig::new(Fake::new(), Limits::default());
    let path = rig.path.with_file_name("other.sock");
    let e = Client::connect(&path, PATIENCE).unwrap_err();
    assert!(e.to_string().contains("no instance runs there"), "{e}");
}

#[test]
fn a_second_request_may_follow_without_waiting_and_blank_lines_are_nothing() {
    let rig = Rig::new(Fake::new(), Limits::default());
    let mut line = rig.connect();
    let mut all = String::new();
    for i in 0..50 {
        all += &format!("\n  \r\n{{\"version\":1,\"id\":{i},\"command\":\"hello\"}}\r\n");
    }
    // The last line has no end.
    all += "{\"version\":1,\"id\":\"last\",\"command\":\"hello\"}";
    line.send(all.as_bytes()).unwrap();
    line.0.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
    for i in 0..50 {
        assert_eq!(line.next().unwrap()["id"], i);
    }
    assert_eq!(line.next().unwrap()["id"], "last");
    assert_eq!(line.next(), None);
}

#[test]
fn changes_go_one_after_the_other_and_others_are_answered_meanwhile() {
    let (fake, open) = Fake::gated();
    let rig = Rig::new(fake.clone(), Limits::default());
    let mut clients: Vec<_> = (0..3).map(|_| rig.connect()).collect();
    for c in &mut clients {
        c.send(b"{\"version\":1,\"command\":\"shutdown\"}\n").unwrap();
    }
    let mut other = rig.connect();
    for _ in 0..10 {
        assert_eq!(other.ask("{\"version\":1,\"command\":\"hello\"}")["ok"], true);
    }
    assert!(fake.try_lock().is_err(), "a change is being carried out");
    (0..3).for_each(|_| open.send(()).unwrap());
    for c in &mut clients {
        assert_eq!(c.next().unwrap()["result"]["stopping"], true);
    }
    assert_eq!(fake.lock().unwrap().commands.len(), 3);
}

#[test]
fn a_change_goes_on_when_its_client_has_gone() {
    let (fake, open) = Fake::gated();
    let mut rig = Rig::new(fake.clone(), Limits::default());
    rig.connect().send(b"{\"version\":1,\"command\":\"shutdown\"}\n").unwrap();
    open.send(()).unwrap();
    while !fake.lock().unwrap().stopping {
        std::thread::yield_now();
    }
    rig.control.take();
    assert!(!rig.path.exists());
}

#[test]
fn what_is_being_worked_on_is_answered_before_the_end() {
    let (fake, open) = Fake::gated();
    let mut rig = Rig::new(fake.clone(), Limits::default());
    let mut idle = rig.connect();
    let mut busy = rig.connect();
    busy.send(b"{\"version\":1,\"command\":\"shutdown\"}\n").unwrap();
    while fake.try_lock().is_ok() {
        std::thread::yield_now();
    }
    open.send(()).unwrap();
    rig.control.take().unwrap().stop();
    assert_eq!(busy.next().unwrap()["ok"], true);
    assert_eq!((busy.next(), idle.next()), (None, None));
}
