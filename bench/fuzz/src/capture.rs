//! What must hold of a capture, whatever its bytes.

use std::io::{self, ErrorKind, Read};

use pcap::{CaptureReader, MAX_FRAME, Next};

/// Gives bytes in pieces whose lengths the bytes themselves say, and now and then none for the moment.
struct Pieces<'d> {
    data: &'d [u8],
    turn: u8,
}

impl Read for Pieces<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.turn = self.turn.wrapping_mul(5).wrapping_add(self.data.first().copied().unwrap_or(0) | 1);
        if self.turn.is_multiple_of(7) {
            return Err(ErrorKind::WouldBlock.into());
        }
        let n = usize::from(self.turn % 32 + 1).min(self.data.len()).min(to.len());
        to[..n].copy_from_slice(&self.data[..n]);
        self.data = &self.data[n..];
        Ok(n)
    }
}

type Frames = Vec<(Vec<u8>, u32, Option<u64>)>;

fn frames(reader: &mut CaptureReader<impl Read>, limit: usize) -> (Frames, String) {
    let mut all = Vec::new();
    loop {
        match reader.peek() {
            Ok(Next::Frame(f)) => {
                assert!(f.bytes.len() <= MAX_FRAME as usize);
                all.push((f.bytes.to_vec(), f.original, f.time));
                assert!(all.len() <= limit, "more frames than there are bytes for");
            }
            Ok(Next::Later) => continue,
            Ok(Next::End) => return (all, String::new()),
            Err(e) => {
                assert!(matches!(reader.peek(), Ok(Next::End)), "it has ended");
                return (all, e.to_string());
            }
        }
        reader.advance();
    }
}

/// Reads `data` at once and in pieces.
pub fn check(data: &[u8]) {
    let limit = data.len() / 16;
    let whole = frames(&mut CaptureReader::new(data), limit);
    let mut pieces = CaptureReader::new(Pieces { data, turn: 0 });
    assert_eq!(whole, frames(&mut pieces, limit), "pieces do not matter");
    let mut from = 0;
    for (frame, _, _) in &whole.0 {
        let at = data[from..].windows(frame.len().max(1)).position(|w| w == frame || frame.is_empty());
        from += at.expect("every frame is in the file, in order") + frame.len();
    }
}
