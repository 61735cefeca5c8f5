use super::asked::RequestFields;
use crate::json::{Name, Number};

/// Looks for bounds of the output in what is not JSON, or no longer: a service may read it all the same, because it allows
/// a comma too many, deeper nesting, or forms.
///
/// It takes each number for one that shortly follows a name, whatever is between them.
#[derive(Debug, Clone)]
pub(super) struct Scan {
    word: [u8; LONGEST],
    /// The length of the word, which may be longer than what is kept.
    length: usize,
    /// The byte before the word.
    before: u8,
    /// The last byte.
    last: u8,
    name: Name,
    /// How many bytes are allowed between the name and its number.
    gap: usize,
    number: Option<Number>,
}

/// No name of a bound is longer.
const LONGEST: usize = 24;

/// `"\r\n\r\n` is between them in a form of several parts.
const GAP: usize = 16;

impl Default for Scan {
    fn default() -> Self {
        Self {
            word: [0; LONGEST],
            length: 0,
            before: 0,
            last: 0,
            name: Name::Other,
            gap: 0,
            number: None,
        }
    }
}

impl Scan {
    /// Reads the next bytes.
    pub(super) fn read(&mut self, bytes: &[u8], asked: &mut RequestFields) {
        for &byte in bytes {
            self.read_byte(byte, asked);
            self.last = byte;
        }
    }

    /// The bytes have ended.
    pub(super) fn finish(&mut self, asked: &mut RequestFields) {
        self.read_byte(0, asked);
    }

    fn read_byte(&mut self, byte: u8, asked: &mut RequestFields) {
        if let Some(number) = &mut self.number {
            if matches!(byte, b'0'..=b'9' | b'.' | b'+' | b'-' | b'e' | b'E' | b'_') {
                number.read(&[byte]);
                return;
            }
            asked.bound(self.name, number.value());
            (self.number, self.name) = (None, Name::Other);
        }
        if byte.is_ascii_alphabetic() || byte == b'_' {
            if self.length == 0 {
                self.before = self.last;
            }
            if let Some(kept) = self.word.get_mut(self.length) {
                *kept = byte;
            }
            self.length += 1;
            return;
        }
        if self.length > 0 {
            self.name = self.name();
            (self.length, self.gap) = (0, GAP);
        }
        if self.name == Name::Other {
            return;
        }
        if byte.is_ascii_digit() {
            // A sign in front was one byte of the gap: `-1` reads as 1, which errs on the high side.
            let mut number = Number::new();
            number.read(&[byte]);
            self.number = Some(number);
        } else {
            // The gap is finite, so a name that is mentioned in a text does not wait for a number at the end of the
            // document.
            self.gap -= 1;
            if self.gap == 0 {
                self.name = Name::Other;
            }
        }
    }

    fn name(&self) -> Name {
        match self.word.get(..self.length).map_or(Name::Other, Name::of) {
            name @ (Name::MaxTokens | Name::BestOf) => name,
            // A single letter is a name only where it is written as one.
            Name::N if matches!(self.before, b'"' | b'\'' | b'&') => Name::N,
            _ => Name::Other,
        }
    }
}
