//! Reading captures, piece by piece, from whatever has bytes.
//!
//! - [`CaptureReader`] finds one frame after the other, of either format; [`Next`] is what it says.
//! - [`ReadError`] says what is wrong and where.
//!
//! Nothing is taken on trust: a length decides what memory is used only below a limit ([`MAX_FRAME`]), and whatever the
//! bytes are, each call ends.

mod classic;
mod error;
mod ng;

use std::io::{self, Read};

pub use error::{Problem, ReadError};

pub(crate) use classic::{FILE_HEADER, NANOS, RECORD_HEADER};
pub(crate) use ng::{INTERFACE, ORDER_MAGIC, PACKET, SECTION, TIME_RESOLUTION};

/// Longest frame that is read, in bytes: the longest that tcpdump captures (`MAXIMUM_SNAPLEN` of libpcap).
pub const MAX_FRAME: u32 = 262_144;
/// The link type that is read: of tcpdump.org's registry.
pub(crate) const ETHERNET: u32 = 1;
/// Bytes asked for at once.
const CHUNK: usize = 64 << 10;
/// The longest block of those that are looked into, and a chunk. Pages that are never needed are never touched.
const BUFFER: usize = ng::MAX_BLOCK as usize + CHUNK;

/// The byte order of what is read.
#[derive(Clone, Copy, Default)]
enum Order {
    #[default]
    Little,
    Big,
}

impl Order {
    #[inline]
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let b = bytes.get(at..)?.first_chunk().copied()?;
        Some(if matches!(self, Self::Little) { u16::from_le_bytes(b) } else { u16::from_be_bytes(b) })
    }
    #[inline]
    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let b = bytes.get(at..)?.first_chunk().copied()?;
        Some(if matches!(self, Self::Little) { u32::from_le_bytes(b) } else { u32::from_be_bytes(b) })
    }
    /// All eight bytes of `bytes`.
    fn u64(self, bytes: &[u8]) -> Option<u64> {
        let b = bytes.try_into().ok()?;
        Some(if matches!(self, Self::Little) { u64::from_le_bytes(b) } else { u64::from_be_bytes(b) })
    }
}

/// What a format makes of the bytes at the front.
enum Step {
    /// It takes at least this many to say.
    Need(usize),
    /// Nothing to deliver: on behind so many bytes, which need not be there yet.
    Skip(u64),
    /// A frame, all of it.
    Frame(Found),
}

/// Where a frame is, from the front.
#[derive(Clone, Copy)]
struct Found {
    at: usize,
    len: usize,
    original: u32,
    time: Option<u64>,
    end: usize,
}

/// A frame of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'r> {
    /// Its bytes, as many as were captured.
    pub bytes: &'r [u8],
    /// Bytes that it had on the wire, as the file says.
    pub original: u32,
    /// When it was captured: nanoseconds since 1970, UTC. A simple packet block has no stamp.
    pub time: Option<u64>,
}

/// What there is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<'r> {
    /// A frame.
    Frame(Frame<'r>),
    /// Nothing now; more may come: it reads from a pipe.
    Later,
    /// Nothing more.
    End,
}

enum Format {
    Unknown,
    Classic(classic::Classic),
    Ng(ng::Ng),
    /// It has ended, or cannot be read any further.
    Done,
}

/// How reading on went.
enum Filled {
    Some,
    Later,
    End,
}

/// Reads frames, one after the other.
///
/// ```
/// # use ringwright_pcap::{CaptureReader, Next};
/// let file: &[u8] = &[
///     0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0, // header
///     7, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 60, 0, 0, 0, 0xaa, 0xbb, // 2 of 60 bytes, at 7 s and 9 ns
/// ];
/// let mut reader = CaptureReader::new(file);
/// let Next::Frame(frame) = reader.peek()? else { panic!("there is one") };
/// assert_eq!((frame.bytes, frame.original, frame.time), (&[0xaa, 0xbb][..], 60, Some(7_000_000_009)));
/// reader.advance();
/// assert_eq!(reader.peek()?, Next::End);
/// # Ok::<(), ringwright_pcap::ReadError>(())
/// ```
pub struct CaptureReader<R> {
    from: R,
    buffer: Box<[u8]>,
    /// What was read and not yet passed: `buffer[start..end]`.
    start: usize,
    end: usize,
    /// Where `start` is in the file.
    offset: u64,
    /// Where the record at hand begins in the file.
    record: u64,
    /// Bytes still to be passed over.
    skip: u64,
    format: Format,
    found: Option<Found>,
}

impl<R: Read> CaptureReader<R> {
    /// Reads from the beginning of a capture. Nothing is read yet.
    pub fn new(from: R) -> Self {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        let (format, found) = (Format::Unknown, None);
        Self { from, buffer, start: 0, end: 0, offset: 0, record: 0, skip: 0, format, found }
    }
    /// What it reads from.
    pub const fn source(&mut self) -> &mut R {
        &mut self.from
    }
    /// Starts again: the source stands at the beginning of a capture.
    pub fn restart(&mut self) {
        (self.start, self.end, self.offset, self.record, self.skip) = (0, 0, 0, 0, 0);
        (self.format, self.found) = (Format::Unknown, None);
    }

