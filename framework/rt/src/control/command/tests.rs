use super::*;

fn read(name: &str, args: &str) -> Result<Request, String> {
    Request::read(name, &args.parse().unwrap()).map_err(|r| format!("{}: {}", r.code, r.message))
}

#[test]
fn commands_are_read() {
    assert_eq!(read("hello", ""), Ok(Request::Hello));
    assert_eq!(read("status", ""), Ok(Request::Status));
    assert_eq!(read("shutdown", ""), Ok(Request::Change(Command::Shutdown)));
    let port = "name = \"p2\"\ndriver = \"null\"".parse().unwrap();
    assert_eq!(
        read("add_port", "worker = 1\n[port]\nname = \"p2\"\ndriver = \"null\""),
        Ok(Request::Change(Command::AddPort { port, worker: Some(1) }))
    );
    assert_eq!(
        read("move_queue", "queue = \"p0:3\"\nworker = 2"),
        Ok(Request::Change(Command::MoveQueue {
            queue: QueueName { port: "p0".into(), queue: 3 },
            worker: 2
        }))
    );
    assert_eq!(
        read("set_batching", "port = \"p0\"\npackets = 16\ndelay = \"2us\""),
        Ok(Request::Change(Command::SetBatching {
            port: "p0".into(),
            packets: NonZeroU16::new(16),
            delay: Some(Duration::from_micros(2)),
        }))
    );
    for args in ["level = \"info\"", "filter = \"info\""] {
        assert_eq!(read("set_log", args), Ok(Request::Change(Command::SetLog { filter: "info".into() })));
    }
}

#[test]
fn what_is_wrong_is_said_with_what_would_be_right() {
    for (name, args, said) in [
        ("statsu", "", "unknown_command: \"statsu\" is no command; did you mean status?"),
        ("zzz", "", "unknown_command: \"zzz\" is no command; there are hello, status,"),
        ("", "", "unknown_command: \"\" is no command; there are"),
        ("status", "all = true", "bad_request: status: all: is not known: there are no keys here"),
        ("remove_port", "nam = \"p0\"", "bad_request: remove_port: nam: is not known; did you mean name?"),
        ("remove_port", "", "bad_request: remove_port: name: is missing: the port to remove"),
        ("remove_port", "name = 1", "name: 1 is not a string"),
        ("move_queue", "queue = \"p0\"\nworker = 1", "queue: \"p0\" is no queue: write PORT:NUMBER, as p0:0"),
        ("move_queue", "queue = \":0\"\nworker = 1", "is no queue"),
        ("move_queue", "queue = \"p0:65536\"\nworker = 1", "is no queue"),
        ("move_queue", "queue = \"p0:0\"", "worker: is missing"),
        ("move_queue", "queue = \"p0:0\"\nworker = -1", "worker: -1 is not a whole number from 0 to 1023"),
        ("set_batching", "port = \"p0\"", "one of both is needed"),
        ("set_batching", "port = \"p0\"\npackets = 0", "packets: 0 is not a whole number from 1 to 65535"),
        ("set_batching", "port = \"p0\"\ndelay = \"fast\"", "delay: \"fast\" is not a time"),
        ("set_log", "", "level: is missing"),
        ("set_log", "level = \"loud\"", "level: \"loud\" is not one of \"off\", \"error\""),
        ("set_log", "level = \"info\"\nfilter = \"info\"", "use one of both"),
        ("add_port", "", "port: is missing"),
        ("add_port", "port = \"p0\"", "port: \"p0\" is not a table"),
    ] {
        let e = read(name, args).unwrap_err();
        assert!(e.contains(said), "{name} {args}: {e}");
    }
}

#[test]
fn every_name_is_a_command_and_every_code_another_word() {
    for name in Request::NAMES {
        let refused = read(name, "no_such_key = 1").unwrap_err();
        assert!(refused.contains("no_such_key: is not known"), "{refused}");
    }
    let mut codes: Vec<_> = Code::ALL.iter().map(ToString::to_string).collect();
    codes.sort();
    codes.dedup();
    assert_eq!(codes.len(), Code::ALL.len());
}

#[test]
fn refusals_name_ports_that_there_are() {
    let said = |name, ports: &[&'static str]| Refusal::no_such_port(name, ports.iter().copied()).message;
    assert_eq!(said("p9", &[]), "no port is called \"p9\"; there are no ports");
    assert_eq!(said("wan0", &["wan", "lan"]), "no port is called \"wan0\"; did you mean wan?");
    assert_eq!(said("x", &["wan", "lan"]), "no port is called \"x\"; there are wan, lan");
}
