//! Unpacks the bodies of requests, and reads what is in them.

mod brotli;
mod inflate;
mod zstd;

use std::fmt;

use sluicegate_core::adapter::step;

use self::inflate::Inflate;
use super::Estimate;
use super::text::Text;
use crate::tokens::EstimatedTokens;

/// The most bytes to which a request is unpacked: two million tokens. A request that is not unpacked as a whole counts at
/// least as much, because what it asks for may be in the rest.
const MOST: usize = 8 * 1024 * 1024;

/// Any request is unpacked up to this many bytes.
const FIRST: usize = 128 * 1024;

/// How many bytes more are unpacked for each that is sent. Text, JSON and logs pack less than twenty bytes into one. Without
/// this bound, 8 KB that were packed to be work took 14 to 84 ms of a processor, at 2 to 10 ns for each unpacked byte.
const OF_EACH: usize = 32;

/// The most bytes that deflate packs into one.
const RATIO: u64 = 1_032;

/// How many bytes are unpacked at once.
const PIECE: usize = 4 * 1024;

/// How often what was unpacked is unpacked again, as `Content-Encoding: gzip, br` asks for.
const LEVELS: u8 = 3;

/// The codings that the header names.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Named {
    brotli: bool,
    deflate: bool,
    /// How many there are, one on top of the other.
    count: u8,
}

impl Named {
    /// Adds one item of a `Content-Encoding` that is not `identity`. Some services only look for the name somewhere in it.
    pub(super) fn add(&mut self, coding: &[u8]) {
        let coding = coding.to_ascii_lowercase();
        let names = |name: &[u8]| coding.windows(name.len()).any(|part| part == name);
        self.brotli |= names(b"br");
        self.deflate |= names(b"deflate");
        self.count = self.count.saturating_add(1);
    }
}

/// How much may be unpacked, for all levels together.
#[derive(Debug)]
pub(super) struct Budget {
    sent: usize,
    /// How many bytes may be unpacked for what was sent so far.
    allowed: usize,
    /// How many of these are left.
    left: usize,
    /// How many bytes are kept until they are unpacked at the end.
    kept: usize,
}

impl Budget {
    pub(super) const fn new() -> Self {
        Self { sent: 0, allowed: FIRST, left: FIRST, kept: 0 }
    }

    /// Allows for this many more bytes that were sent. It is called as the bytes come, so that the bound holds at every
    /// moment of a body that is streamed, not only at its end.
    pub(super) fn allow(&mut self, sent: usize) {
        let more = sent.saturating_mul(OF_EACH).min(MOST - self.allowed);
        self.sent += sent;
        self.allowed += more;
        self.left += more;
    }

    /// Takes what it can of this many bytes.
    fn take(&mut self, wanted: usize) -> usize {
        let taken = wanted.min(self.left);
        step(taken);
        self.left -= taken;
        taken
    }

    /// Adds what it can of `bytes` to `packed`, and returns how many these are. All levels together keep at most
    /// twice what was sent, and 128 KiB more: what brotli unpacks to may be brotli too.
    fn keep(&mut self, bytes: &[u8], packed: &mut Vec<u8>) -> usize {
        let kept = bytes.len().min((FIRST + 2 * self.sent).saturating_sub(self.kept));
        self.kept += kept;
        if packed.capacity() - packed.len() < kept {
            packed.reserve_exact(kept.max(packed.len() / 4));
        }
        packed.extend_from_slice(&bytes[..kept]);
        kept
    }
}

/// Bytes as they were sent, or as they were unpacked. They are read as text and, if they may be compressed, unpacked too:
/// what begins like a compressed body may be something else. Of all readings the largest counts.
#[derive(Debug)]
pub(super) struct Contents {
    text: Text,
    /// The first bytes, until there are enough to know how to unpack them.
    first: [u8; FIRST_BYTES],
    known: usize,
    unpackers: Vec<Unpacker>,
    /// How many levels may be below this one.
    levels: u8,
}

/// The longest beginning that tells a format.
const FIRST_BYTES: usize = 4;

impl Contents {
    pub(super) fn new() -> Self {
        Self::with_levels(LEVELS)
    }

    fn with_levels(levels: u8) -> Self {
        let (first, known) = ([0; FIRST_BYTES], 0);
        Self { text: Text::new(), first, known, unpackers: Vec::new(), levels }
    }

