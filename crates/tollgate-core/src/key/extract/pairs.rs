//! `name=value` pairs, percent-encoded.

use std::borrow::Cow;

/// What `+` means besides percent-encoding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Plus {
    Space,
    Plus,
}

pub(super) enum Found<'a> {
    Nothing,
    One(Cow<'a, [u8]>),
    /// Several values that differ: which of them a handler reads is anybody's guess.
    Several,
}

/// The value that `name` has in `pairs`, decoded; allocates only where there is something to decode.
pub(super) fn find<'a>(
    pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    name: &str,
    plus: Plus,
) -> Found<'a> {
    let mut values =
        pairs.filter(|(key, _)| decoded(key, plus).eq(name.bytes())).map(|(_, value)| value);
    let Some(first) = values.next() else {
        return Found::Nothing;
    };
    if values.any(|value| !decoded(value, plus).eq(decoded(first, plus))) {
        return Found::Several;
    }
    let encoded = |byte: &u8| *byte == b'%' || (*byte == b'+' && plus == Plus::Space);
    Found::One(if first.iter().any(encoded) {
        Cow::Owned(decoded(first, plus).collect())
    } else {
        Cow::Borrowed(first)
    })
}

/// A `%` that no two hexadecimal digits follow stands for itself, as every decoder has it.
fn decoded(text: &[u8], plus: Plus) -> impl Iterator<Item = u8> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (&first, tail) = rest.split_first()?;
        rest = tail;
        Some(match (first, tail) {
            (b'+', _) if plus == Plus::Space => b' ',
            (b'%', [high, low, tail @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    rest = tail;
                    high << 4 | low
                }
                _ => first,
            },
            _ => first,
        })
    })
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &str, plus: Plus) -> String {
        String::from_utf8(decoded(text.as_bytes(), plus).collect()).unwrap()
    }

    #[test]
    fn every_spelling_of_a_text_decodes_to_it() {
        for text in ["ab c", "a%62 c", "%61%62%20c", "a%62+c"] {
            assert_eq!(decode(text, Plus::Space), "ab c");
        }
        assert_eq!(decode("a+%2b", Plus::Plus), "a++");
    }

    #[test]
    fn a_stray_percent_sign_stands_for_itself() {
        for text in ["%", "%4", "%zz", "%4z", "100%", "%%"] {
            assert_eq!(decode(text, Plus::Space), text);
        }
    }

    #[test]
    fn what_needs_no_decoding_is_borrowed() {
        let found = |value: &'static [u8], plus| find([(&b"k"[..], value)].into_iter(), "k", plus);
        assert!(matches!(found(b"ab", Plus::Space), Found::One(Cow::Borrowed(b"ab"))));
        assert!(matches!(found(b"a+b", Plus::Plus), Found::One(Cow::Borrowed(b"a+b"))));
        assert!(matches!(found(b"a+b", Plus::Space), Found::One(Cow::Owned(_))));
    }
}
