//! The bytes of a row.
//!
//! All numbers have the lowest byte first.
//!
//! | bytes | |
//! | --- | --- |
//! | 1 | the number of the format, 1 |
//! | 8 | the identity of the limit |
//! | 8 | the tag of the write |
//! | 8 | the time of the write, in microseconds since the Unix epoch |
//! | 8 | when the row may be forgotten |
//! | 1 | how many earlier tags follow, and 8 for each |
//! | 2 | how many holders follow, and for each 8 for its number, what it holds, the tag of its first charge, when it lapses, and its lease |
//! | | the state, as `sluicegate-limit` writes it (`remote::write_state`) |
//! | 8 | a checksum: FNV-1a of all bytes before it |
//!
//! **Tags.** A tag is the random number of the process, and the number of its write. A row keeps the last tag of each of
//! the last eight processes. A process has at most one swap of a row under way, so the row itself tells a process
//! whether its last swap of that row happened, even after others have written it.
//!
//! **Forgetting.** The time at which a row may be forgotten never goes back, so until then its versions cannot begin anew.

use std::fmt;

use sluicegate_core::adapter::State;
use sluicegate_core::adapter::remote::{read_state, write_state};

/// The number of the format.
const FORMAT: u8 = 1;

/// Processes whose last tag a row keeps.
pub(crate) const MOST_TAGS: usize = 8;

/// What a row holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Row {
    /// The tags of the last writes, one for each process, the newest first.
    pub(crate) tags: Vec<Tag>,
    /// When it was written.
    pub(crate) seen: u64,
    /// When it may be forgotten.
    pub(crate) expires: u64,
    /// Who holds places of a limit of concurrency.
    pub(crate) holders: Vec<Holder>,
    pub(crate) state: State,
}

/// The number of a write: that of the process in the upper half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag(pub(crate) u64);

impl Tag {
    pub(crate) const fn of(process: u32, write: u32) -> Self {
        Self((process as u64) << 32 | write as u64)
    }

    pub(crate) const fn process(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// What a process holds of a limit of concurrency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) process: u64,
    pub(crate) held: u64,
    /// The tag of the write that began it. What was taken before, and lost since, cannot be given back to it.
    pub(crate) since: u64,
    /// When its places are free, unless it renews them.
    pub(crate) lapses: u64,
    /// How long it holds them without renewing them: if the clock was set back, they lapse no later than that.
    pub(crate) lease: u64,
}

/// Why a row cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Malformed {
    Newer(u8),
    OtherLimit,
    Foreign,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer(format) => {
                write!(f, "the row has format {format}: a newer version of sluicegate wrote it")
            }
            Self::OtherLimit => f.write_str("the row is of another limit than its key says"),
            Self::Foreign => f.write_str("the row is damaged, or something else wrote it"),
        }
    }
}

impl std::error::Error for Malformed {}

impl Row {
    /// The tag of the last write.
    pub(crate) fn tag(&self) -> Option<Tag> {
        self.tags.first().copied()
    }

    /// The tag of the last write of a process, as far as the row remembers it.
    pub(crate) fn tag_of(&self, process: u32) -> Option<Tag> {
        self.tags.iter().copied().find(|tag| tag.process() == process)
    }

    /// Puts the tag of a new write first.
    pub(crate) fn sign(&mut self, tag: Tag) {
        self.tags.retain(|earlier| earlier.process() != tag.process());
        self.tags.truncate(MOST_TAGS - 1);
        self.tags.insert(0, tag);
    }

    /// The bytes of a row that was signed.
    pub(crate) fn write(&self, limit: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(80 + 8 * self.tags.len() + 40 * self.holders.len());
        let put = |bytes: &mut Vec<u8>, numbers: &[u64]| {
            numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        };
        bytes.push(FORMAT);
        let newest = self.tag().map_or(0, |tag| tag.0);
        put(&mut bytes, &[limit, newest, self.seen, self.expires]);
        let earlier = self.tags.iter().skip(1).take(MOST_TAGS - 1);
        bytes.push(earlier.len() as u8);
        earlier.for_each(|tag| put(&mut bytes, &[tag.0]));
        // A limit of concurrency for more processes than that is none for any of them.
        let holders = u16::try_from(self.holders.len()).unwrap_or(u16::MAX);
        bytes.extend_from_slice(&holders.to_le_bytes());
        for Holder { process, held, since, lapses, lease } in
            self.holders.iter().take(holders.into())
        {
            put(&mut bytes, &[*process, *held, *since, *lapses, *lease]);
        }
        write_state(&self.state, &mut bytes);
        let sum = checksum(&bytes);
        put(&mut bytes, &[sum]);
        bytes
    }

