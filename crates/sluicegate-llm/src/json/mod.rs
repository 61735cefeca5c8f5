//! Reads JSON as its bytes arrive, in pieces of any length, and keeps nothing but the path and the beginning of one
//! value.
//!
//! A parser that needs the whole document would have to hold a body of any length. This one shows each number and each
//! string together with the names that lead to it, and needs the same memory for every document. What a string
//! contains is never taken for structure.

mod number;
mod path;

pub(crate) use self::number::Number;
pub(crate) use self::path::{Name, Path};

/// The longest text of a key or string that is kept. No name in [`Name`] is longer.
const KEPT: usize = 40;

/// The length of `true`, `false` and `null`, about.
const WORD: u64 = 4;

/// What is shown of a document.
pub(crate) trait Visit {
    /// An array or an object begins, which is the last level of `path`.
    fn open(&mut self, _path: &Path) {}

    /// A number at `path`. `None` if it is negative or malformed, or `true`, `false` or `null`.
    fn number(&mut self, path: &Path, number: Option<u64>);

    /// A string at `path`.
    fn string(&mut self, path: &Path, string: JsonString<'_>);

    /// A key, a number, `true`, `false` or `null` of this length at `path`.
    fn word(&mut self, _path: &Path, _length: u64) {}
}

/// What is kept of a string.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JsonString<'a> {
    /// Its first bytes.
    pub(crate) beginning: &'a [u8],
    /// How long it is in bytes.
    pub(crate) length: u64,
    /// The number that it is, however long.
    pub(crate) number: Option<u64>,
    /// Whether it has only characters that are visible in ASCII: no space, no line break, no other script.
    pub(crate) is_solid: bool,
}

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    /// A value, or the end of an empty array.
    FirstValue,
    /// A key, or the end of an empty object.
    FirstKey,
    Key,
    Colon,
    /// A comma, or the end of the array or object.
    More,
    /// In a string, which is a key or a value.
    Text {
        is_key: bool,
    },
    /// Behind a backslash in a string.
    Escape {
        is_key: bool,
    },
    /// In the four digits of `\u0041`.
    Unicode {
        is_key: bool,
        left: u8,
        code: u32,
    },
    Number,
    /// In `true`, `false`, `null`, or one of the words that Python writes for numbers, of which these letters are missing.
    Word(&'static [u8]),
    /// This many levels deeper than names are kept. Only the depth is known there, and where strings begin and end.
    Deep {
        levels: u64,
        place: Place,
    },
    /// The document is complete.
    End,
    /// This is not JSON.
    Broken,
}

/// A place where only structure is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    Text,
    /// Behind a backslash in a text.
    Escape,
}

/// A reader of one document.
#[derive(Debug, Clone)]
pub(crate) struct Json {
    expect: Expect,
    path: Path,
    kept: [u8; KEPT],
    /// The length of the whole text, of which the beginning is in `kept`.
    length: u64,
    is_solid: bool,
    number: Number,
    /// What was expected where it turned out not to be JSON.
    broken: Option<Expect>,
}

impl Json {
    pub(crate) fn new() -> Self {
        Self {
            expect: Expect::Value,
            path: Path::new(),
            kept: [0; KEPT],
            length: 0,
            is_solid: true,
            number: Number::new(),
            broken: None,
        }
    }

    /// Whether anything but white space was read.
    pub(crate) fn has_begun(&self) -> bool {
        self.expect != Expect::Value || !self.path.is_empty()
    }

    /// Whether the bytes so far are a whole document.
    pub(crate) fn is_complete(&self) -> bool {
        self.expect == Expect::End
    }

