//! Reading the bytes of the file, whatever they are.

use std::fmt;

use super::format::{
    ADDED, Content, FILE, FORMAT, HEADER, Kind, PAGE, PAGE_HEAD, SavedRow, Times, checksum,
};
use crate::key::hash::SECRET_BYTES;
use crate::limit::bounded;
use crate::limit::remote::read_state;

/// Why a file cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    Foreign,
    Newer(u64),
    Damaged,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("it is not a file of counts"),
            Self::Newer(format) => {
                write!(f, "it has format {format}: a newer version of sluicegate wrote it")
            }
            Self::Damaged => {
                f.write_str("it is damaged: a checksum is wrong, or a part is missing")
            }
        }
    }
}

/// What a file says.
#[derive(Debug)]
pub(super) struct Saved<'b> {
    pub(super) secret: &'b [u8; SECRET_BYTES],
    /// When the last complete group was written.
    pub(super) times: Times,
    /// The buckets with the rows that count.
    buckets: Vec<Bucket<'b>>,
    /// Whether the last group is incomplete, and was left out.
    pub(super) is_torn: bool,
}

#[derive(Debug, Clone, Copy)]
struct Bucket<'b> {
    kind: Kind,
    number: u32,
    is_added: bool,
    rows: u8,
    bytes: &'b [u8],
}

impl<'b> Saved<'b> {
    /// # Errors
    ///
    /// If it is not a whole file of this format. A last group that is incomplete is no error.
    pub(super) fn read(bytes: &'b [u8]) -> Result<Self, Unreadable> {
        if bytes.get(..8) != Some(&FILE) {
            return Err(Unreadable::Foreign);
        }
        let mut rest = &bytes[8..];
        let format = number(&mut rest).ok_or(Unreadable::Damaged)?;
        if format > FORMAT {
            return Err(Unreadable::Newer(format));
        }
        let (header, mut rest) = bytes.split_at_checked(HEADER).ok_or(Unreadable::Damaged)?;
        let (content, sum) = header.split_last_chunk().ok_or(Unreadable::Damaged)?;
        if format != FORMAT || u64::from_le_bytes(*sum) != checksum(content) {
            return Err(Unreadable::Damaged);
        }
        let secret = content[16..].try_into().map_err(|_| Unreadable::Damaged)?;

        let mut saved =
            Self { secret, times: Times::default(), buckets: Vec::new(), is_torn: false };
        let mut group = 0;
        while !rest.is_empty() {
            match saved.read_group(rest, group) {
                Some(after) => rest = after,
                // A group is begun when the one before it is on the disk. So a page of a later group says that this
                // one was whole, and without such a page it may have been cut short.
                None if group == 0 || has_later_page(rest, group) => {
                    return Err(Unreadable::Damaged);
                }
                None => {
                    saved.is_torn = true;
                    break;
                }
            }
            group += 1;
        }
        if group == 0 {
            return Err(Unreadable::Damaged);
        }
        saved.keep_what_counts();
        Ok(saved)
    }

    /// Reads one group, and returns what follows it. `None` if it is not complete, and then nothing has changed.
    fn read_group(&mut self, mut rest: &'b [u8], group: u64) -> Option<&'b [u8]> {
        let before = self.buckets.len();
        let mut read = || {
            for number in 0.. {
                let page = Page::read(&mut rest)?;
                let is_next = (page.group, page.number) == (group, number);
                if !is_next || !read_buckets(page.content, &mut self.buckets) {
                    return None;
                }
                if page.is_last {
                    self.times = page.times;
                    break;
                }
            }
            Some(rest)
        };
        let after = read();
        if after.is_none() {
            self.buckets.truncate(before);
        }
        after
    }

    /// Drops buckets that were replaced later.
    fn keep_what_counts(&mut self) {
        self.buckets.sort_by_key(|bucket| (bucket.kind, bucket.number));
        let same = |a: &Bucket<'_>, b: &Bucket<'_>| (a.kind, a.number) == (b.kind, b.number);
        let mut kept = Vec::with_capacity(self.buckets.len());
        for of_one in self.buckets.chunk_by(same) {
            let from = of_one.iter().rposition(|bucket| !bucket.is_added).unwrap_or(0);
            kept.extend_from_slice(&of_one[from..]);
        }
        self.buckets = kept;
    }

    /// All rows, each with the number of its bucket, and in the order of these. A row that moved while it was written can
    /// be there twice.
    pub(super) fn rows(&self) -> impl Iterator<Item = (Kind, usize, SavedRow)> {
        self.buckets.iter().flat_map(|bucket| {
            let (kind, mut rest) = (bucket.kind, bucket.bytes);
            (0..bucket.rows).map_while(move |_| {
                Some((kind, bucket.number as usize, read_row(kind, &mut rest)?))
            })
        })
    }
}

/// A page whose checksums are right.
struct Page<'b> {
    group: u64,
    number: u64,
    times: Times,
    is_last: bool,
    content: &'b [u8],
}

