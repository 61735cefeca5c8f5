//! The bytes of the file, without I/O: what they are, and writing them. [`read`](super::read) reads them.
//!
//! All numbers have the lowest byte first. A file is a header and pages:
//!
//! | bytes | header |
//! | --- | --- |
//! | 8 | `sluicegm` |
//! | 8 | the number of the format, 1 |
//! | 224 | the secret under which keys are hashed |
//! | 8 | a checksum of all bytes before it |
//!
//! | bytes | page |
//! | --- | --- |
//! | 8 | `\x89page\r\n\x1a` |
//! | 8 | the number of its group |
//! | 8 | its number in the group |
//! | 8 + 8 | the time of the store when it was written, and that of the wall clock, in microseconds since the Unix epoch |
//! | 8 | how many bytes its content has, times two, and one more if it is the last page of its group |
//! | 8 | a checksum of the bytes of the page before it |
//! | | the content: buckets |
//! | 8 | a checksum of the content |
//!
//! | bytes | bucket |
//! | --- | --- |
//! | 1 | its table; and 128 if these rows are added to the bucket, instead of replacing those that it had |
//! | 4 | its number |
//! | 1 | how many rows follow |
//!
//! | bytes | row |
//! | --- | --- |
//! | 8 | the fingerprint of the key and the limit |
//! | 8 | when it has recovered, in microseconds since the Unix epoch |
//! | 16 | for a limit of two words: its words |
//! | 8 + 4 | for a limit with more state: the limit that its log is counted for, and how many bytes follow |
//! | | and then the state, as `sluicegate-limit` writes it |
//!
//! A group is what was read from the tables at one time, and counts as a whole or not at all. The first group has all
//! rows; each later group has the buckets that have changed. A group is begun when the one before it is on the disk, so
//! only the last group of a file can be incomplete without damage. Any change of what is written here, or of what a
//! limit means by its state, needs a new number of the format.

use std::io;

use crate::key::hash::SECRET_BYTES;
use crate::limit::remote::write_state;
use crate::limit::{State, Words};

pub(super) const FORMAT: u64 = 1;
pub(super) const FILE: [u8; 8] = *b"sluicegm";
pub(super) const PAGE: [u8; 8] = *b"\x89page\r\n\x1a";
pub(super) const HEADER: usize = 8 + 8 + SECRET_BYTES + 8;
pub(super) const PAGE_HEAD: usize = 7 * 8;

/// A page is written when its content has this many bytes.
const FULL_PAGE: usize = 1 << 18;

/// Marks rows that are added to a bucket.
pub(super) const ADDED: u8 = 128;

/// The table that a row is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    OneWord,
    TwoWords,
    FullState,
    Shared,
}

impl Kind {
    pub(super) const ALL: [Self; 4] =
        [Self::OneWord, Self::TwoWords, Self::FullState, Self::Shared];
}

/// One moment, by the clock of the store and by that on the wall, in microseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) store: u64,
    pub(super) wall: u64,
}

/// A row as it is in the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SavedRow {
    pub(super) fingerprint: u64,
    /// When it has recovered.
    pub(super) until: u64,
    pub(super) content: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    /// `until` says everything.
    OneWord,
    TwoWords(Words),
    FullState {
        state: Box<State>,
        /// The limit that its log is counted for.
        limit: u64,
    },
}

pub(super) fn write_header(secret: &[u8; SECRET_BYTES]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER);
    bytes.extend_from_slice(&FILE);
    put(&mut bytes, FORMAT);
    bytes.extend_from_slice(secret);
    let sum = checksum(&bytes);
    put(&mut bytes, sum);
    bytes
}

/// Appends a row; the caller says how many there are in a bucket.
pub(super) fn write_row(fingerprint: u64, until: u64, bytes: &mut Vec<u8>) {
    put(bytes, fingerprint);
    put(bytes, until);
}

/// Appends the words of a row after [`write_row`].
pub(super) fn write_words(words: Words, bytes: &mut Vec<u8>) {
    words.into_iter().for_each(|word| put(bytes, word));
}

/// Appends the state of a row after [`write_row`].
pub(super) fn write_full_state(state: &State, limit: u64, bytes: &mut Vec<u8>) {
    put(bytes, limit);
    let at = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    write_state(state, bytes);
    let length = (bytes.len() - at - 4) as u32;
    bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// Writes the pages of one group.
pub(super) struct Pages<'w> {
    write: &'w mut dyn FnMut(&[u8]) -> io::Result<()>,
    group: u64,
    page: u64,
    content: Vec<u8>,
}

impl<'w> Pages<'w> {
    pub(super) fn new(group: u64, write: &'w mut dyn FnMut(&[u8]) -> io::Result<()>) -> Self {
        Self { write, group, page: 0, content: Vec::new() }
    }

    /// Appends a bucket with `rows` rows, which are `bytes`. They replace the rows that the bucket had, or are added.
    pub(super) fn bucket(
        &mut self,
        (kind, number): (Kind, usize),
        is_added: bool,
        rows: u8,
        bytes: &[u8],
        times: Times,
    ) -> io::Result<()> {
        self.content.push(kind as u8 | if is_added { ADDED } else { 0 });
        // No table has 2^32 buckets: it would take 200 GB.
        self.content.extend_from_slice(&(number as u32).to_le_bytes());
        self.content.push(rows);
        self.content.extend_from_slice(bytes);
        if self.content.len() >= FULL_PAGE { self.page(times, false) } else { Ok(()) }
    }

    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.page == 0 && self.content.is_empty()
    }

    /// Writes the last page.
    pub(super) fn finish(&mut self, times: Times) -> io::Result<()> {
        self.page(times, true)
    }

    fn page(&mut self, times: Times, is_last: bool) -> io::Result<()> {
        let length = (self.content.len() as u64) << 1 | u64::from(is_last);
        let mut bytes = Vec::with_capacity(PAGE_HEAD + self.content.len() + 8);
        bytes.extend_from_slice(&PAGE);
        let numbers = [self.group, self.page, times.store, times.wall, length];
        numbers.into_iter().for_each(|number| put(&mut bytes, number));
        let sum = checksum(&bytes);
        put(&mut bytes, sum);
        bytes.extend_from_slice(&self.content);
        put(&mut bytes, checksum(&self.content));
        (self.write)(&bytes)?;
        self.page += 1;
        self.content.clear();
        Ok(())
    }
}

/// A file of one page with this content, whatever that is.
pub(super) fn file_of_page(content: &[u8]) -> Vec<u8> {
    let mut bytes = write_header(&[0; SECRET_BYTES]);
    let mut append = |page: &[u8]| {
        bytes.extend_from_slice(page);
        Ok(())
    };
    let mut pages = Pages::new(0, &mut append);
    pages.content.extend_from_slice(content);
    // A vector takes everything.
    let _ = pages.finish(Times::default());
    bytes
}

fn put(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

/// Finds damage, not forgery: who can write the file can count as it likes. Each step can be undone, so every change
/// within one word of eight bytes is found, and any other is missed once in 2^64.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    let sum = words.by_ref().fold(bytes.len() as u64 + 1, |sum, word| {
        mix(sum, u64::from_le_bytes(word.try_into().unwrap_or_default()))
    });
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    let sum = mix(sum, u64::from_le_bytes(last));
    mix(sum, sum >> 32)
}

/// Adds a word to a sum. For one sum, different words give different results.
pub(super) const fn mix(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}
