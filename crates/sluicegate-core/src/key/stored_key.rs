use super::KeyBuf;

/// Words that are kept in place: an address of any kind, or an IPv4 address and a method.
const IN_PLACE: usize = 3;

/// A [`KeyBuf`] that is kept while its request is under way: less than half as large, because it is moved along with
/// the future of the response, several times. A longer key is boxed.
#[derive(Clone, Debug)]
pub(crate) enum StoredKey {
    Short { lengths: u64, words: [u64; IN_PLACE], used: u8 },
    Long(Box<KeyBuf>),
}

impl StoredKey {
    #[inline(always)]
    pub(crate) fn of(key: &KeyBuf) -> Self {
        match key.short() {
            Some((lengths, words, used)) => Self::Short { lengths, words, used },
            None => Self::Long(Box::new(*key)),
        }
    }

    /// The key.
    pub(crate) fn key(&self) -> KeyBuf {
        match self {
            Self::Short { lengths, words, used } => KeyBuf::from_short(*lengths, *words, *used),
            Self::Long(key) => **key,
        }
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
                assert_eq!(StoredKey::of(&key).key(), key, "{parts} parts of {len}");
            }
        }
    }

    #[test]
    fn a_kept_key_is_small() {
        assert!(size_of::<StoredKey>() <= 40);
    }
}
