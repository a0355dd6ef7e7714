//! Captures through the command: what was in them comes out as it was.

use std::path::{Path, PathBuf};

use crate::process::{Process, has, program, skip};
use crate::rig::Dir;
use crate::switch::{Mode, Setup, accounted_for, binary, each_mode, write};

each_mode!(captures_come_out_as_they_went_in);

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
fn frames(file: &Path) -> Vec<String> {
    let file = file.to_str().expect("a plain path");
    let words = ["tcpdump", "-n", "-tt", "--time-stamp-precision=nano", "-xx", "-r", file];
    let text = Process::start(&mut program(&words)).end().expect(0).stdout;
    let mut all: Vec<String> = Vec::new();
    for line in text.lines() {
        match all.last_mut() {
            Some(last) if line.starts_with('\t') => *last += line,
            _ => all.push(line.to_owned()),
        }
    }
    all
}

/// In a pipeline flows may overtake each other, so that only captures of one flow keep their order.
fn has_order(mode: Mode, file: &Path) -> bool {
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
