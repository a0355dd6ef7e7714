//! Registers (82599 8.2.3) and, beside each, a module of its bits. Fields wider than a bit come as mask and shift.

mod device;
mod receive;
mod transmit;

pub use device::*;
pub use receive::*;
pub use transmit::*;

#[cfg(test)]
mod tests {
    use hw::Reg;

    use super::*;
    use crate::Queue;

    fn q(n: u8) -> Queue {
        Queue::new(n).expect("a queue of the device")
    }

    #[test]
    fn receive_queues_come_in_two_blocks() {
        assert_eq!((rdbal(q(0)), rdt(q(63))), (Reg(0x01000), Reg(0x01FD8)));
        assert_eq!((rdbal(q(64)), rxdctl(q(127))), (Reg(0x0D000), Reg(0x0DFE8)));
        assert_eq!(srrctl(q(64)), Reg(0x0D014));
    }

    #[test]
    fn transmit_queues_come_in_one_block() {
        assert_eq!((tdbal(q(0)), tdt(q(1)), tdwbah(q(127))), (Reg(0x06000), Reg(0x06058), Reg(0x07FFC)));
    }

    #[test]
    fn there_is_no_queue_128() {
        assert_eq!(Queue::new(128), None);
    }

    #[test]
    fn every_register_lies_in_the_window() {
        for r in [rah(127), mpsar(255), vfta(127), psrtype(63), GCR_EXT, SW_FW_SYNC, txpbsize(7)] {
            assert!(r.0 as usize + 4 <= crate::BAR_BYTES && r.0 % 4 == 0, "{r:?}");
        }
    }
}
