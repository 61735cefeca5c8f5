use std::fmt;
use std::io::{self, Write};

use flate2::write::{MultiGzDecoder, ZlibDecoder};

use super::Estimate;
use super::text::Text;
use crate::cost::llm::estimated::EstimatedTokens;
use crate::key::path::steps::step;

/// Reads the body of a request, and unpacks it if it is compressed by gzip or deflate, whatever its header says.
#[derive(Debug)]
pub(super) struct Unpack {
    packed: Packed,
    /// How many bytes were not unpacked, because that failed before them.
    unread: u64,
}

#[expect(clippy::large_enum_variant, reason = "most bodies are plain, and need no allocation")]
enum Packed {
    /// Not enough bytes are there to know.
    Start(Option<u8>),
    Plain(Text),
    Gzip(Box<MultiGzDecoder<Unpacked>>),
    Zlib(Box<ZlibDecoder<Unpacked>>),
}

/// What was unpacked.
struct Unpacked {
    text: Text,
    /// How many bytes more are unpacked at most, for what has come so far.
    left: usize,
    /// How many of them may be added yet.
    unused: usize,
    is_spent: bool,
}

/// The most bytes to which a request is unpacked: two million tokens. A request that is not unpacked as a whole counts at
/// least as much, because what it asks for may be in the rest.
const MOST: usize = 8 * 1024 * 1024;

/// Any request is unpacked up to this many bytes.
const FIRST: usize = 128 * 1024;

/// How many bytes more are unpacked for each that is sent. Text, JSON and logs pack less than twenty bytes into one. Without
/// this bound, 8 KB that were packed to be work took 14 to 84 ms of a processor, at 2 to 10 ns for each unpacked byte.
const OF_EACH: usize = 32;

/// Deflate packs at most so many bytes into one.
const RATIO: u64 = 1_032;

impl Unpack {
    pub(super) const fn new() -> Self {
        Self { packed: Packed::Start(None), unread: 0 }
    }

    pub(super) fn read(&mut self, bytes: &[u8]) {
        if let Packed::Start(first) = self.packed {
            let begins = match (first, bytes) {
                (_, []) => return,
                (None, [first]) => {
                    self.packed = Packed::Start(Some(*first));
                    return;
                }
                (None, [first, second, ..]) => [*first, *second],
                (Some(first), [second, ..]) => [first, *second],
            };
            self.packed = Packed::new(begins);
            if let Some(first) = first {
                self.read(&[first]);
            }
        }
        let unpacked = match &mut self.packed {
            Packed::Start(_) => Ok(()),
            Packed::Plain(text) => {
                text.read(bytes);
                Ok(())
            }
            _ if self.unread > 0 => Err(io::ErrorKind::InvalidData.into()),
            Packed::Gzip(decoder) => {
                decoder.get_mut().allow(bytes.len());
                decoder.write_all(bytes)
            }
            Packed::Zlib(decoder) => {
                decoder.get_mut().allow(bytes.len());
                decoder.write_all(bytes)
            }
        };
        if unpacked.is_err() {
            self.unread += bytes.len() as u64;
        }
    }

    /// What the whole body asks for, and whether it was compressed.
    pub(super) fn finish(self, estimate: &Estimate) -> (EstimatedTokens, bool) {
        let unread = self.unread;
        match self.packed {
            Packed::Start(first) => {
                let mut text = Text::new();
                text.read(first.as_slice());
                (text.finish(estimate, 0), false)
            }
            Packed::Plain(text) => (text.finish(estimate, 0), false),
            Packed::Gzip(mut decoder) => {
                // What is cut off is not there to be read.
                let _ = decoder.try_finish();
                (decoder.get_ref().estimate(estimate, unread), true)
            }
            Packed::Zlib(mut decoder) => {
                let _ = decoder.try_finish();
                (decoder.get_ref().estimate(estimate, unread), true)
            }
        }
    }
}

impl Unpacked {
    fn new() -> Self {
        Self { text: Text::new(), left: FIRST, unused: MOST - FIRST, is_spent: false }
    }

    /// Allows for this many more bytes that were sent.
    fn allow(&mut self, sent: usize) {
        let more = sent.saturating_mul(OF_EACH).min(self.unused);
        self.left += more;
        self.unused -= more;
    }

    /// What the text asks for. `unread` bytes were not unpacked.
    fn estimate(&self, estimate: &Estimate, unread: u64) -> EstimatedTokens {
        let unread = match self.is_spent {
            true => unread.saturating_mul(RATIO).max(MOST as u64),
            // If there are any, it is broken.
            false => unread,
        };
        self.text.clone().finish(estimate, unread)
    }
}

impl Packed {
    fn new(begins: [u8; 2]) -> Self {
        match begins {
            [0x1f, 0x8b] => Self::Gzip(Box::new(MultiGzDecoder::new(Unpacked::new()))),
            [0x78, _] if u16::from_be_bytes(begins) % 31 == 0 => {
                Self::Zlib(Box::new(ZlibDecoder::new(Unpacked::new())))
            }
            _ => Self::Plain(Text::new()),
        }
    }
}

impl Write for Unpacked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.left);
        step(taken);
        self.text.read(&bytes[..taken]);
        self.left -= taken;
        if taken < bytes.len() {
            self.is_spent = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start(_) => "Start",
            Self::Plain(_) => "Plain",
            Self::Gzip(_) => "Gzip",
            Self::Zlib(_) => "Zlib",
        })
    }
}
