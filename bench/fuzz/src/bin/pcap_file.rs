//! Arbitrary bytes taken for a pcap file.
//!
//! Flags: -max_len=4096
#![no_main]
#[path = "../capture.rs"]
mod capture;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // A first byte that chooses unit and byte order, so that all of them are met.
    const MAGICS: [[u8; 4]; 4] = [
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0xa1, 0xb2, 0x3c, 0x4d],
    ];
    capture::check(data);
    if let Some((which, rest)) = data.split_first()
        && let Some(magic) = MAGICS.get(usize::from(*which))
    {
        capture::check(&[magic, rest].concat());
    }
});
