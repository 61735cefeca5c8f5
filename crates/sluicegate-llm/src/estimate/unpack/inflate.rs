use miniz_oxide::inflate::TINFLStatus as Status;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_HAS_MORE_INPUT, TINFL_FLAG_IGNORE_ADLER32, TINFL_FLAG_STOP_ON_BLOCK_BOUNDARY,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use super::{End, Progress, Sink};

/// Unpacks deflate (RFC 1951), with the header of gzip (RFC 1952) or zlib (RFC 1950) around it.
///
/// The headers are skipped here. Some services read bodies with a wrong check or with unknown bits in their header, which strict
/// readers refuse.
pub(super) struct Inflate {
    state: DecompressorOxide,
    /// What was unpacked last, to which later bytes refer. It is a ring.
    window: Box<[u8]>,
    /// Where in the window the next byte goes.
    at: usize,
    part: Part,
    /// The bits of gzip's header that name fields which are still to come.
    flags: u8,
    is_gzip: bool,
    /// The length of what follows the data.
    trailer: usize,
}

#[derive(Debug, Clone, Copy)]
enum Part {
    /// In the first ten bytes of a gzip member, of which this many are read.
    Header(usize),
    ExtraLength,
    ExtraLengthHigh(u8),
    Skip(usize),
    /// In a name or a comment, which a zero ends.
    Name,
    Data,
    Trailer(usize),
    /// Behind a member. Zeros may follow, and other members.
    Ended,
}

/// What it costs to begin another member, in unpacked bytes. It takes about 3 µs. Without a price, 2 MiB of empty members took
/// a third of a second.
const MEMBER: usize = 4 * 1024;

/// What it costs to begin another block, in unpacked bytes. The tables of a block are made in about 2 µs. An empty block has
/// ten bits: without a price, 240 bytes that were compressed twice took 0.2 s, and 2 MiB took 3 s.
const BLOCK: usize = 512;

/// RFC 1951, 2: nothing refers to what is further back.
const WINDOW: usize = 32 * 1024;

const FLAGS: u32 =
    TINFL_FLAG_HAS_MORE_INPUT | TINFL_FLAG_IGNORE_ADLER32 | TINFL_FLAG_STOP_ON_BLOCK_BOUNDARY;

impl Inflate {
    pub(super) fn gzip() -> Self {
        Self::new(Part::Header(0), true, 8)
    }

    pub(super) fn zlib() -> Self {
        Self::new(Part::Skip(2), false, 4)
    }

    pub(super) fn bare() -> Self {
        Self::new(Part::Data, false, 0)
    }

    fn new(part: Part, is_gzip: bool, trailer: usize) -> Self {
        let (state, window) = (DecompressorOxide::new(), vec![0; WINDOW].into_boxed_slice());
        Self { state, window, at: 0, part, flags: 0, is_gzip, trailer }
    }

    pub(super) fn read(&mut self, bytes: &[u8], sink: &mut Sink<'_>) -> Progress {
        let mut read = 0;
        while let Some(&byte) = bytes.get(read) {
            if matches!(self.part, Part::Data) {
                let progress = self.data(&bytes[read..], sink);
                read += progress.read;
                if progress.end != End::Read {
                    return Progress { read, end: progress.end };
                }
                continue;
            }
            let Some(part) = self.next(byte) else { return Progress { read, end: End::Failed } };
            if matches!(self.part, Part::Ended) && !matches!(part, Part::Ended) {
                if !sink.pay(MEMBER) {
                    return Progress { read, end: End::Spent };
                }
                self.state.init();
            }
            self.part = part;
            read += 1;
        }
        Progress { read, end: End::Read }
    }

    /// Reads a byte of what is around the data.
    fn next(&mut self, byte: u8) -> Option<Part> {
        Some(match self.part {
            Part::Header(read) => {
                if read == 3 {
                    self.flags = byte;
                }
                match read {
                    9 => self.field(),
                    _ => Part::Header(read + 1),
                }
            }
            Part::ExtraLength => Part::ExtraLengthHigh(byte),
            Part::ExtraLengthHigh(low) => match u16::from_le_bytes([low, byte]) {
                0 => self.field(),
                length => Part::Skip(length.into()),
            },
            Part::Skip(1) => self.field(),
            Part::Skip(left) => Part::Skip(left - 1),
            Part::Name if byte == 0 => self.field(),
            part @ Part::Name => part,
            Part::Trailer(0 | 1) => Part::Ended,
            Part::Trailer(left) => Part::Trailer(left - 1),
            Part::Ended if self.is_gzip && byte == 0 => Part::Ended,
            Part::Ended if self.is_gzip && byte == 0x1f => Part::Header(1),
            Part::Ended | Part::Data => return None,
        })
    }

    /// The next field of the header, or the data.
    fn field(&mut self) -> Part {
        let fields = [
            (4, Part::ExtraLength),
            (8, Part::Name),
            (16, Part::Name),
            // A check of the header.
            (2, Part::Skip(2)),
        ];
        for (flag, part) in fields {
            if self.flags & flag != 0 {
                self.flags &= !flag;
                return part;
            }
        }
        Part::Data
    }

    fn data(&mut self, bytes: &[u8], sink: &mut Sink<'_>) -> Progress {
        let mut read = 0;
        loop {
            let (status, taken, made) =
                decompress(&mut self.state, &bytes[read..], &mut self.window, self.at, FLAGS);
            read += taken;
            let new = self.at..self.at + made;
            self.at = new.end % WINDOW;
            let is_paid = sink.read(&self.window[new])
                && (status != Status::BlockBoundary || sink.pay(BLOCK));
            let end = match status {
                _ if !is_paid => End::Spent,
                // More may be unpacked of bytes that are read already.
                Status::BlockBoundary | Status::HasMoreOutput => continue,
                // It has kept the last bits. The caller would not end if a byte were left.
                Status::NeedsMoreInput => {
                    read = bytes.len();
                    End::Read
                }
                Status::Done => {
                    self.part = match self.trailer {
                        0 => Part::Ended,
                        length => Part::Trailer(length),
                    };
                    End::Read
                }
                _ => End::Failed,
            };
            return Progress { read, end };
        }
    }
}