impl<'b> Page<'b> {
    fn read(rest: &mut &'b [u8]) -> Option<Self> {
        let (mut page, length) = Self::read_head(rest)?;
        let (content, after) = rest[PAGE_HEAD..].split_at_checked(length)?;
        let (sum, after) = after.split_first_chunk()?;
        if u64::from_le_bytes(*sum) != checksum(content) {
            return None;
        }
        page.content = content;
        *rest = after;
        Some(page)
    }

    /// The page without its content, and how many bytes that has.
    fn read_head(bytes: &[u8]) -> Option<(Self, usize)> {
        let (head, sum) = bytes.get(..PAGE_HEAD)?.split_last_chunk()?;
        if head[..8] != PAGE || u64::from_le_bytes(*sum) != checksum(head) {
            return None;
        }
        let mut rest = &head[8..];
        let mut next = || number(&mut rest);
        let (group, number, store, wall, length) = (next()?, next()?, next()?, next()?, next()?);
        let times = Times { store, wall };
        // Later than any clock shows.
        if bounded(store) != store || bounded(wall) != wall {
            return None;
        }
        let page = Self { group, number, times, is_last: length & 1 == 1, content: &[] };
        Some((page, usize::try_from(length >> 1).ok()?))
    }
}

/// Whether a later group than `group` was begun.
fn has_later_page(bytes: &[u8], group: u64) -> bool {
    let mut at = bytes.windows(8).enumerate().filter(|(_, window)| *window == PAGE);
    at.any(|(at, _)| Page::read_head(&bytes[at..]).is_some_and(|(page, _)| page.group > group))
}

/// Appends the buckets of a page. Returns whether all of it could be read.
fn read_buckets<'b>(mut rest: &'b [u8], buckets: &mut Vec<Bucket<'b>>) -> bool {
    while !rest.is_empty() {
        let Some(bucket) = read_bucket(&mut rest) else { return false };
        buckets.push(bucket);
    }
    true
}

fn read_bucket<'b>(rest: &mut &'b [u8]) -> Option<Bucket<'b>> {
    let [kind, number @ .., rows] = chunk::<6>(rest)?;
    let is_added = kind & ADDED != 0;
    let kind = *Kind::ALL.get(usize::from(kind & !ADDED))?;
    let bytes = *rest;
    (0..rows).try_for_each(|_| read_row(kind, rest).map(drop))?;
    let bytes = &bytes[..bytes.len() - rest.len()];
    Some(Bucket { kind, number: u32::from_le_bytes(number), is_added, rows, bytes })
}

fn read_row(kind: Kind, rest: &mut &[u8]) -> Option<SavedRow> {
    let fingerprint = number(rest).filter(|fingerprint| *fingerprint != 0)?;
    let until = number(rest)?;
    let content = match kind {
        Kind::OneWord => Content::OneWord,
        Kind::TwoWords => Content::TwoWords([number(rest)?, number(rest)?]),
        Kind::FullState | Kind::Shared => {
            let limit = number(rest)?;
            let length = u32::from_le_bytes(chunk(rest)?);
            let (bytes, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            *rest = after;
            Content::FullState { state: Box::new(read_state(bytes)?), limit }
        }
    };
    Some(SavedRow { fingerprint, until, content })
}

fn chunk<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*bytes)
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    chunk(rest).map(u64::from_le_bytes)
}
