//! What parameters refuse, and what they have by default.

use ringwright_pcie::{AddressWidth, Headers, Link, Parameters, PcieError, ReadBoundary, TlpSize};

#[test]
fn only_legal_sizes() {
    for bytes in [128, 256, 512, 1024, 2048, 4096] {
        assert_eq!(TlpSize::new(bytes).map(TlpSize::bytes), Ok(bytes));
    }
    for bytes in [0, 64, 127, 384, 8192, 65_536 + 128] {
        assert_eq!(TlpSize::new(bytes), Err(PcieError::TlpSize(bytes)));
    }
    assert_eq!(ReadBoundary::new(64).map(ReadBoundary::bytes), Ok(64));
    assert_eq!(ReadBoundary::new(128).map(ReadBoundary::bytes), Ok(128));
    assert_eq!(ReadBoundary::new(256), Err(PcieError::ReadBoundary(256)));
}

#[test]
fn only_headers_that_hold_a_header() {
    assert_eq!(Headers::new(20, 24, 20), Ok(Headers::FRAMED));
    assert_eq!(Headers::new(12, 16, 12), Ok(Headers::FLIT));
    for (request32, request64, completion, name) in [
        (11, 24, 20, "32-bit request header"),
        (20, 15, 20, "64-bit request header"),
        (20, 24, 65, "completion header"),
    ] {
        let error = Headers::new(request32, request64, completion).expect_err(name).to_string();
        assert!(error.contains(name) && error.contains("to 64"), "{error}");
    }
}

#[test]
fn usual_ones_follow_the_link() {
    let p = Parameters::default();
    assert_eq!((p.max_payload.bytes(), p.max_read.bytes(), p.read_boundary.bytes()), (256, 512, 64));
    let usual = |name: &str| Parameters::usual(name.parse::<Link>().expect(name));
    assert_eq!(usual("gen5x16"), p);
    assert_eq!(usual("gen6x16").headers, Headers::FLIT);
    assert_eq!(usual("gen6x16").write(1 << 32, 64).request_bytes, 16 + 64);
}

#[test]
fn four_gigabytes_is_the_first_long_address() {
    assert_eq!(AddressWidth::of(0xffff_ffff), AddressWidth::Bits32);
    assert_eq!(AddressWidth::of(0x1_0000_0000), AddressWidth::Bits64);
}
