//! Where a row stands in Redis: the key of every limit and every one who is limited by it.

use std::fmt;
use std::fmt::Write as _;

use sluicegate_core::Limit;
use sluicegate_core::key::{KeyBuf, KeySecret};

/// Slots of a cluster.
const SLOTS: u16 = 16_384;

/// How rows are named: `prefix{who}limit`.
///
/// What stands in braces is the hash tag: all limits of one key share a slot of a cluster, so that one
/// script can decide over them.
#[derive(Clone)]
pub(crate) struct Naming {
    prefix: String,
    secret: Option<KeySecret>,
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
        self.secret = Some(KeySecret::new(secret));
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
        Some(secret) => secret.print(key, &mut row),
        None => key.print(&mut row),
    }
    row.push('}');
    // Text takes all that is written to it.
    let _ = write!(row, "{:016x}", limit.id());
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

#[cfg(test)]
mod tests;
