use std::fmt;

use crate::limit::{Limit, LimitInternals as _, NamePiece};

/// As long as most header fields are.
const ON_STACK: usize = 120;

/// Text being written. It accepts anything, and writes numbers and quotes without the formatting machinery, which
/// takes longer than a decision.
pub(crate) trait Text {
    /// Adds text.
    fn text(&mut self, text: &str);

    /// Adds a number.
    fn number(&mut self, number: u64) {
        self.text(itoa::Buffer::new().format(number));
    }

    /// Adds text in which `"` and `\` are escaped: right in a structured field and in JSON alike.
    fn escaped(&mut self, text: &str) {
        if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
            return self.text(text);
        }
        for char in text.chars() {
            match char {
                '"' => self.text("\\\""),
                '\\' => self.text("\\\\"),
                char if char.is_control() => self.text(&format!("\\u{:04x}", u32::from(char))),
                char => self.text(char.encode_utf8(&mut [0; 4])),
            }
        }
    }

    /// Adds text in double quotes.
    fn quoted(&mut self, text: &str) {
        self.text("\"");
        self.escaped(text);
        self.text("\"");
    }

    /// Adds a limit's name in double quotes.
    fn quoted_name(&mut self, limit: &Limit) {
        self.text("\"");
        limit.each_name_piece(&mut |piece| match piece {
            NamePiece::Text(text) => self.escaped(text),
            NamePiece::Number(number) => self.number(number),
        });
        self.text("\"");
    }
}

impl Text for String {
    #[inline]
    fn text(&mut self, text: &str) {
        self.push_str(text);
    }
}

/// A line of text that is on the stack while it is short.
pub(crate) struct Line<const N: usize = ON_STACK> {
    short: [u8; N],
    len: usize,
    /// The whole text, once it is longer.
    long: String,
}

impl Line {
    #[inline]
    pub(crate) const fn new() -> Self {
        Self::with_room()
    }
}

impl<const N: usize> Line<N> {
    /// A line of which `N` bytes are kept on the stack.
    #[inline]
    pub(crate) const fn with_room() -> Self {
        Self { short: [0; N], len: 0, long: String::new() }
    }

    pub(crate) fn as_str(&self) -> &str {
        // Whole strings were copied there, one after another.
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// The same, for a header field: those are bytes.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        if self.long.is_empty() { &self.short[..self.len] } else { self.long.as_bytes() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[cold]
    fn lengthen(&mut self, text: &str) {
        if self.long.is_empty() {
            self.long = self.as_str().to_owned();
        }
        self.long.push_str(text);
        self.len += text.len();
    }
}

impl<const N: usize> Text for Line<N> {
    #[inline]
    fn text(&mut self, text: &str) {
        match self.short.get_mut(self.len..self.len + text.len()) {
            Some(room) if self.long.is_empty() => {
                room.copy_from_slice(text.as_bytes());
                self.len += text.len();
            }
            _ => self.lengthen(text),
        }
    }
}

impl<const N: usize> fmt::Write for Line<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    #[test]
    fn a_line_reads_as_it_was_written_however_long() {
        for pieces in 0..if cfg!(miri) { 20 } else { 100 } {
            let mut line = Line::new();
            for number in 0..pieces {
                write!(line, "{number} zwölf, ").expect("a line takes everything");
            }
            let expected: String = (0..pieces).map(|number| format!("{number} zwölf, ")).collect();
            assert_eq!(line.as_str(), expected);
            assert_eq!(line.is_empty(), pieces == 0);
        }
    }

    #[test]
    fn numbers_read_as_formatting_writes_them() {
        for number in [0, 1, 9, 10, 99, 100, 12_345_678_901, u64::MAX] {
            let mut line = Line::new();
            line.number(number);
            assert_eq!(line.as_str(), number.to_string());
        }
    }

    #[test]
    fn names_read_as_the_limit_shows_them() {
        let named = Limit::per_minute(1).named("a \"b\" \\");
        let limits = [Limit::per_minute(7), Limit::concurrent(3), Limit::per_hour(1)];
        let mut line = Line::new();
        line.quoted_name(&named);
        assert_eq!(line.as_str(), r#""a \"b\" \\""#);
        for limit in limits.into_iter().chain(["9 per 10 seconds".parse().expect("a limit")]) {
            let mut line = Line::new();
            line.quoted_name(&limit);
            assert_eq!(line.as_str(), format!("\"{}\"", limit.name()));
        }
    }
}
