//! Bytes of requests as texts.
//!
//! What a client sends need not be UTF-8, and must not get past a limit by that. Claims, paths and the names of resources
//! are texts. So what is UTF-8 stays as it is, and every byte that is not becomes a character of its own, of those that are
//! for private use. Different bytes are different texts, and a pattern matches around such a byte as it does around a letter.

use std::borrow::Cow;

use sluicegate_core::adapter::step;

/// The character for the byte 0. Those for the other bytes follow it, and are the last ones of Unicode.
const FIRST: u32 = 0x10_FF00;

/// The first byte of these characters in UTF-8.
const LEAD: u8 = 0xf4;

/// The text of these bytes. No other bytes have it.
pub(crate) fn of(bytes: &[u8]) -> Cow<'_, str> {
    step(bytes.len());
    match str::from_utf8(bytes) {
        // Nearly every text takes this way: valid, and without a character of the last plane, so nothing needs to be
        // told apart.
        Ok(text) if !bytes.contains(&LEAD) => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(bytes)),
    }
}

/// The bytes of a text that [`of`] made.
pub(crate) fn bytes(text: &str) -> Cow<'_, [u8]> {
    if !text.as_bytes().contains(&LEAD) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for char in text.chars() {
        match byte_of(char) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            match byte_of(char) {
                // A character that would be taken for a byte.
                Some(_) => text.extend(char.encode_utf8(&mut [0; 4]).bytes().map(char_of)),
                None => text.push(char),
            }
        }
        text.extend(chunk.invalid().iter().copied().map(char_of));
    }
    text
}

fn char_of(byte: u8) -> char {
    char::from_u32(FIRST + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn byte_of(char: char) -> Option<u8> {
    u32::from(char).checked_sub(FIRST).and_then(|byte| u8::try_from(byte).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf_8_stays_as_it_is() {
        for text in ["", "alice", "żółw", "\u{fffd}", "\u{10000}", "\0"] {
            assert!(matches!(of(text.as_bytes()), Cow::Borrowed(same) if same == text));
            assert_eq!(*bytes(text), *text.as_bytes());
        }
    }

    #[test]
    fn different_bytes_are_different_texts() {
        let mut texts = std::collections::HashMap::new();
        let pieces: [&[u8]; 12] = [
            b"",
            b"a",
            b"\xff",
            b"\xfe",
            b"\xc5",
            b"\xbc",
            b"\xf4\x8f",
            "ż".as_bytes(),
            "\u{fffd}".as_bytes(),
            "\u{10ffff}".as_bytes(),
            "\u{10fffe}".as_bytes(),
            "\u{100000}".as_bytes(),
        ];
        for one in pieces {
            for other in pieces {
                for third in pieces {
                    let sent = [one, other, third].concat();
                    let text = of(&sent).into_owned();
                    assert_eq!(*bytes(&text), *sent, "{text:?}");
                    let known = texts.entry(text).or_insert_with(|| sent.clone());
                    assert_eq!(*known, sent);
                }
            }
        }
    }

    #[test]
    fn a_byte_that_is_not_utf_8_changes_nothing_around_it() {
        let text = of(b"/login/\xff/\xc5\xbc");
        assert!(text.starts_with("/login/") && text.ends_with("/ż"), "{text:?}");
    }
}