    /// # Errors
    ///
    /// If this is no row of `limit`, or of a newer format.
    pub(crate) fn read(limit: u64, bytes: &[u8]) -> Result<Self, Malformed> {
        let (content, sum) = bytes.split_last_chunk().ok_or(Malformed::Foreign)?;
        if checksum(content) != u64::from_le_bytes(*sum) {
            return Err(Malformed::Foreign);
        }
        match content.first() {
            Some(&FORMAT) => {}
            Some(&format) if format > FORMAT => return Err(Malformed::Newer(format)),
            _ => return Err(Malformed::Foreign),
        }
        let (row, id) =
            Self::read_content(content.get(1..).unwrap_or_default()).ok_or(Malformed::Foreign)?;
        if id == limit { Ok(row) } else { Err(Malformed::OtherLimit) }
    }

    fn read_content(bytes: &[u8]) -> Option<(Self, u64)> {
        let mut rest = bytes;
        let id = number(&mut rest)?;
        let newest = Tag(number(&mut rest)?);
        let (seen, expires) = (number(&mut rest)?, number(&mut rest)?);
        let [count] = chunk(&mut rest)?;
        let earlier = (0..count).map(|_| number(&mut rest).map(Tag));
        let tags = std::iter::once(Some(newest)).chain(earlier).collect::<Option<Vec<_>>>()?;
        let count = u16::from_le_bytes(chunk(&mut rest)?);
        let holder = |_| {
            let (process, held, since) =
                (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
            let (lapses, lease) = (number(&mut rest)?, number(&mut rest)?);
            Some(Holder { process, held, since, lapses, lease })
        };
        let holders = (0..count).map(holder).collect::<Option<Vec<_>>>()?;
        let state = read_state(rest)?;
        Some((Self { tags, seen, expires, holders, state }, id))
    }
}

fn chunk<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*bytes)
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    chunk(rest).map(u64::from_le_bytes)
}

/// Finds damage, not forgery: who can write rows can spend as it likes.
fn checksum(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            tags: vec![Tag::of(2, 3), Tag::of(4, 5)],
            seen: 6,
            expires: 7,
            holders: vec![Holder { process: 8, held: 9, since: 10, lapses: 11, lease: 14 }],
            state: sluicegate_core::adapter::remote::state([12, 13]),
        }
    }

    #[test]
    fn the_format_is_pinned() {
        let hex: String = row().write(1).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "01\
             0100000000000000\
             0300000002000000\
             0600000000000000\
             0700000000000000\
             01\
             0500000004000000\
             0100\
             0800000000000000\
             0900000000000000\
             0a00000000000000\
             0b00000000000000\
             0e00000000000000\
             00\
             0c00000000000000\
             0d00000000000000\
             bf11fc6f9ff817cd"
        );
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        assert_eq!(Row::read(1, &row().write(1)), Ok(row()));
        assert_eq!(Row::read(2, &row().write(1)), Err(Malformed::OtherLimit));
    }

    #[test]
    fn a_row_with_any_bit_flipped_or_byte_missing_is_refused() {
        let bytes = row().write(1);
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Row::read(1, &flipped).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert_eq!(Row::read(1, &bytes[..length]), Err(Malformed::Foreign));
        }
    }

    #[test]
    fn a_newer_format_is_named() {
        let mut bytes = row().write(1);
        bytes[0] = 2;
        let content = bytes.len() - 8;
        let sum = checksum(&bytes[..content]);
        bytes[content..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(Row::read(1, &bytes), Err(Malformed::Newer(2)));
    }

    #[test]
    fn a_row_keeps_the_last_tag_of_eight_processes() {
        let mut row = Row::default();
        for write in 0..20 {
            row.sign(Tag::of(write % 10, write));
        }
        let kept: Vec<_> = (0..10).map(|process| row.tag_of(process).is_some()).collect();
        assert_eq!(kept, [false, false, true, true, true, true, true, true, true, true]);
        assert_eq!(row.tag(), Some(Tag::of(9, 19)));
    }
}
