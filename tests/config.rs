//! What a configuration file may say, and what is said about one that is wrong.
#![forbid(unsafe_code)]

use std::path::Path;
use std::time::Duration;

use ringwright::rt::config::{Assignment, Config, ConfigError, Kinds, Wiring, assign};
use ringwright::rt::{Idle, Role};
use ringwright::{drivers, kinds};

struct Whole {
    config: Config,
    queues: Vec<Assignment>,
    wiring: Vec<Option<Wiring>>,
}

fn read(text: &str) -> Result<Whole, ConfigError> {
    let (drivers, stages) = (drivers::all(), kinds::all());
    let kinds = Kinds { drivers: &drivers, stages: &stages };
    let config = Config::parse("sw.toml", "sw", text, kinds)?;
    let queues = assign(&config)?;
    let wiring = config.wire(&config.recipes(kinds)?)?;
    Ok(Whole { config, queues, wiring })
}

/// Two ports and a worker, with `more` behind.
fn two_ports(more: &str) -> String {
    format!(
        "version = 1\n[[port]]\nname = \"p0\"\ndriver = \"null\"\n[[port]]\nname = \"p1\"\ndriver = \"null\"\n\
         [[worker]]\nrx = [\"p0\", \"p1\"]\n{more}"
    )
}

/// The first problem: its line and column, and all that is shown.
#[track_caller]
fn refused(text: &str) -> ((usize, usize), String) {
    let Err(e) = read(text) else { panic!("accepted: {text}") };
    ((e.problems[0].line, e.problems[0].column), e.to_string())
}

#[test]
fn everything_that_a_file_can_say_is_read() {
    let text = r#"
version = 1
[memory]
pages = "2M"
buffers = 8192
frame_room = 4096
[telemetry]
listen = ""
control = "/tmp/x-NAME.sock"
[[port]]
name = "p0"
driver = "null"
queues = 2
rx_ring = 512
tx_ring = 256
doorbell = { packets = 16, delay = "2us" }
prefetch = "auto"
on_full = "wait"
max_frame = 9018
frames = "udp"
[[port]]
name = "p1"
driver = "null"
queues = 2
prefetch = 0
[[worker]]
core = 0
rx = ["p0:0", "p1"]
idle = "sleep"
idle_bound = "20us"
[[worker]]
core = 1
role = "run-to-completion"
rx = ["p0:1"]
stages = ["sw"]
[[stage]]
name = "sw"
kind = "l2switch"
ageing = "10s"
"#;
    let Whole { config, queues, wiring } = read(text).unwrap();
    assert_eq!(config.memory.buffers, 8192);
    assert_eq!(config.telemetry.listen, None);
    assert_eq!(config.telemetry.control.as_deref(), Some(Path::new("/tmp/x-sw.sock")));
    let p0 = &config.ports[0];
    assert_eq!((p0.queues, p0.rx_ring.entries(), p0.tx_ring.entries()), (2, 512, 256));
    assert_eq!((p0.doorbell_packets, p0.doorbell_delay), (16, Duration::from_micros(2)));
    assert_eq!((p0.max_frame, p0.own.len(), config.ports[1].prefetch), (Some(9018), 1, 0));
    assert_eq!(config.workers[0].idle, Idle::Sleep { bound: Duration::from_micros(20) });
    assert_eq!(config.workers[1].role, Role::RunToCompletion);
    assert_eq!(queues[0].rx, [(0, 0), (1, 0), (1, 1)]);
    assert_eq!(queues[1].rx, [(0, 1)]);
    // The second worker hears only p0, so it sends to p1 alone.
    assert_eq!((&*queues[0].tx, &*queues[1].tx), (&[(0, 0), (1, 0)][..], &[(1, 1)][..]));
    assert_eq!(wiring.iter().flatten().map(Wiring::stages).sum::<usize>(), 2);
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let Whole { config, .. } = read(&two_ports("[[stage]]\nname = \"f\"\nkind = \"forward\"\n")).unwrap();
    assert_eq!((config.memory.buffers, config.memory.frame_room), (16_384, 2048));
    assert_eq!(config.telemetry.listen.map(|a| a.to_string()).as_deref(), Some("127.0.0.1:9464"));
    assert_eq!(config.telemetry.control.as_deref(), Some(Path::new("/run/ringwright/sw.sock")));
    assert_eq!((config.ports[0].rx_ring.entries(), config.ports[0].doorbell_packets), (1024, 32));
    assert_eq!((config.workers[0].core, config.workers[0].idle), (None, Idle::Busy));
}

