//! The buffer that keys are written into, word by word.
//!
//! A processor that reads eight bytes which two writes have just made waits until both have reached the
//! cache, 4 to 7 ns. So the parts of a key begin on whole words and are written in whole words.

use std::fmt;
use std::hash::{Hash, Hasher};

use sha2::{Digest, Sha256};

use super::path::steps::step;
use super::{Key, Missing, View};

/// Bytes in a word.
pub(super) const WORD: usize = 8;

/// Words that are kept as written: an address and a route, or an API key of 36 characters with its
/// header's name, fit.
pub(super) const ROOM: usize = 10;

/// The most bytes of one part that are kept as written.
pub(super) const MOST_BYTES: usize = ROOM * WORD;

/// The bytes of a digest.
const DIGEST: usize = 32;

/// The leading bit of a key that is kept as written, and of a key that begins with a digest.
const WHOLE: u128 = 1;
const FOLDED: u128 = 2;

/// A key that is being written, part by part, each with its length.
///
/// Parts never run into each other: `("ab", "c")` and `("a", "bc")` are different keys. A key of up to 80 bytes, each
/// part padded to a multiple of eight, is kept as written, without allocating. The front of a longer key is folded
/// into a SHA-256 digest. So the size of a key is bounded whatever the client sends, and two long keys cannot be made
/// to collide.
///
/// ```
/// use sluicegate::key::KeyBuf;
///
/// let (mut a, mut b) = (KeyBuf::new(), KeyBuf::new());
/// a.push(b"ab");
/// a.push(b"c");
/// b.push(b"a");
/// b.push(b"bc");
/// assert_ne!(a, b);
/// ```
///
/// A key is kept in words, and each word is written in one piece. A hash that reads across two writes makes the
/// processor wait for both; that took 7 of the 18 ns of a decision.
#[derive(Clone, Copy)]
pub struct KeyBuf {
    /// The length of each part, one byte per part, below a leading bit. The lower half comes first.
    lengths: [u64; 2],
    words: [u64; ROOM],
    /// How many words are in use.
    used: u8,
}

impl KeyBuf {
    /// An empty key.
    #[inline]
    pub const fn new() -> Self {
        Self { lengths: [WHOLE as u64, 0], words: [0; ROOM], used: 0 }
    }

    /// The key that `key` reads from a request: the same key that a rule [by](crate::Limit::by) it uses.
    ///
    /// # Errors
    ///
    /// Returns what the request lacks.
    pub fn from_view<V: View>(key: &impl Key<V>, view: &V) -> Result<Self, Missing> {
        let mut written = Self::new();
        key.write(view, &mut written).map(|()| written)
    }

    /// Appends one part.
    #[inline]
    pub fn push(&mut self, part: &[u8]) {
        let lengths = self.lengths();
        let start = usize::from(self.used);
        let filled = part.len().div_ceil(WORD);
        // The highest byte of the lengths stays free, so the leading bit is never shifted out.
        if lengths >> 120 == 0 {
            if let Some(room) = self.words.get_mut(start..start + filled) {
                let mut room = room.iter_mut();
                for (bytes, word) in part.chunks_exact(WORD).zip(room.by_ref()) {
                    *word = word_of(bytes);
                }
                if let Some(last) = room.next() {
                    *last = last_of(part);
                }
                self.used += filled as u8;
                self.set_lengths(lengths << 8 | part.len() as u128);
                return;
            }
        }
        self.fold(part);
    }

    /// The parts in order, each padded with zeros to whole words, the first byte lowest; or a digest of them and the
    /// parts that were written after the digest. The key consists of this and the [`lengths`](Self::lengths).
    #[inline]
    pub fn words(&self) -> &[u64] {
        self.words.get(..usize::from(self.used)).unwrap_or_default()
    }

    /// The length of each part, one byte per part, the last part lowest, below a leading bit. The position of the
    /// leading bit also marks a digest.
    #[inline]
    pub const fn lengths(&self) -> u128 {
        self.lengths[0] as u128 | (self.lengths[1] as u128) << 64
    }

    /// Whether the key was too long to be kept as written.
    #[inline]
    pub(crate) const fn is_digest(&self) -> bool {
        // The leading bit is the first or the second bit of its byte.
        self.lengths().ilog2() % 8 == FOLDED.ilog2()
    }

    /// Whether nothing was written.
    pub const fn is_empty(&self) -> bool {
        self.lengths() == WHOLE
    }

    #[cold]
    fn fold(&mut self, part: &[u8]) {
        step(part.len());
        let mut digest =
            Sha256::new().chain_update(self.lengths().to_le_bytes()).chain_update([self.used]);
        self.words().iter().for_each(|word| digest.update(word.to_le_bytes()));
        let digest = digest.chain_update(part).finalize();
        *self = Self::new();
        self.set_lengths(FOLDED);
        for (word, bytes) in self.words.iter_mut().zip(digest.chunks(WORD)) {
            *word = word_of(bytes);
        }
        self.used = (digest.len() / WORD) as u8;
    }

