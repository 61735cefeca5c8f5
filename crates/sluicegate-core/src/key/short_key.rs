use super::KeyBuf;

/// Words that are kept: an address of any kind, or an IPv4 address and a method.
const WORDS: usize = 3;

/// A short [`KeyBuf`] that is kept while its request is under way: less than half as large, because it is moved along
/// with the future of the response, several times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortKey {
    lengths: u64,
    words: [u64; WORDS],
}

impl ShortKey {
    /// `key`, unless it is too long.
    #[inline(always)]
    pub(crate) fn of(key: &KeyBuf) -> Option<Self> {
        key.short().map(|(lengths, words)| Self { lengths, words })
    }

    /// The key.
    pub(crate) fn key(&self) -> KeyBuf {
        KeyBuf::from_short(self.lengths, self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_key_is_the_key() {
        for parts in 0..20 {
            for len in 0..40 {
                let mut key = KeyBuf::new();
                (0..parts).for_each(|part| key.push(&vec![part; len]));
                match ShortKey::of(&key) {
                    Some(short) => assert_eq!(short.key(), key, "{parts} parts of {len}"),
                    None => assert!(key.words().len() > WORDS || parts > 7),
                }
            }
        }
    }

    #[test]
    fn a_kept_key_is_small() {
        assert!(size_of::<ShortKey>() <= 32);
    }
}