#[test]
fn wrong_keys_and_values_are_shown_where_they_stand() {
    let stage = "[[stage]]\nname = \"f\"\nkind = \"forward\"\n";
    let base = two_ports(stage);
    for (from, to, place, says) in [
        ("version = 1", "", (1, 1), "version: is missing: write version = 1"),
        ("version = 1", "version = 2", (1, 11), "version: 2 is not a whole number from 1 to 1"),
        ("version = 1", "version = 1\nprot = 3", (2, 1), "prot: is not known; did you mean port?"),
        ("driver = \"null\"\n[[port]]", "driver = \"nul\"\n[[port]]", (4, 10), "did you mean \"null\"?"),
        (
            "driver = \"null\"\n[[port]]",
            "driver = \"null\"\nqueue = 2\n[[port]]",
            (5, 1),
            "queue: is not known; did you mean queues?",
        ),
        (
            "driver = \"null\"\n[[port]]",
            "driver = \"null\"\nfraems = 2\n[[port]]",
            (5, 1),
            "did you mean frames?",
        ),
        (
            "driver = \"null\"\n[[port]]",
            "driver = \"null\"\nrx_ring = 1000\n[[port]]",
            (5, 11),
            "1000 is not a power of two",
        ),
        (
            "driver = \"null\"\n[[port]]",
            "driver = \"null\"\ndoorbell = { packets = 0 }\n[[port]]",
            (5, 24),
            "doorbell.packets: 0 is not",
        ),
        (
            "driver = \"null\"\n[[port]]",
            "driver = \"null\"\ndoorbell = { delay = \"soon\" }\n[[port]]",
            (5, 22),
            "write 50us, 10ms, 5s or 2m",
        ),
        (
            "driver = \"null\"\n[[port]]",
            "driver = \"null\"\nprefetch = \"far\"\n[[port]]",
            (5, 12),
            "nor \"auto\"",
        ),
        ("name = \"p1\"", "name = \"p0\"", (6, 8), "there are two ports called \"p0\""),
        ("name = \"p1\"", "name = \"P1\"", (6, 8), "\"P1\" is no name"),
        ("name = \"p1\"", "name = \"tx\"", (6, 8), "not rx, tx or drop"),
        ("rx = [\"p0\", \"p1\"]", "rx = [\"p0\", \"p2\"]", (9, 6), "there is no port \"p2\"; did you mean"),
        (
            "rx = [\"p0\", \"p1\"]",
            "rx = [\"p0\", \"p1:1\"]",
            (9, 13),
            "p1 has queues 0 to 0, not 1: set queues = 2",
        ),
        ("rx = [\"p0\", \"p1\"]", "rx = [\"p0\", \"p1:x\"]", (9, 6), "is not PORT or PORT:QUEUE"),
        ("rx = [\"p0\", \"p1\"]", "rx = [\"p0\", \"p0\"]", (9, 13), "is worker 0's already"),
        (
            "rx = [\"p0\", \"p1\"]",
            "",
            (8, 1),
            "rx: is missing: a worker of role \"run-to-completion\" receives",
        ),
        (
            "rx = [\"p0\", \"p1\"]",
            "rx = [\"p0\", \"p1\"]\nrole = \"rxx\"",
            (10, 8),
            "is not one of \"run-to-completion\"",
        ),
        (
            "rx = [\"p0\", \"p1\"]",
            "rx = [\"p0\", \"p1\"]\nrole = \"rx\"",
            (8, 1),
            "hand packets to workers of role \"process\"",
        ),
        ("rx = [\"p0\", \"p1\"]", "rx = [\"p0\", \"p1\"]\nidle = \"interrupt\"", (10, 8), "use \"sleep\""),
        (
            "rx = [\"p0\", \"p1\"]",
            "rx = [\"p0\", \"p1\"]\nidle_bound = \"5us\"",
            (10, 14),
            "goes with idle = \"sleep\" only",
        ),
        (
            "rx = [\"p0\", \"p1\"]",
            "rx = [\"p0\", \"p1\"]\nstages = [\"g\"]",
            (10, 11),
            "there is no stage \"g\"; did you mean \"f\"?",
        ),
        ("kind = \"forward\"", "kind = \"foward\"", (12, 8), "did you mean \"forward\"?"),
        (
            "kind = \"forward\"",
            "kind = \"forward\"\npairs = [[\"p0\", \"p9\"]]",
            (13, 9),
            "there is no port \"p9\"; did you mean",
        ),
        (
            "kind = \"forward\"",
            "kind = \"forward\"\npair = []",
            (13, 1),
            "pair: is not known; did you mean pairs?",
        ),
        (
            "version = 1",
            "version = 1\n[telemetry]\nlisten = \"0.0.0.0:9464\"",
            (3, 10),
            "set allow_remote = true",
        ),
        ("version = 1", "version = 1\n[telemetry]\nlisten = \"9464\"", (3, 10), "is not ADDRESS:PORT"),
        ("version = 1", "version = 1\n[memory]\npages = \"3M\"", (3, 9), "pages"),
        ("version = 1", "version = 1\n[memory]\nbuffers = 1", (3, 11), "from 64 to"),
        ("version = 1", "version = 1\nmemory = 3", (2, 1), "memory is a section: write [memory]"),
        ("version = 1", "version = ", (1, 11), "not TOML"),
    ] {
        assert!(base.contains(from));
        let (at, shown) = refused(&base.replacen(from, to, 1));
        assert!(shown.contains(says), "{to:?} says:\n{shown}\nwanted: {says}");
        assert_eq!(at, place, "{to:?} says:\n{shown}");
    }
}

