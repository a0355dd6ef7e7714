//! The cycle counter.

use std::sync::OnceLock;
use std::time::Instant;

/// The time stamp counter (aarch64: the virtual counter; elsewhere and under Miri: nanoseconds).
///
/// It counts at a constant rate, [`tsc_hz`], whatever the core's clock does.
#[inline(always)]
pub fn cycles() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: reading the counter has no requirements.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        let t: u64;
        // SAFETY: reading the counter has no requirements.
        unsafe { core::arch::asm!("mrs {0}, cntvct_el0", out(reg) t, options(nomem, nostack)) };
        t
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// Ticks of [`cycles`] in a second: measured once, against the system's monotonic clock over 20 ms.
pub fn tsc_hz() -> u64 {
    static HZ: OnceLock<u64> = OnceLock::new();
    *HZ.get_or_init(|| {
        if cfg!(miri) {
            return 1_000_000_000;
        }
        let (t0, c0) = both();
        while t0.elapsed().as_millis() < 20 {
            core::hint::spin_loop();
        }
        let (t1, c1) = both();
        ((c1 - c0) as f64 / (t1 - t0).as_secs_f64()).round() as u64
    })
}

/// Both clocks at one moment: of some looks at them the quickest, so that a thread that loses its core between the two
/// does not take the pause for ticks.
fn both() -> (Instant, u64) {
    let look = |_| {
        let (before, at) = (cycles(), Instant::now());
        (cycles() - before, at, before)
    };
    (0..16).map(look).min_by_key(|l| l.0).map_or_else(|| (Instant::now(), cycles()), |l| (l.1, l.2 + l.0 / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_goes_forward_at_its_rate() {
        let hz = tsc_hz();
        assert!((1_000_000..20_000_000_000).contains(&hz), "{hz}");
        let a = cycles();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(cycles() - a >= hz / 1000, "two milliseconds are at least one");
    }
}