    /// Reads the next bytes. Returns those that are not read, because they are not JSON.
    pub(crate) fn read<'b>(&mut self, bytes: &'b [u8], visit: &mut impl Visit) -> &'b [u8] {
        let mut rest = bytes;
        while let Some(&byte) = rest.first() {
            let expect = self.expect;
            match expect {
                Expect::Broken => return rest,
                Expect::Text { is_key } => rest = self.text(rest, is_key, visit),
                // Everything else is a byte at a time. Strings are most of a document, and have the fast way above.
                _ => {
                    // A number ends with the byte behind it.
                    if expect == Expect::Number && !number::goes_on(byte) {
                        self.end_number(visit);
                    }
                    self.expect = self.next(self.expect, byte, visit);
                    if self.expect != Expect::Broken {
                        rest = &rest[1..];
                    }
                }
            }
            if self.expect == Expect::Broken {
                self.broken = Some(expect);
            }
        }
        rest
    }

    /// No bytes follow. If the document ends within a number, that is shown too.
    pub(crate) fn finish(&mut self, visit: &mut impl Visit) {
        if self.expect == Expect::Number {
            self.end_number(visit);
        }
    }

    /// The path of the value in which the document has just broken, if there is one, and what was read of its number. A
    /// service may read the value all the same: `0xC350`, `'5'`, or one behind a comment.
    pub(crate) fn take_broken(&mut self) -> Option<(&Path, Option<Number>)> {
        match self.broken.take()? {
            Expect::Colon | Expect::Value | Expect::FirstValue | Expect::Word(_) => {
                Some((&self.path, None))
            }
            Expect::Number
            | Expect::Text { is_key: false }
            | Expect::Escape { is_key: false }
            | Expect::Unicode { is_key: false, .. } => {
                Some((&self.path, (self.length > 0).then_some(self.number)))
            }
            _ => None,
        }
    }

    fn next(&mut self, expect: Expect, byte: u8, visit: &mut impl Visit) -> Expect {
        match (expect, byte) {
            // The states inside of a value come before white space: there, a space is a part of it, or an error.
            (Expect::Escape { is_key }, byte) => self.escape(is_key, byte),
            (Expect::Unicode { is_key, left, code }, byte) => {
                self.unicode(is_key, left, code, byte)
            }
            // `-Infinity`, which Python writes and reads. The others of its kind begin in `begin_value`.
            (Expect::Number, b'I') => Expect::Word(b"nfinity"),
            (Expect::Number, byte) => {
                self.length += 1;
                self.number.read(&[byte]);
                Expect::Number
            }
            (Expect::Word(left), byte) => self.word(left, byte, visit),
            (Expect::Deep { levels, place }, byte) => self.deep(levels, place, byte, visit),
            (expect, b' ' | b'\t' | b'\n' | b'\r') => expect,
            (Expect::FirstKey, b'}') | (Expect::FirstValue, b']') => self.close(byte),
            (Expect::More, b'}' | b']') => self.close(byte),
            (Expect::More, b',') => match self.path.is_object() {
                true => Expect::Key,
                false => Expect::Value,
            },
            (Expect::FirstKey | Expect::Key, b'"') => self.begin_text(true),
            (Expect::Colon, b':') => Expect::Value,
            (Expect::Value | Expect::FirstValue, byte) => self.begin_value(byte, visit),
            _ => Expect::Broken,
        }
    }

    fn begin_value(&mut self, byte: u8, visit: &mut impl Visit) -> Expect {
        match byte {
            b'{' if self.path.open(true) => {
                visit.open(&self.path);
                Expect::FirstKey
            }
            b'[' if self.path.open(false) => {
                visit.open(&self.path);
                Expect::FirstValue
            }
            // Services read deeper documents than there is room for here, and what is behind them.
            b'{' | b'[' => {
                self.length = 1;
                Expect::Deep { levels: 1, place: Place::Outside }
            }
            b'"' => self.begin_text(false),
            b't' => Expect::Word(b"rue"),
            b'f' => Expect::Word(b"alse"),
            b'n' => Expect::Word(b"ull"),
            b'N' => Expect::Word(b"aN"),
            b'I' => Expect::Word(b"nfinity"),
            b'-' | b'0'..=b'9' => {
                (self.length, self.number) = (1, Number::new());
                self.number.read(&[byte]);
                Expect::Number
            }
            _ => Expect::Broken,
        }
    }

    fn deep(&mut self, levels: u64, place: Place, byte: u8, visit: &mut impl Visit) -> Expect {
        self.length += 1;
        let (levels, place) = match (place, byte) {
            (Place::Outside, b'{' | b'[') => (levels + 1, place),
            (Place::Outside, b'}' | b']') => (levels - 1, place),
            (Place::Outside, b'"') | (Place::Escape, _) => (levels, Place::Text),
            (Place::Text, b'\\') => (levels, Place::Escape),
            (Place::Text, b'"') => (levels, Place::Outside),
            _ => (levels, place),
        };
        if levels > 0 {
            return Expect::Deep { levels, place };
        }
        visit.word(&self.path, self.length);
        self.after_value()
    }

    fn begin_text(&mut self, is_key: bool) -> Expect {
        (self.length, self.is_solid, self.number) = (0, true, Number::new());
        Expect::Text { is_key }
    }

    fn close(&mut self, byte: u8) -> Expect {
        if self.path.is_object() != (byte == b'}') {
            return Expect::Broken;
        }
        self.path.close();
        self.after_value()
    }

    fn after_value(&self) -> Expect {
        if self.path.is_empty() { Expect::End } else { Expect::More }
    }

    fn word(&self, left: &'static [u8], byte: u8, visit: &mut impl Visit) -> Expect {
        match left {
            [last] if *last == byte => {
                visit.number(&self.path, None);
                visit.word(&self.path, WORD);
                self.after_value()
            }
            [first, rest @ ..] if *first == byte => Expect::Word(rest),
            _ => Expect::Broken,
        }
    }

    /// Reads a string up to its end, an escape, or the end of the bytes. Returns the bytes behind that.
    fn text<'b>(&mut self, bytes: &'b [u8], is_key: bool, visit: &mut impl Visit) -> &'b [u8] {
        // A piece may end anywhere, also within a character or an escape. Nothing here looks at characters, and an
        // escape is a state, so the pieces need no joining.
        let end = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
        let (text, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        self.keep_all(text);
        let Some((byte, rest)) = rest.split_first() else { return rest };
        self.expect = match byte {
            b'\\' => Expect::Escape { is_key },
            b'"' if is_key => {
                self.path.name(Name::of(self.kept()));
                visit.word(&self.path, self.length);
                Expect::Colon
            }
            b'"' => {
                let (beginning, length, is_solid) = (self.kept(), self.length, self.is_solid);
                let number = self.number.value();
                visit.string(&self.path, JsonString { beginning, length, number, is_solid });
                self.after_value()
            }
            _ => Expect::Broken,
        };
        rest
    }

    fn escape(&mut self, is_key: bool, byte: u8) -> Expect {
        let meant = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return Expect::Unicode { is_key, left: 4, code: 0 },
            _ => return Expect::Broken,
        };
        self.keep(meant);
        Expect::Text { is_key }
    }

    /// A key may be written by escapes, and means the same then: `"max\u005ftokens"`.
    fn unicode(&mut self, is_key: bool, left: u8, code: u32, byte: u8) -> Expect {
        let Some(digit) = char::from(byte).to_digit(16) else { return Expect::Broken };
        let code = 16 * code + digit;
        if left > 1 {
            return Expect::Unicode { is_key, left: left - 1, code };
        }
        match u8::try_from(code) {
            Ok(ascii) if ascii.is_ascii() => self.keep(ascii),
            // Two of them may be letters of a name in another spelling; see `Name::of`.
            _ if is_key && code == 0x212a => self.keep(b'K'),
            _ if is_key && code == 0x17f => self.keep(b'S'),
            // Most take three bytes in UTF-8. A byte that UTF-8 never has, so that no name can come of it.
            _ => self.keep_all(&[0xff; 3]),
        }
        Expect::Text { is_key }
    }

    fn end_number(&mut self, visit: &mut impl Visit) {
        visit.number(&self.path, self.number.value());
        visit.word(&self.path, self.length);
        self.expect = self.after_value();
    }

    fn kept(&self) -> &[u8] {
        &self.kept[..self.kept_length()]
    }

    fn kept_length(&self) -> usize {
        usize::try_from(self.length).unwrap_or(KEPT).min(KEPT)
    }

    fn keep(&mut self, byte: u8) {
        self.keep_all(&[byte]);
    }

    fn keep_all(&mut self, text: &[u8]) {
        let from = self.kept_length();
        let room = text.len().min(KEPT - from);
        self.kept[from..from + room].copy_from_slice(&text[..room]);
        // What does not fit is counted and not kept. No name is that long, so a key that was cut off is none of ours.
        self.length += text.len() as u64;
        self.is_solid &= text.iter().all(u8::is_ascii_graphic);
        self.number.read(text);
    }
}

#[cfg(test)]
mod tests;
