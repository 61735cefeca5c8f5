//! The hash of keys, for every table of keys that clients can choose.
//!
//! It is MULTILINEAR of Lemire and Kaser ("Strongly universal string hashing is fast", The Computer Journal 57(11),
//! 2014): each word of a key is multiplied by a secret number of 128 bits, another one for each place, and the upper
//! half of the sum is the hash. Any two different keys then have the same hash under one in 2^64 secrets, however they
//! were chosen, as long as that was without knowing hashes. No client sees one.
//!
//! Hashes that multiply two words of a key with each other and fold the product have no such bound. Of 10^9 pairs of
//! keys that are complements in bytes 8 to 24, 18 had the same hash by foldhash, also by its slower form; those of ahash
//! and rapidhash fold in the same way. They take as long as this one. SipHash takes 12 to 28 ns longer for 4 to 64
//! bytes; the standard library's maps use it for texts of any length.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use super::buf::ROOM;
use super::{KeyBuf, Part};

/// The random numbers of a secret.
const SECRETS: usize = 4 + ROOM;

/// The bytes of a secret.
#[cfg(feature = "file")]
pub(crate) const SECRET_BYTES: usize = 16 * SECRETS;

/// A secret that hashes keys. No client can choose keys that share a hash, or a row of a table.
pub struct KeyHash {
    start: u128,
    salt: u128,
    /// For the upper half of the lengths of the parts.
    lengths: u128,
    /// For the lower half, and then the words.
    words: [u128; 1 + ROOM],
}

impl KeyHash {
    /// A secret of its own, from the operating system.
    #[expect(clippy::new_without_default, reason = "no two are equal")]
    pub fn new() -> Self {
        let random = RandomState::new();
        Self::of_secret(|number| random.hash_one(number))
    }

    /// A fixed secret: loom runs a test many times and needs the same result each time.
    #[cfg(all(test, loom))]
    pub(crate) fn fixed() -> Self {
        Self::of_secret(|number| (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn of_secret(random: impl Fn(u64) -> u64) -> Self {
        let mut numbers = 0..;
        let mut word = || u128::from(random(numbers.next().unwrap_or_default()));
        let mut next = || word() << 64 | word();
        Self::of_numbers(std::array::from_fn(|_| next()))
    }

    fn of_numbers(numbers: [u128; SECRETS]) -> Self {
        let [start, salt, lengths, words @ ..] = numbers;
        Self { start, salt, lengths, words }
    }

    /// The secret with these bytes: see [`to_bytes`](Self::to_bytes).
    #[cfg(feature = "file")]
    pub(crate) fn from_bytes(bytes: &[u8; SECRET_BYTES]) -> Self {
        let mut numbers = bytes.chunks_exact(16).map(|bytes| {
            u128::from_le_bytes(bytes.try_into().expect("a chunk has as many bytes as a number"))
        });
        Self::of_numbers(std::array::from_fn(|_| numbers.next().unwrap_or_default()))
    }

    /// The secret, for a file that nobody else can read.
    #[cfg(feature = "file")]
    pub(crate) fn to_bytes(&self) -> [u8; SECRET_BYTES] {
        let numbers = [self.start, self.salt, self.lengths].into_iter().chain(self.words);
        let mut bytes = [0; SECRET_BYTES];
        for (bytes, number) in bytes.chunks_exact_mut(16).zip(numbers) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// The hash of `key`. Each `salt` makes it another one: the identity of a limit, or the hash of another key.
    #[inline]
    pub fn of(&self, salt: u64, key: &KeyBuf) -> u64 {
        let [low, high] = key.length_words();
        let mut sum = self.sum(salt);
        sum.add(low);
        key.words().iter().for_each(|word| sum.add(*word));
        if high != 0 {
            sum.sum = sum.sum.wrapping_add(self.lengths.wrapping_mul(u128::from(high)));
        }
        sum.finish()
    }

    /// The [`hash`](Self::of) of the key of one value.
    #[inline(always)]
    pub(crate) fn of_part(&self, salt: u64, part: &impl Part) -> u64 {
        let mut sum = self.sum(salt);
        match part.single().for_each_word(|word| sum.add(word)) {
            Some(()) => sum.finish(),
            None => self.of(salt, &KeyBuf::of(part)),
        }
    }

    #[inline(always)]
    fn sum(&self, salt: u64) -> Sum<'_> {
        let sum = self.start.wrapping_add(self.salt.wrapping_mul(u128::from(salt)));
        Sum { sum, secrets: self.words.iter() }
    }
}

struct Sum<'a> {
    sum: u128,
    /// For the words to come. A key has no more.
    secrets: std::slice::Iter<'a, u128>,
}

impl Sum<'_> {
    #[inline(always)]
    fn add(&mut self, word: u64) {
        if let Some(secret) = self.secrets.next() {
            self.sum = self.sum.wrapping_add(secret.wrapping_mul(u128::from(word)));
        }
    }

    /// The upper half. Keys in sequence have sums in sequence, which a table would have in few rows, so its bits are
    /// mixed. Each step can be undone, so no two hashes become one.
    #[inline(always)]
    fn finish(self) -> u64 {
        let hash = (self.sum >> 64) as u64;
        let hash = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^ hash >> 29
    }
}

/// Shows nothing of the secret.
impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyHash").finish_non_exhaustive()
    }
}

