//! `name=value` pairs, percent-encoded.
//!
//! The first rule goes through the text and allocates nothing, and so do others while the text is short. Then one puts the
//! pairs in order, and every other rule finds its name among them. So the work is the length of the text plus the number
//! of rules, not their product.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::ops::Range;

use crate::key::Missing;
use crate::key::path::steps::step;

/// The most pairs in a query or in all cookies of a request that rules read. PHP and Tomcat read as many parameters by
/// default; browsers keep less than 200 cookies for a site.
pub(crate) const MAX_PAIRS: usize = 1_000;

/// The most bytes of a query or of all cookies that rules read. Servers accept less by default: 60 KiB of all fields in
/// Envoy, 65,534 bytes of a target in hyper.
pub(crate) const MAX_PAIRS_LENGTH: usize = 65_536;

/// How many bytes rules scan before one puts the pairs in order. Scanning a usual query a few times costs less than the two
/// allocations of putting it in order.
const MOST_SCANNED: usize = 512;

/// How `+` is decoded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Plus {
    Space,
    Plus,
}

pub(super) enum PairValue<'a> {
    Nothing,
    One(Cow<'a, [u8]>),
    /// Several different values. It is unknown which of them a handler reads.
    Several,
}

/// What rules keep of the pairs of one text.
#[derive(Debug, Default)]
pub(crate) struct PairReadings {
    /// How many bytes were scanned.
    scanned: Cell<usize>,
    sorted: OnceCell<SortedPairs>,
}

/// Pairs that have not been decoded.
pub(super) struct Pairs<'a, I, L> {
    pub(super) pairs: I,
    /// The bytes of each, to be counted first.
    pub(super) counted: L,
    pub(super) readings: &'a PairReadings,
    pub(super) plus: Plus,
    /// What they are: "a query", "cookies".
    pub(super) noun: &'static str,
}

impl<'a, I, L> Pairs<'a, I, L>
where
    I: Iterator<Item = (&'a [u8], &'a [u8])>,
    L: Iterator<Item = usize>,
{
    /// The value of `name`, decoded. The first time, it allocates only if there is something to decode.
    pub(super) fn find(self, name: &'a str) -> Result<PairValue<'a>, Missing> {
        let mut values = self.values(name)?;
        let Some(first) = values.next() else {
            return Ok(PairValue::Nothing);
        };
        if values.any(|value| value != first) {
            return Ok(PairValue::Several);
        }
        Ok(PairValue::One(first))
    }

    /// Every value of `name`, decoded.
    pub(super) fn values(
        self,
        name: &'a str,
    ) -> Result<impl Iterator<Item = Cow<'a, [u8]>>, Missing> {
        let Self { pairs, counted, readings, plus, noun } = self;
        let is_sorted = readings.sorted.get().is_some() || {
            let length = check(counted, noun)?;
            let before = readings.scanned.replace(readings.scanned.get() + length);
            before > 0 && before + length > MOST_SCANNED
        };
        let (scanned, sorted) = if is_sorted {
            let sorted = readings.sorted.get_or_init(|| SortedPairs::of(pairs, plus));
            (None, Some(sorted.values(name.as_bytes()).map(Cow::Borrowed)))
        } else {
            let is_named = move |(key, _): &(&[u8], _)| decoded(key, plus).eq(name.bytes());
            (Some(pairs.filter(is_named).map(move |(_, value)| in_full(value, plus))), None)
        };
        Ok(scanned.into_iter().flatten().chain(sorted.into_iter().flatten()))
    }
}

/// How much there is to scan. An error if there are too many pairs, or they are too long.
fn check(pairs: impl Iterator<Item = usize>, noun: &str) -> Result<usize, Missing> {
    let (mut count, mut length) = (0, 0);
    for bytes in pairs {
        count += 1;
        length += bytes;
        if count > MAX_PAIRS || length > MAX_PAIRS_LENGTH {
            return Err(Missing::ambiguous(format!(
                "{noun} of at most {MAX_PAIRS} pairs and {MAX_PAIRS_LENGTH} bytes"
            )));
        }
    }
    step(count + length);
    Ok(count + length)
}

/// Decoded pairs, ordered by name.
#[derive(Debug)]
struct SortedPairs {
    text: Vec<u8>,
    /// Where the names and the values are in the text.
    pairs: Vec<(Range<usize>, Range<usize>)>,
}

impl SortedPairs {
    fn of<'a>(pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>, plus: Plus) -> Self {
        let mut text = Vec::new();
        let mut put = |part: &[u8]| {
            let begin = text.len();
            text.extend_from_slice(&in_full(part, plus));
            step(part.len());
            begin..text.len()
        };
        let mut pairs: Vec<_> = pairs.map(|(name, value)| (put(name), put(value))).collect();
        pairs.sort_unstable_by(|(one, _), (other, _)| text[one.clone()].cmp(&text[other.clone()]));
        Self { text, pairs }
    }

    fn values(&self, name: &[u8]) -> impl Iterator<Item = &[u8]> {
        let begin = self.pairs.partition_point(|(own, _)| self.text[own.clone()] < *name);
        let rest = &self.pairs[begin..];
        let behind = rest.partition_point(|(own, _)| self.text[own.clone()] == *name);
        step(1 + behind);
        rest[..behind].iter().map(|(_, value)| &self.text[value.clone()])
    }
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
    fn what_needs_no_decoding_is_borrowed_at_first() {
        let found = |value: &'static [u8], plus| {
            let readings = Box::leak(Box::default());
            let (pairs, counted) =
                ([(&b"k"[..], value)].into_iter(), [1 + value.len()].into_iter());
            Pairs { pairs, counted, readings, plus, noun: "pairs" }.find("k")
        };
        assert!(matches!(found(b"ab", Plus::Space), Ok(PairValue::One(Cow::Borrowed(b"ab")))));
        assert!(matches!(found(b"a+b", Plus::Plus), Ok(PairValue::One(Cow::Borrowed(b"a+b")))));
        assert!(matches!(found(b"a+b", Plus::Space), Ok(PairValue::One(Cow::Owned(_)))));
    }
}