    /// The next frame. It stays the next until [`CaptureReader::advance`].
    ///
    /// # Errors
    /// What is wrong from here on; all frames before were whole. It has ended then.
    #[inline]
    pub fn peek(&mut self) -> Result<Next<'_>, ReadError> {
        let found = match self.found {
            Some(found) => found,
            None => match self.find() {
                Ok(Ok(found)) => found,
                Ok(Err(next)) => return Ok(next),
                Err(e) => {
                    self.format = Format::Done;
                    return Err(e);
                }
            },
        };
        self.found = Some(found);
        let at = self.start + found.at;
        let bytes = &self.buffer[at..at + found.len];
        Ok(Next::Frame(Frame { bytes, original: found.original, time: found.time }))
    }

    /// Passes the frame that [`CaptureReader::peek`] showed.
    #[inline]
    pub fn advance(&mut self) {
        if let Some(found) = self.found.take() {
            self.pass(found.end);
        }
    }

    #[inline]
    fn pass(&mut self, n: usize) {
        self.start += n;
        self.offset += n as u64;
    }

    /// Goes on until there is a frame, or what else [`Next`] can say.
    #[inline]
    fn find(&mut self) -> Result<Result<Found, Next<'static>>, ReadError> {
        loop {
            let need = if self.skip > 0 {
                let n = self.skip.min((self.end - self.start) as u64);
                self.pass(n as usize);
                self.skip -= n;
                if self.skip == 0 {
                    continue;
                }
                1
            } else {
                match self.step()? {
                    Step::Frame(found) => return Ok(Ok(found)),
                    Step::Skip(n) => {
                        self.skip = n;
                        continue;
                    }
                    Step::Need(n) => n,
                }
            };
            if matches!(self.format, Format::Done) {
                return Ok(Err(Next::End));
            }
            match self.fill(need)? {
                Filled::Some => {}
                Filled::Later => return Ok(Err(Next::Later)),
                Filled::End => return self.ended().map(Err),
            }
        }
    }

    #[inline]
    fn step(&mut self) -> Result<Step, ReadError> {
        let bytes = &self.buffer[self.start..self.end];
        if !matches!(&self.format, Format::Ng(ng) if ng.is_inside()) {
            self.record = self.offset;
        }
        let offset = self.record;
        match &mut self.format {
            Format::Classic(c) => c.step(bytes).map_err(|problem| ReadError::Damaged { offset, problem }),
            Format::Ng(ng) => ng.step(bytes).map_err(|fault| match fault {
                ng::Fault::Problem(problem) => ReadError::Damaged { offset, problem },
                ng::Fault::Link { interface, name, link } => {
                    ReadError::LinkType { interface: Some(interface), name, link }
                }
            }),
            Format::Unknown => self.begin(),
            Format::Done => Ok(Step::Need(1)),
        }
    }

    /// Finds out which format it is.
    #[cold]
    fn begin(&mut self) -> Result<Step, ReadError> {
        let bytes = &self.buffer[self.start..self.end];
        let Some(&magic) = bytes.first_chunk() else { return Ok(Step::Need(4)) };
        if u32::from_le_bytes(magic) == ng::SECTION {
            self.format = Format::Ng(ng::Ng::default());
            return Ok(Step::Skip(0));
        }
        let Some(classic) = classic::Classic::of(magic) else { return Err(ReadError::NotACapture(magic)) };
        if bytes.len() < FILE_HEADER {
            return Ok(Step::Need(FILE_HEADER));
        }
        classic.header(bytes)?;
        self.format = Format::Classic(classic);
        Ok(Step::Skip(FILE_HEADER as u64))
    }

    /// The source has no more, and a step wanted more.
    #[cold]
    fn ended(&mut self) -> Result<Next<'static>, ReadError> {
        let left = self.end - self.start;
        match self.format {
            Format::Unknown if left == 0 => Err(ReadError::Empty),
            Format::Ng(ref ng) if ng.is_inside() => Err(ReadError::Cut { offset: self.record }),
            _ if left > 0 || self.skip > 0 => Err(ReadError::Cut { offset: self.record }),
            _ => {
                self.format = Format::Done;
                Ok(Next::End)
            }
        }
    }

    /// Reads on, in the hope of `need` bytes at the front.
    #[cold]
    fn fill(&mut self, need: usize) -> io::Result<Filled> {
        // What is left is a part of one record. At the front again, the next chunk meets lines that are in the cache.
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end - self.start < need {
            let most = (self.end + CHUNK).min(self.buffer.len());
            match self.from.read(&mut self.buffer[self.end..most]) {
                Ok(0) => return Ok(Filled::End),
                Ok(n) => self.end += n.min(most - self.end),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Filled::Later),
                Err(e) => return Err(e),
            }
        }
        Ok(Filled::Some)
    }
}
