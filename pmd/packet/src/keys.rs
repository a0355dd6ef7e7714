//! The driver's own keys.

use core::time::Duration;

use config::KeyError;
use port::PortError;
use toml::Table;

use crate::NAME;
use crate::layout::fanout;
use crate::rx_ring::{FRAME_FRONT, RxShape};

/// Pages of the kernel, of which a block is a multiple.
const PAGE: u64 = 4096;
/// The default block: a segmented frame of 64 KiB and its headers fit.
const BLOCK: u64 = 128 << 10;
/// The kernel gives blocks in one piece.
const MOST_BLOCK: u64 = 16 << 20;
/// Default blocks at least, and bytes of default blocks at most.
const LEAST_BLOCKS: u64 = 8;
const MOST_BYTES: u64 = 64 << 20;

/// What the configuration says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The interface.
    pub interface: String,
    /// Receive frames for everyone.
    pub promiscuous: bool,
    /// How frames are spread over queues: `PACKET_FANOUT_*`.
    pub fanout: u16,
    /// Bytes of a block.
    pub block: u32,
    /// Blocks, if said.
    pub blocks: Option<u32>,
    /// Milliseconds after which a block that is not full is handed over.
    pub retire_ms: u32,
    /// Send past the interface's queueing discipline.
    pub qdisc_bypass: bool,
    /// Others may use the interface as well.
    pub shared: bool,
}

impl Keys {
    pub const KNOWN: [&str; 8] =
        ["interface", "promiscuous", "fanout", "block", "blocks", "retire", "qdisc_bypass", "shared"];

    /// Reads and checks all keys.
    pub fn read(cfg: &Table) -> Result<Self, PortError> {
        Self::parse(cfg).map_err(|e| PortError::key(NAME, e))
    }

    fn parse(cfg: &Table) -> Result<Self, KeyError> {
        let keys = config::Keys::new(cfg, &Self::KNOWN)?;
        let words = [("hash", fanout::HASH), ("cpu", fanout::CPU), ("lb", fanout::LB), ("qm", fanout::QM)];
        let block = keys.size("block")?.unwrap_or(BLOCK);
        if !block.is_multiple_of(PAGE) || !(PAGE..=MOST_BLOCK).contains(&block) {
            let problem = format!("{block} bytes are no block: use a multiple of 4096 from 4K to 16M");
            return Err(KeyError::new("block", problem));
        }
        let most = u64::from(u32::MAX) / block;
        let blocks = match keys.has("blocks") {
            true => Some(keys.number("blocks", 0, 2..=most.min(1 << 16))? as u32),
            false => None,
        };
        Ok(Self {
            interface: keys
                .need_text("interface", "the name of a network interface, as in `ip link`")?
                .to_owned(),
            promiscuous: keys.flag("promiscuous", true)?,
            fanout: keys.word("fanout", fanout::HASH, &words)?,
            block: block as u32,
            blocks,
            retire_ms: retire(keys.time("retire", Duration::from_millis(1))?)?,
            qdisc_bypass: keys.flag("qdisc_bypass", true)?,
            shared: keys.flag("shared", false)?,
        })
    }

    /// The receive ring for `entries` frames of up to `longest` bytes.
    pub fn rx_shape(&self, entries: u32, longest: u32) -> RxShape {
        let block = u64::from(self.block);
        let bytes = u64::from(entries) * (u64::from(longest) + u64::from(FRAME_FRONT));
        let fits = bytes.div_ceil(block).min(MOST_BYTES / block).max(LEAST_BLOCKS);
        RxShape { block: self.block, blocks: self.blocks.unwrap_or(fits as u32), retire_ms: self.retire_ms }
    }
}

/// Whole milliseconds, as the kernel counts them.
fn retire(time: Duration) -> Result<u32, KeyError> {
    let ms = time.as_millis();
    match u32::try_from(ms) {
        Ok(n @ 1..=1000) if Duration::from_millis(n.into()) == time => Ok(n),
        _ => {
            let problem =
                format!("{time:?} is not one the kernel can keep: use whole milliseconds, 1ms to 1s");
            Err(KeyError::new("retire", problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Keys, String> {
        Keys::read(&text.parse().unwrap()).map_err(|e| e.to_string())
    }

    #[test]
    fn defaults_hold_a_ring_of_whole_frames() {
        let k = read("interface = \"eth1\"").unwrap();
        assert_eq!((k.promiscuous, k.fanout, k.qdisc_bypass, k.shared), (true, fanout::HASH, true, false));
        let shape = k.rx_shape(1024, 1518);
        assert_eq!(shape, RxShape { block: 128 << 10, blocks: 13, retire_ms: 1 });
        assert_eq!(k.rx_shape(64, 1518).blocks, 8, "never fewer");
        assert_eq!(k.rx_shape(32_768, 65_535).len(), 64 << 20, "never more than 64 MiB unasked");
        let r = shape.request();
        assert_eq!((r.frame_nr, r.block_size % 4096), (r.block_nr, 0));
    }

    #[test]
    fn wrong_values_say_what_would_be_right() {
        let wrong = |more: &str| read(&format!("interface = \"e\"\n{more}")).unwrap_err();
        assert!(read("").unwrap_err().starts_with("packet: interface: is missing: the name of a network"));
        assert_eq!(wrong("fanot = \"cpu\""), "packet: fanot: is not known; did you mean fanout?");
        assert!(wrong("fanout = \"rnd\"").ends_with("is not one of \"hash\", \"cpu\", \"lb\", \"qm\""));
        assert!(wrong("block = \"5000\"").ends_with("use a multiple of 4096 from 4K to 16M"));
        assert!(wrong("block = \"32M\"").ends_with("from 4K to 16M"));
        assert!(wrong("blocks = 1").ends_with("1 is not a whole number from 2 to 32767"));
        for time in ["0", "1500us", "2s"] {
            assert!(
                wrong(&format!("retire = {time:?}")).ends_with("whole milliseconds, 1ms to 1s"),
                "{time}"
            );
        }
        assert_eq!(read("interface = \"e\"\nretire = \"1s\"\nblock = \"4K\"").unwrap().retire_ms, 1000);
    }
}
