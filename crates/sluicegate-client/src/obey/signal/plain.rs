//! Lines of the shape that servers send, read in one pass: `"name";r=5;t=10, "other";r=1`.
//!
//! Names without escapes, and parameters that are numbers or strings. A line of any other shape is left to the general parser, which
//! takes three times as long, and decides whether it is malformed.

use super::item::{Item, Items};

/// Reads the items of `line`. `None` if it is not plain: some of its items may then have been added.
pub(super) fn read(line: &[u8], items: &mut Items) -> Option<()> {
    let mut rest = line;
    loop {
        let (name, after) = string(rest)?;
        rest = after;
        let mut item = Item::new();
        while let [b';', after @ ..] = rest {
            rest = parameter(skip(after, |byte| byte == b' '), &mut item)?;
        }
        item.add_to(items, name, 0);
        rest = skip(rest, is_space);
        match rest {
            [] => return Some(()),
            [b',', after @ ..] => rest = skip(after, is_space),
            _ => return None,
        }
    }
}

/// Sets a parameter, and returns what follows it.
fn parameter<'a>(text: &'a [u8], item: &mut Item) -> Option<&'a [u8]> {
    let (key, after) = take(text, |byte| byte.is_ascii_lowercase());
    let key = std::str::from_utf8(key).ok().filter(|key| !key.is_empty())?;
    let [b'=', value @ ..] = after else { return None };
    match (key, value.first()?) {
        ("pk", _) | ("r" | "t" | "q" | "w", b'"') => None,
        ("qu", _) => {
            let (unit, after) = string(value)?;
            item.set_unit(std::str::from_utf8(unit).ok()?);
            Some(after)
        }
        (_, b'"') => string(value).map(|(_, after)| after),
        _ => {
            let (number, after) = number(value)?;
            item.set_number(key, number);
            Some(after)
        }
    }
}

/// A string without escapes, without its quotes, and what follows it.
fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let [b'"', text @ ..] = text else { return None };
    let (string, after) =
        take(text, |byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'));
    match after {
        [b'"', after @ ..] => Some((string, after)),
        _ => None,
    }
}

/// An integer of at most 15 digits, which is as many as one of a structured field has, and what follows it.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let (digits, after) = take(text, |byte| byte.is_ascii_digit());
    if !(1..=15).contains(&digits.len()) || after.first() == Some(&b'.') {
        return None;
    }
    let number = digits.iter().fold(0, |number, digit| 10 * number + u64::from(digit - b'0'));
    Some((number, after))
}

fn take(text: &[u8], mut is_in: impl FnMut(u8) -> bool) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !is_in(*byte)).unwrap_or(text.len());
    text.split_at(end)
}

fn skip(text: &[u8], is_out: impl FnMut(u8) -> bool) -> &[u8] {
    take(text, is_out).1
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}
