//! Keys as printable text: an exact form, for the names of rows and as a fallback for people.

use std::fmt;
use std::sync::Arc;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::KeyBuf;

/// The bytes of a keyed digest that are kept.
const KEPT: usize = 16;

/// Makes digests of keys that cannot be reversed or guessed without the secret: for keys that should not be readable
/// in another system, such as addresses and API keys.
///
/// ```
/// use sluicegate::key::{KeyBuf, KeySecret};
///
/// let secret = KeySecret::new(b"a secret of this service");
/// let mut text = String::new();
/// secret.print(&KeyBuf::of("alice"), &mut text);
/// assert!(text.starts_with('$') && !text.contains("alice"));
/// ```
#[derive(Clone)]
pub struct KeySecret(Arc<Hmac<Sha256>>);

impl KeySecret {
    /// A secret of any length.
    pub fn new(secret: &[u8]) -> Self {
        let secret = Hmac::new_from_slice(secret).expect("HMAC takes a secret of any length");
        Self(Arc::new(secret))
    }

    /// Appends the digest of `key` to `text`: a `$`, then 128 bits of an HMAC-SHA-256 as 32 hexadecimal
    /// digits.
    pub fn print(&self, key: &KeyBuf, text: &mut String) {
        let mut digest = Hmac::clone(&self.0);
        digest.update(&key.lengths().to_le_bytes());
        key.words().iter().for_each(|word| digest.update(&word.to_le_bytes()));
        text.push('$');
        push_hex(text, &digest.finalize().into_bytes()[..KEPT]);
    }
}

/// Does not show the secret.
impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySecret")
    }
}

impl KeyBuf {
    /// The name of this key's row of the limit with this [id](crate::Limit::id) in a store that other programs can read:
    /// `prefix{key}id`. With a secret, the key is its digest.
    pub fn row_name(&self, prefix: &str, secret: Option<&KeySecret>, limit: u64) -> String {
        let mut row = String::with_capacity(prefix.len() + 64);
        row.push_str(prefix);
        row.push('{');
        match secret {
            Some(secret) => secret.print(self, &mut row),
            None => self.print(&mut row),
        }
        row.push('}');
        push_hex(&mut row, &limit.to_be_bytes());
        row
    }

    /// Appends the key to `text`, part by part, separated by commas. No two keys have the same text.
    ///
    /// Letters, digits and `-_./:@=+~` are written as they are. Every other byte is written as `%` and two
    /// hexadecimal digits. An empty part is a single `%`, and an empty key is `*`. A key that was too long to be kept
    /// as written begins with `#` and its digest.
    ///
    /// ```
    /// use sluicegate::key::KeyBuf;
    ///
    /// let mut text = String::new();
    /// KeyBuf::of(("tenant", "Zoë")).print(&mut text);
    /// assert_eq!(text, "tenant,Zo%c3%ab");
    /// ```
    pub fn print(&self, text: &mut String) {
        let (folded, words) = self.words().split_at(self.digest_words());
        if self.is_digest() {
            text.push('#');
            folded.iter().for_each(|word| push_hex(text, &word.to_le_bytes()));
        } else if self.is_empty() {
            text.push('*');
        }
        for (i, part) in parts(words, self.lengths()).enumerate() {
            if i > 0 || self.is_digest() {
                text.push(',');
            }
            push_part(text, part);
        }
    }

    /// The number of words of a digest at the beginning.
    pub(super) fn digest_words(&self) -> usize {
        if self.is_digest() { self.words().len().min(4) } else { 0 }
    }
}

/// A part of a key: its words, and its length in bytes.
#[derive(Clone, Copy)]
pub(super) struct PartWords<'a> {
    words: &'a [u64],
    len: usize,
}

impl PartWords<'_> {
    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).take(self.len)
    }
}

/// The lengths are below their leading bit, the first part highest.
pub(super) fn parts(words: &[u64], lengths: u128) -> impl Iterator<Item = PartWords<'_>> {
    let count = lengths.ilog2() / 8;
    let lens = (0..count).rev().map(move |part| usize::from((lengths >> (8 * part)) as u8));
    lens.scan(words, |words, len| {
        let (part, rest) = words.split_at(len.div_ceil(8).min(words.len()));
        *words = rest;
        Some(PartWords { words: part, len })
    })
}

/// Characters with a special meaning are always escaped.
pub(super) fn push_part(text: &mut String, part: PartWords<'_>) {
    if part.len == 0 {
        text.push('%');
    }
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => text.push(char::from(byte)),
            b'-' | b'_' | b'.' | b'/' | b':' | b'@' | b'=' | b'+' | b'~' => {
                text.push(char::from(byte));
            }
            _ => {
                text.push('%');
                push_hex(text, &[byte]);
            }
        }
    }
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}
