//! Where a row stands in Redis: the key of every limit and every one who is limited by it.

use std::fmt;
use std::fmt::Write as _;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use tollgate_core::{KeyBuf, Limit};

/// Slots of a cluster.
const SLOTS: u16 = 16_384;

/// How much of a keyed digest is kept, in bytes.
const KEPT: usize = 16;

/// How rows are named: `prefix{who}limit`.
///
/// What stands in braces is the hash tag: all limits of one key share a slot of a cluster, so that one
/// script can decide over them.
#[derive(Clone)]
pub(crate) struct Naming {
    prefix: String,
    secret: Option<Hmac<Sha256>>,
}

/// What is wrong with a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadPrefix(&'static str);

impl fmt::Display for BadPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the prefix holds a {}", self.0)
    }
}

impl std::error::Error for BadPrefix {}

impl Naming {
    /// Names rows legibly, after `prefix`.
    ///
    /// # Errors
    ///
    /// When the hash tag would begin in it, or it could not stand in an error's text.
    pub(crate) fn new(prefix: &str) -> Result<Self, BadPrefix> {
        if prefix.contains('{') {
            return Err(BadPrefix("`{`, which begins a hash tag"));
        }
        if !prefix.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
            return Err(BadPrefix("character that is not printable ASCII"));
        }
        Ok(Self { prefix: prefix.to_owned(), secret: None })
    }

    /// Names rows by a digest of the key that nobody can work out, or guess at, without `secret`.
    pub(crate) fn secret(mut self, secret: &[u8]) -> Self {
        self.secret =
            Some(Hmac::new_from_slice(secret).expect("HMAC takes a secret of any length"));
        self
    }
}

/// Shows no secret.
impl fmt::Debug for Naming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Naming")
            .field("prefix", &self.prefix)
            .field("is_secret", &self.secret.is_some())
            .finish()
    }
}

/// The Redis key of what `limit` remembers of `key`.
pub(crate) fn row_key(naming: &Naming, key: &KeyBuf, limit: &Limit) -> Vec<u8> {
    let mut row = String::with_capacity(naming.prefix.len() + 64);
    row.push_str(&naming.prefix);
    row.push('{');
    match &naming.secret {
        Some(secret) => write_digest(&mut row, secret, key),
        None => write_text(&mut row, key),
    }
    row.push('}');
    write_hex(&mut row, &limit.id().to_be_bytes());
    row.into_bytes()
}

/// The slot of a cluster that holds `row`: what stands in its first braces decides, unless that is
/// nothing.
pub(crate) fn slot(row: &[u8]) -> u16 {
    let tag = || {
        let (_, after) = split_at(row, b'{')?;
        let (tag, _) = split_at(after, b'}')?;
        (!tag.is_empty()).then_some(tag)
    };
    crc16::State::<crc16::XMODEM>::calculate(tag().unwrap_or(row)) % SLOTS
}

fn split_at(bytes: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|other| *other == byte)?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

fn write_digest(row: &mut String, secret: &Hmac<Sha256>, key: &KeyBuf) {
    let mut digest = secret.clone();
    digest.update(&key.lengths().to_le_bytes());
    key.words().iter().for_each(|word| digest.update(&word.to_le_bytes()));
    row.push('$');
    write_hex(row, &digest.finalize().into_bytes()[..KEPT]);
}

/// Part after part, with a comma between them; signs that stand for something never stand for themselves.
fn write_text(row: &mut String, key: &KeyBuf) {
    let mut words = key.words();
    let mut is_first = true;
    if key.is_digest() {
        let (digest, rest) = words.split_at(words.len().min(4));
        row.push('#');
        digest.iter().for_each(|word| write_hex(row, &word.to_le_bytes()));
        words = rest;
        is_first = false;
    } else if key.is_empty() {
        row.push('*');
    }
    for len in part_lengths(key) {
        if !is_first {
            row.push(',');
        }
        is_first = false;
        let (part, rest) = words.split_at(len.div_ceil(8).min(words.len()));
        words = rest;
        write_part(row, part, len);
    }
}

/// Below the leading bit of the lengths, first part first.
fn part_lengths(key: &KeyBuf) -> impl Iterator<Item = usize> {
    let lengths = key.lengths();
    let parts = lengths.ilog2() / 8;
    (0..parts).rev().map(move |part| usize::from((lengths >> (8 * part)) as u8))
}

fn write_part(row: &mut String, words: &[u64], len: usize) {
    if len == 0 {
        row.push('%');
    }
    for byte in words.iter().flat_map(|word| word.to_le_bytes()).take(len) {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => row.push(char::from(byte)),
            b'-' | b'_' | b'.' | b'/' | b':' | b'@' | b'=' | b'+' | b'~' => {
                row.push(char::from(byte));
            }
            _ => {
                row.push('%');
                write_hex(row, &[byte]);
            }
        }
    }
}

fn write_hex(row: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Text takes all that is written to it.
        let _ = write!(row, "{byte:02x}");
    }
}

#[cfg(test)]
mod tests;