    pub(super) fn read(&mut self, bytes: &[u8], named: Named, budget: &mut Budget) {
        self.text.read(bytes);
        let taken = bytes.len().min(FIRST_BYTES - self.known);
        if taken > 0 {
            self.first[self.known..self.known + taken].copy_from_slice(&bytes[..taken]);
            self.known += taken;
            if self.known == FIRST_BYTES {
                self.begin(named, budget);
            }
        }
        for unpacker in &mut self.unpackers {
            unpacker.read(&bytes[taken..], named, budget);
        }
    }

    fn begin(&mut self, named: Named, budget: &mut Budget) {
        let first = &self.first[..self.known];
        self.unpackers = match self.levels.checked_sub(1) {
            Some(below) => {
                let is_named = named.count > LEVELS - self.levels;
                let named = if is_named { named } else { Named::default() };
                Format::of(first, named).map(|format| Unpacker::new(format, below)).collect()
            }
            None => Vec::new(),
        };
        for unpacker in &mut self.unpackers {
            unpacker.read(first, named, budget);
        }
    }

    /// No bytes follow.
    pub(super) fn end(&mut self, named: Named, budget: &mut Budget) {
        if self.known < FIRST_BYTES {
            self.begin(named, budget);
        }
        for unpacker in &mut self.unpackers {
            unpacker.end(named, budget);
        }
    }

    /// What they ask for. `unread` bytes more are behind them.
    pub(super) fn tokens(self, estimate: &Estimate, unread: u64) -> EstimatedTokens {
        // No text begins like these. In bytes that are no text, the names of bounds come by chance.
        let is_packed = matches!(self.first, [0x1f, 0x8b, ..] | ZSTD);
        let tokens = match is_packed && self.unpackers.iter().any(Unpacker::is_whole) {
            true => estimate.of_unknown(),
            false => self.text.finish(estimate, unread),
        };
        let unpacked = self.unpackers.into_iter().filter_map(|unpacker| unpacker.tokens(estimate));
        unpacked.fold(tokens, EstimatedTokens::max)
    }
}

/// The beginning of a frame of zstd (RFC 8878, 3.1.1).
const ZSTD: [u8; FIRST_BYTES] = [0x28, 0xb5, 0x2f, 0xfd];

/// One way to read what is compressed.
#[derive(Debug)]
struct Unpacker {
    format: Format,
    contents: Contents,
    has_contents: bool,
    has_failed: bool,
    /// How many bytes were not unpacked, because that failed before them.
    unread: u64,
    /// Whether that was because the bytes may hold anything: more than is unpacked, or what this service cannot read and
    /// another one can.
    is_spent: bool,
}

enum Format {
    Inflate(Box<Inflate>),
    /// These two are unpacked at the end. While a body arrives, their windows would take 32 bytes and more for each that
    /// was sent, as long as the client likes.
    Brotli(Vec<u8>),
    Zstd(Vec<u8>),
}

/// How far something was unpacked.
struct Progress {
    read: usize,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// As far as there are bytes.
    Read,
    /// What follows is not in this format.
    Failed,
    /// What follows may be anything.
    Spent,
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inflate(_) => "Inflate",
            Self::Brotli(_) => "Brotli",
            Self::Zstd(_) => "Zstd",
        })
    }
}

impl Format {
    /// The formats in which bytes with this beginning may be.
    fn of(first: &[u8], named: Named) -> impl Iterator<Item = Self> {
        let begin = match first {
            [0x1f, 0x8b, ..] => Some(Self::Inflate(Box::new(Inflate::gzip()))),
            // RFC 1950, 2.2: the method is 8, with a window of at most 32 KiB, and the check makes it a multiple of 31.
            [method, flags, ..]
                if method & 0x8f == 8 && u16::from_be_bytes([*method, *flags]) % 31 == 0 =>
            {
                Some(Self::Inflate(Box::new(Inflate::zlib())))
            }
            // RFC 8878, 3.1.2: a frame that is skipped.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Some(Self::Zstd(Vec::new())),
            _ if *first == ZSTD => Some(Self::Zstd(Vec::new())),
            _ => None,
        };
        // There is nothing to know these by, and they may begin like anything else. Some clients send `deflate` without
        // the zlib around it, and some services read that (RFC 9110, 8.4.1.2).
        let deflate = || Self::Inflate(Box::new(Inflate::bare()));
        let deflate = named.deflate.then(deflate);
        let brotli = named.brotli && brotli::may_begin(first);
        let brotli = brotli.then(|| Self::Brotli(Vec::new()));
        [begin, deflate, brotli].into_iter().flatten()
    }
}