#[test]
fn all_problems_are_shown_at_once() {
    let e = read("version = 1\n[memory]\nbufers = 3\n[[port]]\nname = \"p0\"\n[[stage]]\nkind = \"x\"\n")
        .err()
        .unwrap();
    assert_eq!(e.problems.len(), 3, "{e}");
}

#[test]
fn edges_are_checked_and_put_in_order() {
    let stages = "[[stage]]\nname = \"n\"\nkind = \"count\"\n[[stage]]\nname = \"t\"\nkind = \"tee\"\n[[stage]]\nname = \"f\"\nkind = \"forward\"\n";
    let edge = |from: &str, to: &str| format!("[[edge]]\nfrom = \"{from}\"\nto = \"{to}\"\n");
    let with = |edges: &[(&str, &str)]| {
        two_ports(stages) + &edges.iter().map(|e| edge(e.0, e.1)).collect::<String>()
    };
    // The stages stand in the file against the packets' way.
    let good = [("rx", "t"), ("t:out", "f"), ("t:copy", "n"), ("n", "drop:filtered")];
    let whole = read(&with(&good)).unwrap();
    assert_eq!(whole.wiring[0].as_ref().unwrap().stage_places().collect::<Vec<_>>(), [1, 0, 2]);
    let by_port = [("rx:p0", "t"), ("rx:p1", "tx:p0"), ("t:out", "f"), ("t:copy", "n"), ("n", "tx")];
    assert_eq!(read(&with(&by_port)).unwrap().wiring[0].as_ref().unwrap().stages(), 4);
    for (edges, says) in [
        (&good[..3], "exit \"out\" of stage \"n\" leads nowhere"),
        (&good[1..], "no edge starts at \"rx:p0\""),
        (&[("rx", "t"), ("t:out", "f"), ("t:copy", "tx")], "no edge leads to stage \"n\""),
        (&[("rx", "t"), ("t:out", "f"), ("t:copy", "n"), ("n", "t")], "edges go forward only"),
        (&[("rx", "t"), ("rx", "f")], "there are two edges from \"rx\""),
        (&[("rx", "t"), ("t", "f"), ("t:out", "n")], "there are two edges from exit \"out\""),
        (&[("rx", "tt")], "there is no stage \"tt\""),
        (&[("rx", "tx:p7")], "there is no port \"p7\""),
        (&[("rx", "drop:gone")], "\"gone\" is no drop reason"),
        (&[("rx", "t:out")], "is not a stage, tx, tx:PORT or drop:REASON"),
        (&[("rx:p7", "t")], "there is no port \"p7\""),
        (&[("t:cpoy", "t")], "stage \"t\" has no exit \"cpoy\"; it has out, copy"),
        (&[], "several stages need [[edge]]s"),
    ] {
        let (_, shown) = refused(&with(edges));
        assert!(shown.contains(says), "{edges:?} says:\n{shown}\nwanted: {says}");
    }
}

