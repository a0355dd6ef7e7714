//! Arbitrary bytes taken for a pcapng file.
//!
//! Flags: -max_len=4096
#![no_main]
#[path = "../capture.rs"]
mod capture;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    capture::check(data);
    // The same as what follows a section and an interface, of either byte order.
    let Some((which, rest)) = data.split_first() else { return };
    let word = |w: u32| if which % 2 == 0 { w.to_le_bytes() } else { w.to_be_bytes() };
    let half = |a: u32| if which % 2 == 0 { a } else { a << 16 };
    let words = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, half(1), u32::MAX, u32::MAX, 28, 1, 20, half(1), 0, 20];
    let head: Vec<u8> = words.into_iter().flat_map(word).collect();
    capture::check(&[&head, rest].concat());
});