impl Unpacker {
    fn new(format: Format, levels: u8) -> Self {
        let contents = Contents::with_levels(levels);
        let (has_contents, has_failed, unread, is_spent) = (false, false, 0, false);
        Self { format, contents, has_contents, has_failed, unread, is_spent }
    }

    fn read(&mut self, bytes: &[u8], named: Named, budget: &mut Budget) {
        if self.has_failed {
            // Behind a failure, nothing more makes sense.
            self.unread += bytes.len() as u64;
            return;
        }
        let progress = match &mut self.format {
            Format::Inflate(inflate) => {
                let (contents, has_contents) = (&mut self.contents, &mut self.has_contents);
                inflate.read(bytes, &mut Sink { contents, has_contents, named, budget })
            }
            Format::Brotli(packed) | Format::Zstd(packed) => {
                let read = budget.keep(bytes, packed);
                Progress { read, end: if read < bytes.len() { End::Spent } else { End::Read } }
            }
        };
        self.advance(&progress, bytes.len());
    }

    fn advance(&mut self, progress: &Progress, length: usize) {
        self.unread += (length - progress.read) as u64;
        self.has_failed |= progress.end != End::Read;
        self.is_spent |= progress.end == End::Spent;
    }

    fn end(&mut self, named: Named, budget: &mut Budget) {
        let allowed = budget.allowed;
        let (contents, has_contents) = (&mut self.contents, &mut self.has_contents);
        let sink = &mut Sink { contents, has_contents, named, budget };
        let ended = match &mut self.format {
            Format::Inflate(_) => None,
            Format::Brotli(packed) => {
                let show = |bytes: &[u8], work| sink.read(bytes) && sink.pay(work);
                Some((brotli::read(packed, allowed, show), packed.len()))
            }
            Format::Zstd(packed) => Some((zstd::read(packed, sink), packed.len())),
        };
        if let Some((progress, length)) = ended {
            self.advance(&progress, length);
        }
        self.contents.end(named, budget);
    }

    /// Whether all is unpacked that is there.
    fn is_whole(&self) -> bool {
        self.has_contents && !self.has_failed
    }

    /// What the contents ask for, if there are any.
    fn tokens(self, estimate: &Estimate) -> Option<EstimatedTokens> {
        if self.is_spent {
            // What was not unpacked could ask for anything, and packing is the client's choice. It costs the most that
            // it could hold.
            let unread = self.unread.saturating_mul(RATIO).max(MOST as u64);
            return Some(self.contents.tokens(estimate, unread).max(EstimatedTokens::of_any()));
        }
        // If bytes are unread, it is broken.
        self.has_contents.then(|| self.contents.tokens(estimate, self.unread))
    }
}

/// Where the unpacked bytes go.
struct Sink<'s> {
    contents: &'s mut Contents,
    has_contents: &'s mut bool,
    named: Named,
    budget: &'s mut Budget,
}

impl Sink<'_> {
    /// Reads unpacked bytes. Returns `false` if there are more than may be unpacked.
    fn read(&mut self, bytes: &[u8]) -> bool {
        let taken = self.budget.take(bytes.len());
        *self.has_contents |= taken > 0;
        self.contents.read(&bytes[..taken], self.named, self.budget);
        taken == bytes.len()
    }

    /// Takes `bytes` from the budget, for work that lasts as long as unpacking them. Returns `false` if it must not be done,
    /// because fewer are left.
    fn pay(&mut self, bytes: usize) -> bool {
        self.budget.take(bytes) == bytes
    }
}

impl EstimatedTokens {
    /// Of a request that may ask for anything.
    pub(super) const fn of_any() -> Self {
        let most = MOST as u64 / crate::answer::BYTES_PER_TOKEN;
        Self { input: most, output: most, all: most }
    }
}

#[cfg(test)]
mod tests;
