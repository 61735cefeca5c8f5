//! The names of rows in Redis.
//!
//! Keys are legible and cannot meet. A row is `prefix{key}limit`. The part in braces is the parts of the
//! key, with everything but letters, digits and a few signs escaped, so that no client can end the hash tag
//! early or write the comma that separates parts. All limits of one key share a slot. With a secret, it is
//! 128 bits of an HMAC instead.
//!
//! A row is one string: 16 bytes for the two words of most limits, 56 with a gap or a ban, 72 where
//! refusals count, 112 where it is carried over, and 56 more for each further set of numbers, after 16 for
//! the first of them.
//!
//! Windows and logs expire when they are as good as none, which the step knows to the microsecond. The
//! expiry is rounded up to milliseconds, is never 0, and is set by the script that writes the row. The row
//! of a token bucket expires at the first multiple of a power of two, no more than what the row was worth
//! when its words were written, at which it is worth nothing: never before it is as good as none, and at
//! most twice as late. That moment follows from the words and the identity of the limit alone, so a script
//! that reads a row knows its expiry without asking. Where new words have the same expiry, they are written
//! in place (`SETRANGE`), which costs two thirds of `SET .. PX`. All scripts that write such rows agree on
//! it. The clock of a test writes every expiry.
//!
//! A refusal writes nothing, unless the limit records refusals or the clock has stepped back. A log is one
//! string too, a head and its stamps, read and written in place by ranges, so a long log takes no more
//! commands and bytes than a short one. The space of dropped stamps is reclaimed when it is most of the
//! string.

use std::fmt;

use sluicegate_core::Limit;
use sluicegate_core::adapter::ConfigError;
use sluicegate_core::key::{KeyBuf, KeySecret};

/// Slots of a cluster.
const SLOTS: u16 = 16_384;

/// How rows are named: `prefix{key}limit`.
///
/// The part in braces is the hash tag. All limits of one key share a slot of a cluster, so that one script can decide over
/// them.
#[derive(Clone)]
pub(crate) struct Naming {
    prefix: String,
    secret: Option<KeySecret>,
}

impl Naming {
    /// Names rows by `prefix` and the key in plain text.
    ///
    /// # Errors
    ///
    /// When the prefix contains `{`, where a hash tag would begin, or a character that is not printable ASCII.
    pub(crate) fn new(prefix: &str) -> Result<Self, ConfigError> {
        if prefix.contains('{') {
            return Err(ConfigError::new("the prefix contains a `{`, which begins a hash tag"));
        }
        if !prefix.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
            return Err(ConfigError::new(
                "the prefix contains a character that is not printable ASCII",
            ));
        }
        Ok(Self { prefix: prefix.to_owned(), secret: None })
    }

    /// Names rows by a keyed digest of the key, which can be neither computed nor guessed without `secret`.
    pub(crate) fn secret(mut self, secret: &[u8]) -> Self {
        self.secret = Some(KeySecret::new(secret));
        self
    }
}

/// Hides the secret.
impl fmt::Debug for Naming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Naming")
            .field("prefix", &self.prefix)
            .field("is_secret", &self.secret.is_some())
            .finish()
    }
}

/// The name of the row of `limit` for `key`.
pub(crate) fn row_key(naming: &Naming, key: &KeyBuf, limit: &Limit) -> Vec<u8> {
    key.row_name(&naming.prefix, naming.secret.as_ref(), limit.id()).into_bytes()
}

/// The name of the row of the members of a group.
pub(crate) fn group_key(naming: &Naming, group: &str) -> Vec<u8> {
    tagged(naming, group, "members")
}

/// The rows of a mastership: the master, and the clients. Both are in one slot.
#[cfg(feature = "mastership")]
pub(crate) fn mastership_keys(naming: &Naming, name: &str) -> [Vec<u8>; 2] {
    ["master", "clients"].map(|what| tagged(naming, name, what))
}

/// A row that belongs to a name, not to a limit.
fn tagged(naming: &Naming, name: &str, what: &str) -> Vec<u8> {
    let mut row = naming.prefix.clone();
    row.push('{');
    KeyBuf::of(name).print(&mut row);
    row.push('}');
    row.push_str(what);
    row.into_bytes()
}

/// The slot of a cluster that holds `row`. The text in the first braces decides, unless it is empty.
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
