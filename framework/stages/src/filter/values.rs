//! Values of fields: all are ranges of numbers in the end.

use core::fmt::Display;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use wire::MacAddr;

use super::fields::{Field, Type};

/// First and last.
pub(super) type Range = (u128, u128);

/// What `text` means for `field`: one value, or all of a prefix.
///
/// # Errors
/// What is wrong, and what would be right.
pub(super) fn value(field: &Field, text: &str) -> Result<Range, String> {
    match field.kind {
        Type::Flag => flag(field, text),
        Type::Number => number(field, text).map(|n| (n, n)),
        Type::Mac => prefix(field, text, 48, |a: MacAddr| a.to_u64().into(), |n| MacAddr::new(low_six(n))),
        Type::V4 => prefix(field, text, 32, |a: Ipv4Addr| a.to_bits().into(), |n| Ipv4Addr::from(n as u32)),
        Type::V6 => prefix(field, text, 128, |a: Ipv6Addr| a.to_bits(), Ipv6Addr::from),
    }
}

/// The lower six bytes of a number.
const fn low_six(n: u128) -> [u8; 6] {
    let [.., a, b, c, d, e, f] = n.to_be_bytes();
    [a, b, c, d, e, f]
}

/// What all values of `field` look like.
pub(super) const fn examples(kind: Type) -> &'static str {
    match kind {
        Type::Flag => "yes or no: write it alone, or not before it",
        Type::Number => "a number: 80 or 0x50",
        Type::Mac => "an Ethernet address: 02:00:00:00:00:01, or 01:00:5e:00:00:00/25 for all that begin so",
        Type::V4 => "an IPv4 address: 10.0.0.1, or 10.0.0.0/8 for all that begin so",
        Type::V6 => "an IPv6 address: 2001:db8::1, or 2001:db8::/32 for all that begin so",
    }
}

fn wrong(field: &Field, text: &str) -> String {
    format!("{text} is no value of {}, which is {}", field.name, examples(field.kind))
}

fn flag(field: &Field, text: &str) -> Result<Range, String> {
    match text {
        "true" | "1" => Ok((1, field.max())),
        "false" | "0" => Ok((0, 0)),
        _ => Err(wrong(field, text)),
    }
}

fn number(field: &Field, text: &str) -> Result<u128, String> {
    if let Some(named) = field.names.iter().find(|n| n.0 == text) {
        return Ok(named.1.into());
    }
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |d| (d, 16));
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(no_number(field, text));
    }
    match u64::from_str_radix(digits, radix).map(u128::from) {
        Ok(n) if n <= field.max() => Ok(n),
        _ => Err(format!("{text} is too much: {} is at most {}", field.name, field.max())),
    }
}

fn no_number(field: &Field, text: &str) -> String {
    let names: Vec<_> = field.names.iter().map(|n| n.0).collect();
    if let Some(near) = config::suggest(text, names.iter().copied()) {
        return format!("{text} is no value of {}; did you mean {near}?", field.name);
    }
    if names.is_empty() {
        wrong(field, text)
    } else {
        format!("{}, or one of {}", wrong(field, text), names.join(", "))
    }
}

/// An address, or all that share its first bits.
fn prefix<A: FromStr + Display>(
    field: &Field,
    text: &str,
    bits: u32,
    to: impl Fn(A) -> u128,
    from: impl Fn(u128) -> A,
) -> Result<Range, String> {
    let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
    let first = address.parse().map(to).map_err(|_| wrong(field, text))?;
    let Some(length) = length else { return Ok((first, first)) };
    let read =
        length.parse::<u32>().ok().filter(|&l| l <= bits && length.bytes().all(|b| b.is_ascii_digit()));
    let Some(length) = read else {
        return Err(format!("/{length} is no prefix of an address of {bits} bits: use /0 to /{bits}"));
    };
    let behind = (u128::MAX >> (128 - bits)).checked_shr(length).unwrap_or(0);
    if first & behind != 0 {
        let address = from(first & !behind);
        return Err(format!("{text} has bits set behind its prefix: write {address}/{length}"));
    }
    Ok((first, first | behind))
}

