//! Sizes, times and rates, as people write them.

use core::time::Duration;

/// How fast packets go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Packets per second.
    Packets(f64),
    /// Bits per second on the wire.
    Bits(f64),
}

impl Rate {
    /// Packets per second for frames of `bytes` on the wire, check sequence, preamble and gap included.
    pub fn packets_per_second(self, bytes: f64) -> f64 {
        match self {
            Self::Packets(p) => p,
            Self::Bits(b) => b / (bytes * 8.0),
        }
    }
}

/// Bytes: `4K`, `2M`, `1G` (powers of 1024) or a plain number.
///
/// # Errors
/// What would be right.
pub fn size(s: &str) -> Result<u64, String> {
    let (number, unit) = split(s);
    let shift = match unit {
        "" | "B" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => 64,
    };
    let n = number.parse::<u64>().ok().filter(|_| shift < 64);
    n.and_then(|n| n.checked_mul(1 << shift))
        .ok_or_else(|| format!("{s:?} is not a size: write 4096, 4K, 2M or 1G"))
}

/// A time: `50us`, `10ms`, `5s`, `2m`.
///
/// # Errors
/// What would be right.
pub fn time(s: &str) -> Result<Duration, String> {
    if s == "0" {
        return Ok(Duration::ZERO);
    }
    humantime::parse_duration(s).map_err(|_| format!("{s:?} is not a time: write 50us, 10ms, 5s or 2m"))
}

/// A rate: `1.5M` packets per second, or `10Gbps` on the wire.
///
/// # Errors
/// What would be right.
pub fn rate(s: &str) -> Result<Rate, String> {
    let wrong = || format!("{s:?} is not a rate: write 200K or 1.5M (packets per second), or 10Gbps");
    let (number, unit) = split(s);
    let n = number.parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0).ok_or_else(wrong)?;
    let scale = |prefix| match prefix {
        "" => Some(1.0),
        "K" | "k" => Some(1e3),
        "M" => Some(1e6),
        "G" => Some(1e9),
        _ => None,
    };
    if let Some(prefix) = unit.strip_suffix("bps") {
        return scale(prefix).map(|k| Rate::Bits(n * k)).ok_or_else(wrong);
    }
    let unit = unit.strip_suffix("pps").unwrap_or(unit);
    scale(unit).map(|k| Rate::Packets(n * k)).ok_or_else(wrong)
}

/// The digits, and what follows them.
fn split(s: &str) -> (&str, &str) {
    let s = s.trim();
    let end = s.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(s.len());
    (&s[..end], s[end..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(
            ["4K", "2M", "1G", "77", "3 KiB"].map(size),
            [Ok(4096), Ok(2 << 20), Ok(1 << 30), Ok(77), Ok(3072)]
        );
        for wrong in ["", "K", "4T", "1.5K", "-1", "99999999999G", "4k"] {
            assert!(size(wrong).unwrap_err().contains("write 4096"), "{wrong}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(time("50us"), Ok(Duration::from_micros(50)));
        assert_eq!(time("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(time("0"), Ok(Duration::ZERO));
        for wrong in ["", "50", "fast", "-5s"] {
            assert!(time(wrong).unwrap_err().contains("write 50us"), "{wrong}");
        }
    }

    #[test]
    fn rates() {
        assert_eq!(rate("1.5M"), Ok(Rate::Packets(1.5e6)));
        assert_eq!(rate("100"), Ok(Rate::Packets(100.0)));
        assert_eq!(rate("200Kpps"), Ok(Rate::Packets(2e5)));
        assert_eq!(rate("10Gbps"), Ok(Rate::Bits(1e10)));
        // 64-byte frames with preamble and gap (IEEE 802.3): 14.88 million a second at 10 Gbit/s.
        assert_eq!(rate("10Gbps").unwrap().packets_per_second(84.0).round(), 14_880_952.0);
        for wrong in ["", "0", "-1M", "1T", "1e400", "fast", "Gbps"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
