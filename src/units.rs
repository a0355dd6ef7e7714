//! Numbers for people.

use std::fmt;

/// A count with its thousands apart.
pub struct Apart(pub u64);

impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut s = String::with_capacity(digits.len() * 4 / 3);
        for (i, c) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                s.push(' ');
            }
            s.push(c);
        }
        f.pad_integral(true, "", &s)
    }
}

/// Packets per second: `1.234 M/s`, `12.3 k/s`, `7 /s`.
pub fn rate(per_second: f64) -> String {
    match per_second {
        r if r >= 1e6 => format!("{:.3} M/s", r / 1e6),
        r if r >= 1e3 => format!("{:.1} k/s", r / 1e3),
        r => format!("{r:.0} /s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let shown = [0, 999, 1000, 1_234_567].map(|n| Apart(n).to_string());
        assert_eq!(shown, ["0", "999", "1 000", "1 234 567"]);
        assert_eq!(format!("{:>6}|", Apart(1000)), " 1 000|");
    }

    #[test]
    fn rates_have_the_unit_that_suits_them() {
        assert_eq!([0.4, 12_345.0, 1_500_000.0].map(rate), ["0 /s", "12.3 k/s", "1.500 M/s"]);
    }
}
