use std::fmt;
use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use sluicegate_core::adapter::step;

use super::Estimate;
use super::text::Text;
use crate::tokens::EstimatedTokens;

/// Unpacks the body of a request that begins as gzip or zlib do, whatever its header says, and reads what is in it.
pub(super) struct Unpack {
    stage: Stage,
    /// How many bytes were not unpacked, because that failed before them.
    unread: u64,
}

enum Stage {
    /// Not enough bytes are there to know.
    Start(Option<u8>),
    Plain,
    Packed(Box<dyn Decoder>),
}

trait Decoder: Write + Send + Sync {
    fn unpacked(&mut self) -> &mut Unpacked;

    /// No bytes follow.
    fn end(&mut self);
}

macro_rules! decoders {
    ($($decoder:ident),*) => {$(
        impl Decoder for $decoder<Unpacked> {
            fn unpacked(&mut self) -> &mut Unpacked {
                self.get_mut()
            }

            fn end(&mut self) {
                // What is cut off is not there to be read.
                let _ = self.try_finish();
            }
        }
    )*};
}

decoders!(DeflateDecoder, MultiGzDecoder, ZlibDecoder);

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
        Self { stage: Stage::Start(None), unread: 0 }
    }

    /// Reads the next bytes. `says_deflate` is whether the header names that coding.
    pub(super) fn read(&mut self, bytes: &[u8], says_deflate: bool) {
        if let Stage::Start(first) = self.stage {
            let begins = match (first, bytes) {
                (_, []) => return,
                (None, [first]) => {
                    self.stage = Stage::Start(Some(*first));
                    return;
                }
                (None, [first, second, ..]) => [*first, *second],
                (Some(first), [second, ..]) => [first, *second],
            };
            self.stage = Stage::of(begins, says_deflate);
            if let Some(first) = first {
                self.unpack(&[first]);
            }
        }
        self.unpack(bytes);
    }

    fn unpack(&mut self, bytes: &[u8]) {
        let Stage::Packed(decoder) = &mut self.stage else { return };
        // Allowed as the bytes come, so that the bound holds at every moment of a body that is streamed, not only at
        // its end.
        decoder.unpacked().allow(bytes.len());
        // Behind a failure, nothing more makes sense.
        if self.unread > 0 || decoder.write_all(bytes).is_err() {
            self.unread += bytes.len() as u64;
        }
    }

    /// What the whole body asks for, if it was compressed.
    pub(super) fn finish(self, estimate: &Estimate) -> Option<EstimatedTokens> {
        let Stage::Packed(mut decoder) = self.stage else { return None };
        decoder.end();
        Some(decoder.unpacked().estimate(estimate, self.unread))
    }
}

impl Stage {
    fn of(begins: [u8; 2], says_deflate: bool) -> Self {
        // RFC 1950, 2.2: the method is 8, with a window of at most 32 KiB, and the check makes it a multiple of 31.
        let is_zlib = begins[0] & 0x8f == 8 && u16::from_be_bytes(begins) % 31 == 0;
        match begins {
            [0x1f, 0x8b] => Self::Packed(Box::new(MultiGzDecoder::new(Unpacked::new()))),
            _ if is_zlib => Self::Packed(Box::new(ZlibDecoder::new(Unpacked::new()))),
            // Some clients send `deflate` without the zlib around it, and some services read that (RFC 9110, 8.4.1.2).
            // There is nothing to know it by.
            _ if says_deflate => Self::Packed(Box::new(DeflateDecoder::new(Unpacked::new()))),
            _ => Self::Plain,
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
            // What was not unpacked could ask for anything, and packing is the client's choice. It costs the most that
            // it could hold.
            true => unread.saturating_mul(RATIO).max(MOST as u64),
            // If there are any, it is broken.
            false => unread,
        };
        self.text.clone().finish(estimate, unread)
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

impl fmt::Debug for Unpack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpack").field("unread", &self.unread).finish_non_exhaustive()
    }
}
