//! What the device counts (8.2.3.23): registers that clear when read, summed up here.

use hw::{Bar, Reg};
use ixgbe_defs::stats as reg;
use port::DeviceCounts;

/// Sums since the device was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Good frames that passed the filters (GPRC).
    pub rx_good: u64,
    /// Frames that receive queues got, by queue (QPRC).
    pub rx_queue: [u64; QUEUES],
    /// Frames that found no descriptor in a queue that drops (QPRDC), by queue.
    pub rx_dropped: [u64; QUEUES],
    /// Frames that found no room in the packet buffer (MPC).
    pub rx_missed: u64,
    /// Frames with a bad check sequence (CRCERRS), a wrong length field (RLEC), or too short or long (RUC, RFC, ROC,
    /// RJC).
    pub rx_errors: u64,
    /// Good frames sent (GPTC).
    pub tx_good: u64,
    /// Bytes of good frames received, check sequence included (GORC).
    pub rx_bytes: u64,
    /// Bytes of good frames sent, check sequence included (GOTC).
    pub tx_bytes: u64,
}

const QUEUES: usize = reg::QUEUE_COUNTERS as usize;
const ERRORS: [Reg; 6] = [reg::CRCERRS, reg::RLEC, reg::RUC, reg::RFC, reg::ROC, reg::RJC];

/// A 36-bit counter: low, then high, which clears both (8.2.3.23).
fn wide(bar: &Bar, low: Reg, high: Reg) -> u64 {
    let low = u64::from(bar.read32(low));
    low | u64::from(bar.read32(high) & 0xF) << 32
}

impl Statistics {
    /// Adds what was counted since the registers were last read.
    pub fn read(&mut self, bar: &Bar) {
        let get = |r| u64::from(bar.read32(r));
        self.rx_good += get(reg::GPRC);
        self.tx_good += get(reg::GPTC);
        for n in 0..reg::QUEUE_COUNTERS {
            self.rx_queue[n as usize] += get(reg::qprc(n));
            self.rx_dropped[n as usize] += get(reg::qprdc(n));
        }
        self.rx_missed += (0..8).map(|n| get(reg::mpc(n))).sum::<u64>();
        self.rx_errors += ERRORS.into_iter().map(get).sum::<u64>();
        self.rx_bytes += wide(bar, reg::GORCL, reg::GORCH);
        self.tx_bytes += wide(bar, reg::GOTCL, reg::GOTCH);
    }

    /// As the seam has them.
    pub fn counts(&self) -> DeviceCounts {
        DeviceCounts {
            rx_good: Some(self.rx_good),
            rx_delivered: Some(self.rx_queue.iter().sum()),
            tx_sent: Some(self.tx_good),
            rx_missed: Some(self.rx_missed + self.rx_dropped.iter().sum::<u64>()),
            rx_errors: Some(self.rx_errors),
        }
    }
}

/// 4.6.3: statistics start from zero, which reading sees to.
pub fn clear(bar: &Bar) {
    Statistics::default().read(bar);
}