/// Sorted, and with those that touch or overlap joined.
pub(super) fn joined(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable();
    let mut out: Vec<Range> = Vec::new();
    for (first, last) in ranges {
        match out.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => out.push((first, last)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::fields::field;
    use super::*;

    fn read(name: &str, text: &str) -> Result<Range, String> {
        value(field(name).unwrap(), text)
    }

    #[test]
    fn numbers_and_their_names() {
        assert_eq!(read("tcp.port", "443"), Ok((443, 443)));
        assert_eq!(read("eth.type", "0x88CC"), Ok((0x88cc, 0x88cc)));
        assert_eq!(read("eth.type", "arp"), Ok((0x806, 0x806)));
        assert_eq!(read("ipv6.next", "icmpv6"), Ok((58, 58)));
        assert_eq!(read("tcp.syn", "true"), Ok((1, 1)));
        assert_eq!(read("ipv4.fragment", "1"), Ok((1, 0x3fff)));
        assert_eq!(read("vlan.id", "4096").unwrap_err(), "4096 is too much: vlan.id is at most 4095");
        assert_eq!(read("vlan.pcp", "0x8").unwrap_err(), "0x8 is too much: vlan.pcp is at most 7");
        let huge = "99999999999999999999999";
        assert_eq!(
            read("udp.src", huge).unwrap_err(),
            format!("{huge} is too much: udp.src is at most 65535")
        );
        for bad in ["", "0x", "-1", "+1", "8f", "1.5", "http"] {
            let e = read("tcp.port", bad).unwrap_err();
            assert_eq!(e, format!("{bad} is no value of tcp.port, which is a number: 80 or 0x50"));
        }
        assert_eq!(
            read("arp.op", "replay").unwrap_err(),
            "replay is no value of arp.op; did you mean reply?"
        );
        assert!(read("arp.op", "x").unwrap_err().ends_with(", or one of request, reply"));
    }

    #[test]
    fn addresses_and_prefixes() {
        assert_eq!(read("ipv4.src", "10.0.0.1"), Ok((0x0a00_0001, 0x0a00_0001)));
        assert_eq!(read("ipv4.src", "10.0.0.0/8"), Ok((0x0a00_0000, 0x0aff_ffff)));
        assert_eq!(read("ipv4.src", "0.0.0.0/0"), Ok((0, 0xffff_ffff)));
        assert_eq!(read("ipv4.src", "10.0.0.1/32"), Ok((0x0a00_0001, 0x0a00_0001)));
        assert_eq!(read("ipv6.dst", "::/0"), Ok((0, u128::MAX)));
        assert_eq!(read("ipv6.dst", "2001:db8::/32"), Ok((0x2001_0db8 << 96, (0x2001_0db9 << 96) - 1)));
        assert_eq!(read("ipv6.dst", "::1/128"), Ok((1, 1)));
        assert_eq!(read("eth.dst", "01:00:5e:00:00:00/25"), Ok((0x0100_5e00_0000, 0x0100_5e7f_ffff)));
        assert_eq!(read("eth.dst", "02:00:00:00:00:01"), Ok((0x0200_0000_0001, 0x0200_0000_0001)));
        let wrong = |name, text: &str| read(name, text).unwrap_err();
        assert_eq!(
            wrong("ipv4.src", "10.0.0.1/8"),
            "10.0.0.1/8 has bits set behind its prefix: write 10.0.0.0/8"
        );
        assert_eq!(
            wrong("eth.src", "01:02:00:00:00:00/8"),
            "01:02:00:00:00:00/8 has bits set behind its prefix: write 01:00:00:00:00:00/8"
        );
        assert_eq!(
            wrong("ipv6.src", "fe80::1/10"),
            "fe80::1/10 has bits set behind its prefix: write fe80::/10"
        );
        for bad in ["10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/8/8"] {
            assert!(wrong("ipv4.dst", bad).contains("use /0 to /32"), "{bad}");
        }
        assert_eq!(
            wrong("ipv4.src", "::1"),
            "::1 is no value of ipv4.src, which is an IPv4 address: 10.0.0.1, or 10.0.0.0/8 for all that begin so"
        );
    }

    #[test]
    fn ranges_that_touch_are_one() {
        let joined = |r: &[Range]| joined(r.to_vec());
        assert_eq!(
            joined(&[(8, 9), (1, 3), (4, 5), (2, 2), (20, u128::MAX), (30, 40)]),
            [(1, 5), (8, 9), (20, u128::MAX)]
        );
        assert_eq!(joined(&[(0, u128::MAX), (5, 5)]), [(0, u128::MAX)]);
        assert_eq!(joined(&[]), []);
    }
}
