//! Captures through the command: what was in them comes out as it was.

use std::path::{Path, PathBuf};

use crate::process::{Process, has, program, skip};
use crate::rig::{Dir, Net, is_bridge};
use crate::switch::{Mode, Running, Setup, accounted_for, binary, each_mode, write};
use crate::traffic::{Sniffer, ping_output};

each_mode!(captures_come_out_as_they_went_in captures_go_over_wires);

/// The captures of real protocols.
fn captures() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let files = dir.read_dir().expect("captures").map(|entry| entry.expect("a name").path());
    let capture = |p: &PathBuf| p.extension().is_some_and(|e| e == "pcap" || e == "pcapng");
    let mut all: Vec<_> = files.filter(capture).collect();
    all.sort();
    assert!(all.len() >= 10, "{all:?}");
    all
}

/// All frames of a capture with their stamps and bytes, as tcpdump reads them.
pub fn frames(file: &Path) -> Vec<String> {
    let file = file.to_str().expect("a plain path");
    let words = ["tcpdump", "-n", "-tt", "--time-stamp-precision=nano", "-xx", "-r", file];
    let text = Process::start(&mut program(&words)).end().expect(0).stdout;
    group(text.lines().map(str::to_owned).collect())
}

/// One line for each frame, of those that tcpdump prints: one about it, then some with its bytes.
pub fn group(lines: Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in lines {
        match all.last_mut() {
            Some(last) if line.starts_with('\t') => *last += &line,
            _ => all.push(line),
        }
    }
    all
}

/// In a pipeline flows may overtake each other, so that only captures of one flow keep their order.
pub fn has_order(mode: Mode, file: &Path) -> bool {
    mode == Mode::RunToCompletion || file.file_stem().is_some_and(|s| s == "tcp-data")
}

fn captures_come_out_as_they_went_in(mode: Mode) {
    if !has("tcpdump") {
        return skip("tcpdump is not installed: deploy/setup.sh test");
    }
    for format in ["pcap", "pcapng"] {
        // All at once, each by a way of its own.
        let dir = Dir::new();
        let mut setup = Setup { memory: "buffers = 65536".to_owned(), ..Setup::new(mode) };
        let (mut pairs, mut ins) = (Vec::new(), Vec::new());
        let files: Vec<_> = captures()
            .into_iter()
            .enumerate()
            .map(|(i, from)| (from, dir.join(format!("{i}.{format}"))))
            .collect();
        for (i, (from, to)) in files.iter().enumerate() {
            let (name, out) = (format!("in{i}"), format!("out{i}"));
            setup.ports.push((
                name.clone(),
                format!("driver = \"pcap\"\nread = {from:?}\nrx_ring = 64\ntx_ring = 64"),
            ));
            setup.ports.push((
                out.clone(),
                format!("driver = \"pcap\"\nwrite = {to:?}\nrx_ring = 64\ntx_ring = 64\nsync = false"),
            ));
            pairs.push([name.clone(), out]);
            ins.push(name);
        }
        setup.receive = Some(ins);
        setup.stages = format!("[[stage]]\nname = \"f\"\nkind = \"forward\"\nroutes = {pairs:?}\n");
        let config = write(&dir, "files", &setup.text(&dir));
        // Nobody ends it: its inputs do.
        let status =
            accounted_for(Process::start(&mut program(&[&binary(), "run", "--json", &config])).end());
        let mut count = 0;
        for (from, to) in &files {
            let (mut was, mut is) = (frames(from), frames(to));
            if !has_order(mode, from) {
                was.sort();
                is.sort();
            }
            assert_eq!(is, was, "{} as {format}", from.display());
            count += was.len();
        }
        assert_eq!(status["conservation"]["sent"], count, "{}", status["conservation"]);
    }
}

/// A station that plays captures is a second run of the command, in its own namespace; the one in the middle joins two
/// wires, and nothing else.
fn captures_go_over_wires(mode: Mode) {
    let Some(net) = Net::new(2).filter(|_| !is_bridge()) else { return };
    let forward = || "[[stage]]\nname = \"f\"\nkind = \"forward\"\n".to_owned();
    let running = Running::start(&net, &Setup { stages: forward(), ..Setup::switch(&net, mode) });
    let [a, b] = &net.stations[..] else { unreachable!() };
    for name in ["tcp-data", "vlan"] {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures").join(name).with_extension("pcap");
        let mut was = bytes(&frames(&file));
        let mut setup = Setup::new(Mode::RunToCompletion);
        setup.ports.push(("file".to_owned(), format!("driver = \"pcap\"\nread = {file:?}\npace = \"1K\"")));
        setup.ports.push(("wire".to_owned(), "driver = \"packet\"\ninterface = \"eth0\"".to_owned()));
        setup.receive = Some(vec!["file".to_owned()]);
        setup.stages = forward();
        let config = write(&net.dir, "player", &setup.text(&net.dir));
        let filter = "ether host 02:00:00:00:00:01 or ether host 02:00:00:00:42:01";
        let sniffer = Sniffer::with(&b.ns, "eth0", "in", filter, &["-xx", "-s", "4000"]);
        let before = b.packets("rx");
        // What comes in at the wire that it plays into is none of its business.
        let noise = ping_output(b, "10.77.0.1", "-c 1 -W 1");
        assert_eq!(noise.code(), Some(0), "{}", noise.stdout);
        accounted_for(a.ns.run(&[&binary(), "run", "--json", &config]));
        net.until(|| match b.packets("rx") - before {
            n if n >= was.len() as u64 => Ok(()),
            n => Err(format!("{n} of {}", was.len())),
        });
        let mut is = bytes(&group(sniffer.stop()));
        if !has_order(mode, &file) {
            was.sort();
            is.sort();
        }
        assert_eq!(is, was, "{name}");
    }
    running.stop();
}

/// The bytes of frames, without what tcpdump says about them.
pub fn bytes(frames: &[String]) -> Vec<String> {
    frames.iter().map(|f| f.split_once('\t').map_or("", |(_, bytes)| bytes).to_owned()).collect()
}
