//! Keys of one value, in the form in which a hash reads them.
//!
//! A decision on such a key needs no [`KeyBuf`]: it is hashed straight from where it is. What a buffer holds is written
//! to memory first, and the compare-and-swap of a decision waits for all that was written before it. Measured with a
//! thousand keys of type `u64`: 58 cycles instead of 77.

use super::KeyBuf;
use super::buf::{MOST_BYTES, WORD, last_of, length_of, word_of};

/// A key of one value.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub enum Single<'a> {
    /// What a buffer would hold of it: the length, and one word or two.
    Words(u64, u64, Option<u64>),
    /// Bytes that a buffer would hold as they are.
    Bytes(&'a [u8]),
    /// Anything else: it is written into a buffer.
    Other,
}

impl<'a> Single<'a> {
    /// A value of up to 16 bytes, whose length is known when this is compiled.
    #[inline(always)]
    pub(super) fn of_few(bytes: &[u8]) -> Self {
        let mut key = KeyBuf::new();
        key.push(bytes);
        let [length, _] = key.length_words();
        match *key.words() {
            [first] => Self::Words(length, first, None),
            [first, second] => Self::Words(length, first, Some(second)),
            _ => Self::Other,
        }
    }

    /// Bytes that are kept as written, unless they are too many for that.
    #[inline]
    pub(super) fn of_bytes(bytes: &'a [u8]) -> Self {
        if bytes.len() <= MOST_BYTES { Self::Bytes(bytes) } else { Self::Other }
    }

    /// Hands over the words that a buffer would hold, the one of the length first; `None` where a buffer is needed.
    #[inline(always)]
    pub(crate) fn for_each_word(self, mut each: impl FnMut(u64)) -> Option<()> {
        match self {
            Self::Words(length, first, second) => {
                each(length);
                each(first);
                if let Some(second) = second {
                    each(second);
                }
            }
            Self::Bytes(bytes) => {
                each(length_of(bytes.len()));
                let mut words = bytes.chunks_exact(WORD);
                words.by_ref().for_each(|word| each(word_of(word)));
                if !words.remainder().is_empty() {
                    each(last_of(bytes));
                }
            }
            Self::Other => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;

    use super::*;
    use crate::key::Part;

    /// Whether a value alone is hashed without a buffer; if so, its words are those of one.
    fn is_single(part: &(impl Part + ?Sized)) -> bool {
        let key = KeyBuf::of(part);
        let mut words = Vec::new();
        if part.single().for_each_word(|word| words.push(word)).is_none() {
            return false;
        }
        let [low, high] = key.length_words();
        assert_eq!(high, 0);
        assert_eq!(words.split_first(), Some((&low, key.words())));
        true
    }

    #[test]
    fn a_value_alone_has_the_words_that_a_buffer_has_of_it() {
        let text: String = ('!'..='~').cycle().take(200).collect();
        for length in 0..=text.len() {
            let text = &text[..length];
            assert_eq!(is_single(text), length <= MOST_BYTES, "{length} bytes");
            assert_eq!(is_single(&String::from(text)), length <= MOST_BYTES);
            assert_eq!(is_single(&text.as_bytes().to_vec()), length <= MOST_BYTES);
            assert_eq!(is_single(&Arc::<str>::from(text)), length <= MOST_BYTES);
        }
        for number in [0, 1, 0x8765_4321, u64::MAX] {
            assert!(
                is_single(&number) && is_single(&(number as u8)) && is_single(&(number as u16))
            );
            assert!(is_single(&(number as i32)) && is_single(&(u128::from(number) << 50)));
        }
        for address in ["203.0.113.7", "2001:db8::1", "::ffff:203.0.113.7", "::"] {
            let address: IpAddr = address.parse().expect("an address");
            assert!(is_single(&address) && is_single(&&address));
        }
    }

    #[test]
    fn what_has_several_parts_is_written_into_a_buffer() {
        assert!(!is_single(&("a", "b")) && !is_single(&()) && !is_single(&KeyBuf::of("a")));
    }
}