/// A map whose keys are hashes by a secret.
pub type ByHash<T> = HashMap<u64, T, BuildHasherDefault<Hashed>>;

/// The hasher of what is hashed already, by a secret.
#[derive(Debug, Default)]
pub struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        // Samples of keys are chosen by the last bits, which are all 0 then, and a map chooses by these.
        self.0.rotate_right(32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum over all words of the longest key, and the upper half of it, bit by bit.
    fn plainly(hash: &KeyHash, salt: u64, key: &KeyBuf) -> u64 {
        let mut words = [0; 1 + ROOM];
        words[0] = key.length_words()[0];
        words[1..][..key.words().len()].copy_from_slice(key.words());
        let secrets = [hash.salt, hash.lengths].into_iter().chain(hash.words);
        let words = [salt, key.length_words()[1]].into_iter().chain(words);
        let mut sum = hash.start;
        for (secret, word) in secrets.zip(words) {
            for bit in (0..64).filter(|bit| word >> bit & 1 == 1) {
                sum = sum.wrapping_add(secret << bit);
            }
        }
        let hash = (sum / (1 << 64)) as u64;
        let hash = (hash ^ (hash / (1 << 32))).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^ (hash / (1 << 29))
    }

    fn key(parts: &[&[u8]]) -> KeyBuf {
        let mut key = KeyBuf::new();
        parts.iter().for_each(|part| key.push(part));
        key
    }

    #[test]
    fn a_hash_is_the_sum_that_the_proof_is_about() {
        let bytes: Vec<u8> = (0..200).map(|at| (at * 37 + 11) as u8).collect();
        let hash = KeyHash::new();
        for length in 0..=bytes.len() {
            for parts in [1, 2, 7, 12, 16] {
                let key =
                    key(&bytes[..length].chunks(length.div_ceil(parts).max(1)).collect::<Vec<_>>());
                for salt in [0, 1, u64::MAX, hash.of(0, &key)] {
                    assert_eq!(
                        hash.of(salt, &key),
                        plainly(&hash, salt, &key),
                        "{length}, {parts}"
                    );
                }
            }
        }
    }

    #[test]
    fn one_value_has_the_hash_of_its_key() {
        let hash = KeyHash::new();
        let text = "0123456789abcdef".repeat(8);
        for length in 0..=text.len() {
            let text = &text[..length];
            let expected = hash.of(7, &KeyBuf::of(text));
            assert_eq!(hash.of_part(7, &text), expected, "{length} bytes");
        }
        let parts = (7_u64, "a");
        assert_eq!(hash.of_part(7, &parts), hash.of(7, &KeyBuf::of(parts)));
        assert_eq!(hash.of_part(7, &7_u64), hash.of(7, &KeyBuf::of(7_u64)));
    }

    /// Pairs of keys that a client might choose.
    fn pairs() -> Vec<(String, KeyBuf, KeyBuf)> {
        let mut pairs = Vec::new();
        let bytes: Vec<u8> = (0..80).map(|at| (at * 151 + 13) as u8).collect();
        for length in [8, 16, 24, 32, 64, 80] {
            let whole = &bytes[..length];
            // Complements of each range of words.
            for (from, to) in (0..length)
                .step_by(8)
                .flat_map(|from| (from..length).step_by(8).map(move |to| (from, to + 8)))
            {
                let mut other = whole.to_vec();
                other[from..to].iter_mut().for_each(|byte| *byte = !*byte);
                pairs.push((format!("{from}..{to} of {length}"), key(&[whole]), key(&[&other])));
            }
            // One bit, at each end of each word.
            for bit in (0..length * 8).filter(|bit| matches!(bit % 64, 0 | 63)) {
                let mut other = whole.to_vec();
                other[bit / 8] ^= 1 << (bit % 8);
                pairs.push((format!("bit {bit} of {length}"), key(&[whole]), key(&[&other])));
            }
        }
        for length in 0..80 {
            let zeros = [0; 81];
            let (a, b) = (key(&[&zeros[..length]]), key(&[&zeros[..length + 1]]));
            pairs.push((format!("{length} zeros and one more"), a, b));
        }
        let parts = [key(&[b"", b"a"]), key(&[b"a", b""]), key(&[b"a"]), key(&[&[0; 8][..]; 9])];
        pairs.push(("the order of parts".into(), parts[0], parts[1]));
        pairs.push(("an empty part".into(), parts[1], parts[2]));
        pairs.push(("many parts".into(), parts[2], parts[3]));
        pairs
    }

    #[test]
    fn keys_that_a_client_chooses_are_no_more_alike_than_others() {
        const SECRETS: usize = 1_000;
        let pairs = pairs();
        let mut same = vec![[0; 64]; pairs.len()];
        for _ in 0..SECRETS {
            let hash = KeyHash::new();
            for (same, (_, a, b)) in same.iter_mut().zip(&pairs) {
                let differs = hash.of(3, a) ^ hash.of(3, b);
                assert_ne!(differs, 0);
                same.iter_mut().enumerate().for_each(|(bit, same)| *same += !differs >> bit & 1);
            }
        }
        // Seven standard deviations of a fair coin.
        let bounds = 500 - 110..=500 + 110;
        for (same, (name, ..)) in same.iter().zip(&pairs) {
            assert!(same.iter().all(|same| bounds.contains(same)), "{name}: {same:?}");
        }
    }

    #[test]
    fn keys_in_sequence_fill_rows_evenly_under_every_secret() {
        const ROWS: usize = 1_024;
        for step in [1, 2, 255, 1 << 8, 1 << 20, 1 << 32, 1 << 51, u64::MAX] {
            for _ in 0..20 {
                let hash = KeyHash::new();
                let mut rows = vec![0_u32; ROWS];
                for number in 0..4 * ROWS as u64 {
                    let hash = hash.of(0, &KeyBuf::of(number.wrapping_mul(step)));
                    rows[(hash >> 54) as usize] += 1;
                }
                // Four keys for each row. Chance has 19 empty ones, and one row with more than 16 in 100 tables.
                let empty = rows.iter().filter(|keys| **keys == 0).count();
                let most = rows.iter().max().copied().unwrap_or_default();
                assert!(empty < 60 && most < 24, "{step}: {empty} empty, at most {most}");
            }
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", KeyHash::new()), "KeyHash { .. }");
    }
}
