//! A capture whose disk fills up while the switch goes on.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::rig::{Net, is_bridge};
use crate::switch::{Mode, Running, Setup, assert_balanced, each_mode};
use crate::traffic::{flow_while, ping};

each_mode!(a_full_disk_ends_the_capture_alone);

/// A small disk, gone with this.
struct SmallDisk<'n>(&'n Net);

impl<'n> SmallDisk<'n> {
    fn mount(net: &'n Net) -> Self {
        let at = net.dir.join("small");
        fs::create_dir(&at).expect("a directory of ours");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=128k", "small"]).arg(&at).status();
        assert!(mounted.is_ok_and(|s| s.success()), "a file system in memory");
        Self(net)
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.dir.join("small")).status();
    }
}

/// What all ports receive goes to the switch, and a copy into a capture.
const STAGES: &str = r#"
[[stage]]
name = "copy"
kind = "tee"
[[stage]]
name = "sw"
kind = "l2switch"
ports = ["p0", "p1"]
[[edge]]
from = "rx"
to = "copy"
[[edge]]
from = "copy:out"
to = "sw"
[[edge]]
from = "copy:copy"
to = "tx:file"
[[edge]]
from = "sw"
to = "tx"
"#;

fn a_full_disk_ends_the_capture_alone(mode: Mode) {
    let Some(net) = Net::new(2).filter(|_| !is_bridge()) else { return };
    let disk = SmallDisk::mount(&net);
    let mut setup = Setup::switch(&net, mode);
    setup.receive = Some(vec!["p0".to_owned(), "p1".to_owned()]);
    let file = net.dir.join("small/all.pcap");
    setup.ports.push(("file".to_owned(), format!("driver = \"pcap\"\nwrite = {file:?}")));
    setup.stages = STAGES.to_owned();
    let running = Running::start(&net, &setup);
    let [a, b] = &net.stations[..] else { unreachable!() };
    // 200 bytes each: the disk holds some six hundred.
    let (sent, arrived, ()) = flow_while(a, b, Duration::from_micros(500), || {
        net.until(|| match running.status()["ports"][2]["link"]["up"].as_bool() {
            Some(false) => Ok(()),
            up => Err(format!("up is {up:?}")),
        });
    });
    arrived.assert_whole(&net, sent);
    ping(a, &b.ip(), "");
    running.signal("TERM");
    let ended = running.end().expect(1);
    for words in ["all.pcap", "No space left on device"] {
        assert!(ended.stderr.contains(words), "{words:?} is not said: {}", ended.stderr);
    }
    let status = ended.json();
    assert_balanced(&status);
    assert!(status["ports"][2]["drops"]["link_down"].as_u64() > Some(0), "{status:#}");
    assert!(fs::metadata(&file).is_ok_and(|f| f.len() > 64 << 10), "what there was room for is there");
    drop(disk);
}