    #[inline]
    fn set_lengths(&mut self, lengths: u128) {
        self.lengths = [lengths as u64, (lengths >> 64) as u64];
    }

    /// The lower half of the lengths, and the first words; `None` if that is not the whole key.
    #[inline(always)]
    pub(super) fn short<const N: usize>(&self) -> Option<(u64, [u64; N])> {
        let words = *self.words.first_chunk()?;
        let is_short = usize::from(self.used) <= N && self.lengths[1] == 0;
        is_short.then_some((self.lengths[0], words))
    }

    /// The key that [`short`](Self::short) has told of. A digest is not short.
    pub(super) fn from_short<const N: usize>(lengths: u64, short: [u64; N]) -> Self {
        const { assert!(N < DIGEST / WORD, "a digest would be short") }
        let mut key = Self { lengths: [lengths, 0], ..Self::new() };
        key.words.iter_mut().zip(short).for_each(|(word, short)| *word = short);
        let parts = lengths.to_le_bytes().into_iter().take(lengths.ilog2() as usize / 8);
        key.used = parts.map(|len| len.div_ceil(WORD as u8)).sum();
        key
    }

    /// The lengths, the lower half first.
    #[inline]
    pub(crate) const fn length_words(&self) -> [u64; 2] {
        self.lengths
    }
}

/// The lengths of a key of one part.
#[inline]
pub(super) const fn length_of(bytes: usize) -> u64 {
    (WHOLE as u64) << 8 | bytes as u64
}

#[inline]
pub(super) fn word_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
}

/// Fewer than eight bytes as one word. They are read in overlapping pieces instead of one by one.
#[inline]
pub(super) fn last_of(part: &[u8]) -> u64 {
    let rest = part.len() % WORD;
    if let Some((_, whole)) = part.split_last_chunk::<WORD>() {
        return u64::from_le_bytes(*whole) >> (8 * (WORD - rest));
    }
    let half = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
    let bytes = part;
    if let (Some((low, _)), Some((_, high))) = (bytes.split_first_chunk(), bytes.split_last_chunk())
    {
        return half(low) | half(high) << (8 * (bytes.len() - 4));
    }
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

impl Default for KeyBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for KeyBuf {
    fn eq(&self, other: &Self) -> bool {
        self.lengths == other.lengths && self.words() == other.words()
    }
}

impl Eq for KeyBuf {}

impl Hash for KeyBuf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.lengths.iter().chain(self.words()).for_each(|word| state.write_u64(*word));
    }
}

/// Shows only the size: keys hold addresses and credentials, which do not belong in a log.
impl fmt::Debug for KeyBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyBuf({} words)", self.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(parts: &[&[u8]]) -> KeyBuf {
        let mut key = KeyBuf::new();
        for part in parts {
            key.push(part);
        }
        key
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(key(&[b"ab", b"c"]), key(&[b"a", b"bc"]));
        assert_ne!(key(&[b"", b"a"]), key(&[b"a", b""]));
        let long = [7_u8; 300];
        assert_ne!(key(&[&long, &long[..200]]), key(&[&long[..200], &long]));
    }

    #[test]
    fn a_long_key_is_bounded_and_still_tells_keys_apart() {
        let mut seen = std::collections::HashSet::new();
        // Miri takes a thousand times as long.
        for len in 0..if cfg!(miri) { 100 } else { 2_000 } {
            let part = vec![b'x'; len];
            let key = key(&[&part]);
            assert!(key.words().len() <= ROOM);
            assert!(seen.insert(key), "a key of {len} bytes met a shorter one");
        }
    }

    #[test]
    fn a_short_key_cannot_pose_as_a_digest() {
        let long = key(&[&[1; 100]]);
        assert!(long.is_digest());
        let digest: Vec<u8> = long.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_ne!(long, key(&[&digest]));
        for cut in 0..digest.len() {
            assert_ne!(long, key(&[&digest[..cut], &digest[cut..]]));
        }
    }

    #[test]
    fn words_are_filled_from_their_lowest_byte() {
        let bytes: [u8; 80] = std::array::from_fn(|i| i as u8 + 1);
        for len in 0..=bytes.len() {
            let mut filled = bytes[..len].to_vec();
            filled.resize(len.next_multiple_of(WORD), 0);
            let words: Vec<_> = filled.chunks(WORD).map(word_of).collect();
            assert_eq!(key(&[&bytes[..len]]).words(), words, "{len}");
        }
    }

    #[test]
    fn many_parts_are_told_apart() {
        let mut seen = std::collections::HashSet::new();
        for count in 0..if cfg!(miri) { 18 } else { 64 } {
            for part in [&b""[..], b"\0", b"\x01"] {
                let key = key(&vec![part; count]);
                assert_eq!(key.is_digest(), count > if part.is_empty() { 15 } else { 10 });
                assert_eq!(seen.insert(key), count > 0 || part.is_empty());
            }
        }
    }
}
