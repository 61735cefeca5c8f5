use std::fmt;
use std::hash::{Hash, Hasher};

use sha2::{Digest, Sha256};

/// Longest key that is kept as it was written: an address, a route and an API key fit together, and
/// with its two flags the buffer is one cache line.
const INLINE: usize = 62;

/// A key being written, part after part, each with its length first.
///
/// Parts never run into each other: `("ab", "c")` and `("a", "bc")` are different keys. A key of up
/// to 62 bytes is kept as written, without allocating; from there on the front is folded into a
/// SHA-256 digest, so a key's size is bounded whatever the client sends, and nobody can make two
/// long keys meet.
///
/// ```
/// use tollgate_core::KeyBuf;
///
/// let (mut a, mut b) = (KeyBuf::new(), KeyBuf::new());
/// a.push(b"ab");
/// a.push(b"c");
/// b.push(b"a");
/// b.push(b"bc");
/// assert_ne!(a, b);
/// ```
#[derive(Clone, Copy)]
pub struct KeyBuf {
    bytes: [u8; INLINE],
    len: u8,
    /// Whether `bytes` begins with the digest of what stood there before.
    folded: bool,
}

impl KeyBuf {
    /// An empty key.
    #[inline]
    pub const fn new() -> Self {
        Self { bytes: [0; INLINE], len: 0, folded: false }
    }

    /// Appends one part, its length first.
    #[inline]
    pub fn push(&mut self, part: &[u8]) {
        match u8::try_from(part.len()) {
            Ok(len) if len < u8::MAX => self.write(&[len]),
            _ => {
                self.write(&[u8::MAX]);
                self.write(&(part.len() as u64).to_le_bytes());
            }
        }
        self.write(part);
    }

    /// What stands for the key: what was written, or a digest and what was written after it.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Whether the key was too long to be kept as written.
    #[inline]
    pub fn is_digest(&self) -> bool {
        self.folded
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let start = usize::from(self.len);
        if let Some(room) = self.bytes.get_mut(start..start + bytes.len()) {
            room.copy_from_slice(bytes);
            self.len += bytes.len() as u8;
            return;
        }
        let digest = Sha256::new()
            .chain_update([u8::from(self.folded)])
            .chain_update(self.as_bytes())
            .chain_update(bytes)
            .finalize();
        self.bytes = [0; INLINE];
        self.bytes[..digest.len()].copy_from_slice(&digest);
        self.len = digest.len() as u8;
        self.folded = true;
    }
}

impl Default for KeyBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for KeyBuf {
    fn eq(&self, other: &Self) -> bool {
        self.folded == other.folded && self.as_bytes() == other.as_bytes()
    }
}

impl Eq for KeyBuf {}

impl Hash for KeyBuf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.as_bytes());
        state.write_u8(self.len | u8::from(self.folded) << 7);
    }
}

/// Shows the size alone: keys hold addresses and credentials, which have no place in a log.
impl fmt::Debug for KeyBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyBuf({} bytes)", self.len)
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
        for len in 0..2_000 {
            let part = vec![b'x'; len];
            let key = key(&[&part]);
            assert!(key.as_bytes().len() <= INLINE);
            assert!(seen.insert(key), "a key of {len} bytes met a shorter one");
        }
    }

    #[test]
    fn a_short_key_cannot_pose_as_a_digest() {
        let long = key(&[&[1; 100]]);
        let mut posing = KeyBuf::new();
        posing.write(long.as_bytes());
        assert_ne!(long, posing);
    }
}
