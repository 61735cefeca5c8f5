//! `name=value` pairs, percent-encoded.

use std::borrow::Cow;

/// How `+` is decoded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Plus {
    Space,
    Plus,
}

pub(super) enum Found<'a> {
    Nothing,
    One(Cow<'a, [u8]>),
    /// Several different values. It is unknown which of them a handler reads.
    Several,
}

/// The value of `name` in `pairs`, decoded. Allocates only if there is something to decode.
pub(super) fn find<'a>(
    pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    name: &str,
    plus: Plus,
) -> Found<'a> {
    let mut values = named(pairs, name, plus);
    let Some(first) = values.next() else {
        return Found::Nothing;
    };
    if values.any(|value| !decoded(value, plus).eq(decoded(first, plus))) {
        return Found::Several;
    }
    Found::One(in_full(first, plus))
}

/// Every value of `name` in `pairs`, decoded.
pub(super) fn values<'a>(
    pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    name: &'a str,
    plus: Plus,
) -> impl Iterator<Item = Cow<'a, [u8]>> {
    named(pairs, name, plus).map(move |value| in_full(value, plus))
}

fn named<'a>(
    pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    name: &str,
    plus: Plus,
) -> impl Iterator<Item = &'a [u8]> {
    let is_named = move |(key, _): &(&[u8], _)| decoded(key, plus).eq(name.bytes());
    pairs.filter(is_named).map(|(_, value)| value)
}

fn in_full(value: &[u8], plus: Plus) -> Cow<'_, [u8]> {
    let encoded = |byte: &u8| *byte == b'%' || (*byte == b'+' && plus == Plus::Space);
    if value.iter().any(encoded) {
        Cow::Owned(decoded(value, plus).collect())
    } else {
        Cow::Borrowed(value)
    }
}

pub(crate) fn percent_decoded(text: &[u8]) -> impl Iterator<Item = u8> {
    decoded(text, Plus::Plus)
}

/// A `%` without two hexadecimal digits after it is a plain `%`, as in other decoders.
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
