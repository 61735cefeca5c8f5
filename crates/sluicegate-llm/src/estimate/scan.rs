use super::asked::{RequestFields, is_bound};
use crate::json::{Name, Number};

/// Looks for bounds of the output in what is not JSON, or no longer: a service may read it all the same, because it allows
/// a comma too many, deeper nesting, or forms.
///
/// A number that follows the name of a bound within a kilobyte is taken for one, whatever is between them: comments, or the
/// header of a part of a form. Of several, the largest counts. Names and numbers may be escaped as in JSON or in a form.
#[derive(Debug, Clone)]
pub(super) struct Scan {
    escape: Escape,
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

#[derive(Debug, Clone, Copy)]
enum Escape {
    None,
    Backslash,
    /// In the digits of `\u005f` or `%5f`.
    Digits {
        left: u8,
        code: u32,
    },
}

/// No name of a bound is longer.
const LONGEST: usize = 24;

/// The name is not kept for ever, so that one that is mentioned in a text does not wait for a number at the end of the
/// document.
const GAP: usize = 1_024;

/// `n` means other things in a text.
const SHORT_GAP: usize = 16;

impl Default for Scan {
    fn default() -> Self {
        Self {
            escape: Escape::None,
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
    /// What comes next belongs to a value of this name, of which `number` is read already.
    pub(super) fn begin(&mut self, name: Name, number: Option<Number>) {
        // The JSON says that its value comes next, however short the name is.
        (self.name, self.gap, self.number) = (name, GAP, number);
    }

    /// Reads the next bytes.
    pub(super) fn read(&mut self, bytes: &[u8], asked: &mut RequestFields) {
        for &byte in bytes {
            self.escape = match (self.escape, byte) {
                (Escape::None, b'\\') => Escape::Backslash,
                (Escape::None, b'%') => Escape::Digits { left: 2, code: 0 },
                (Escape::Backslash, b'u') => Escape::Digits { left: 4, code: 0 },
                (Escape::Digits { left, code }, _) => match char::from(byte).to_digit(16) {
                    Some(digit) if left > 1 => {
                        Escape::Digits { left: left - 1, code: 16 * code + digit }
                    }
                    Some(digit) => {
                        // What is not ASCII is in no name.
                        let byte = u8::try_from(16 * code + digit).unwrap_or(0xff);
                        self.read_byte(byte, asked);
                        Escape::None
                    }
                    None => {
                        self.read_byte(b'%', asked);
                        self.read_byte(byte, asked);
                        Escape::None
                    }
                },
                (Escape::None | Escape::Backslash, _) => {
                    self.read_byte(byte, asked);
                    Escape::None
                }
            };
        }
    }

    /// The bytes have ended.
    pub(super) fn finish(&mut self, asked: &mut RequestFields) {
        self.read_byte(0, asked);
    }

    fn read_byte(&mut self, byte: u8, asked: &mut RequestFields) {
        let last = std::mem::replace(&mut self.last, byte);
        if let Some(number) = &mut self.number {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-' | b'_') {
                number.read(&[byte]);
                return;
            }
            asked.found(self.name, number.value());
            self.number = None;
            if is_short(self.name) {
                self.name = Name::Other;
            }
        }
        if byte.is_ascii_alphabetic() || byte == b'_' {
            if self.length == 0 {
                self.before = last;
            }
            if let Some(kept) = self.word.get_mut(self.length) {
                *kept = byte;
            }
            self.length += 1;
            return;
        }
        if self.length > 0 {
            match self.name() {
                Name::Other => self.gap = self.gap.saturating_sub(self.length),
                name => {
                    (self.name, self.gap) = (name, if is_short(name) { SHORT_GAP } else { GAP });
                }
            }
            self.length = 0;
        }
        if self.gap == 0 {
            self.name = Name::Other;
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
            self.gap = self.gap.saturating_sub(1);
        }
    }

    fn name(&self) -> Name {
        let is_quoted = matches!(self.before, b'"' | b'\'' | b'&');
        match self.word.get(..self.length).map_or(Name::Other, Name::of) {
            // A single letter is a name only where it is written as one.
            Name::N if self.length == 1 && !is_quoted => Name::Other,
            name if is_bound(name) => name,
            _ => Name::Other,
        }
    }
}

/// Whether it multiplies, so that a number that is not its own would make the largest error.
const fn is_short(name: Name) -> bool {
    matches!(name, Name::N | Name::BestOf)
}
