//! Edges that start at one port.

use graph::{Exit, ExitInfo, Exits, Leads, Stage};
use mem::Batch;

/// Most ports that edges can start at.
pub(super) const MOST: usize = 32;

/// Sends packets on by the port they came from: what `from = "rx:PORT"` means. Exit `rest` is for all other ports.
pub struct ByPort {
    /// The exit of each port, by number.
    exits: Vec<ByPortExit>,
}

/// The exit of one port, or the last for those that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByPortExit(u8);

impl From<ByPortExit> for u8 {
    fn from(exit: ByPortExit) -> Self {
        exit.0
    }
}

const REST: ByPortExit = ByPortExit(MOST as u8);
const NAMES: [&str; MOST + 1] = [
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18",
    "19", "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "rest",
];

impl Exit for ByPortExit {
    const EXITS: &'static [ExitInfo] = &{
        let mut all = [ExitInfo { name: "", leads: Leads::Drop(meter::DropReason::NoRoute) }; MOST + 1];
        let mut i = 0;
        while i <= MOST {
            all[i].name = NAMES[i];
            i += 1;
        }
        all
    };
}

impl ByPort {
    /// Packets of the port at place `i` of `ports` leave by exit `i`.
    pub fn new(ports: &[u16]) -> Self {
        let mut exits = vec![REST; ports.iter().max().map_or(0, |&p| usize::from(p) + 1)];
        for (i, &p) in ports.iter().take(MOST).enumerate() {
            exits[usize::from(p)] = ByPortExit(i as u8);
        }
        Self { exits }
    }
    fn exit(&self, port: u16) -> ByPortExit {
        self.exits.get(usize::from(port)).copied().unwrap_or(REST)
    }
}

impl Stage for ByPort {
    type Exit = ByPortExit;
    const KIND: &'static str = "by_port";
    fn process(&mut self, batch: &mut Batch, exits: &mut Exits<'_, ByPortExit>) {
        if let Some(port) = batch.one_port() {
            return exits.set_all(self.exit(port));
        }
        for (i, p) in batch.iter_mut().enumerate() {
            exits.set(i, self.exit(p.port()));
        }
    }
}