#[test]
fn a_straight_line_needs_no_edges() {
    let stages = "stages = [\"n\", \"f\"]\n[[stage]]\nname = \"f\"\nkind = \"forward\"\n[[stage]]\nname = \"n\"\nkind = \"count\"\n";
    let whole = read(&two_ports(stages)).unwrap();
    assert_eq!(whole.wiring[0].as_ref().unwrap().stage_places().collect::<Vec<_>>(), [1, 0]);
    let (_, shown) =
        refused(&two_ports("stages = [\"t\", \"t\"]\n[[stage]]\nname = \"t\"\nkind = \"tee\"\n"));
    assert!(shown.contains("each stage once"), "{shown}");
    let (_, shown) = refused(&two_ports("stages = [\"t\"]\n[[stage]]\nname = \"t\"\nkind = \"tee\"\n"));
    assert!(shown.contains("exit \"copy\" of stage \"t\" leads nowhere"), "{shown}");
}

#[test]
fn a_pipeline_shares_queues_out_by_role() {
    let ports = |queues: u16| {
        format!(
            "version = 1\n[[port]]\nname = \"p0\"\ndriver = \"null\"\nqueues = {queues}\n[[port]]\nname = \"p1\"\ndriver = \"null\"\nqueues = {queues}\n\
             [[stage]]\nname = \"f\"\nkind = \"forward\"\n"
        )
    };
    let rx = "[[worker]]\nrole = \"rx\"\nrx = [\"p0\", \"p1\"]\n";
    let (process, tx) = ("[[worker]]\nrole = \"process\"\n", "[[worker]]\nrole = \"tx\"\n");
    let whole = read(&[&*ports(1), rx, process, process, tx].concat()).unwrap();
    let tx_of: Vec<_> = whole.queues.iter().map(|a| a.tx.len()).collect();
    assert_eq!(tx_of, [0, 0, 0, 2]);
    assert!(whole.wiring[0].is_none() && whole.wiring[1].is_some() && whole.wiring[3].is_none());
    // Two that only send share the ports out.
    let whole = read(&[&*ports(1), rx, process, tx, tx].concat()).unwrap();
    assert_eq!((&*whole.queues[2].tx, &*whole.queues[3].tx), (&[(0, 0)][..], &[(1, 0)][..]));
    // Without any, those that process send, each by a queue of its own.
    let whole = read(&[&*ports(2), rx, process, process].concat()).unwrap();
    assert_eq!((&*whole.queues[1].tx, &*whole.queues[2].tx), (&[(0, 0), (1, 0)][..], &[(0, 1), (1, 1)][..]));
    let (_, shown) = refused(&[&*ports(1), rx, process, process].concat());
    assert!(shown.contains("set queues = 2"), "{shown}");
    let (_, shown) = refused(&[&*ports(1), process, tx].concat());
    assert!(shown.contains("get packets from workers of role \"rx\""), "{shown}");
    let (_, shown) = refused(&[&*ports(1), "[[worker]]\nrole = \"process\"\nrx = [\"p0\"]\n"].concat());
    assert!(shown.contains("receives from workers, not from ports"), "{shown}");
}

#[test]
fn whatever_the_text_is_nothing_panics() {
    let base = two_ports(
        "[[stage]]\nname = \"f\"\nkind = \"forward\"\n[[edge]]\nfrom = \"rx\"\nto = \"f\"\n[[edge]]\nfrom = \"f\"\nto = \"tx\"\n",
    );
    read(&base).unwrap();
    for cut in 0..base.len() {
        let _ = read(&base[..cut]);
        for with in ["\"", "[", "\u{1F980}", "-1", "{}", "\t"] {
            let _ = read(&format!("{}{with}{}", &base[..cut], &base[cut..]));
        }
    }
}
