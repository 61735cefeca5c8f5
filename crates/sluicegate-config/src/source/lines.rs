//! Lines and columns of a text.

use std::cell::Cell;

use super::error::SourceLocation;

/// Turns byte offsets into lines and columns.
pub(crate) struct Lines<'a> {
    text: &'a [u8],
    /// The offset of each line.
    starts: Vec<usize>,
    /// The line of the last location. Most values are on the same line as the one before them, or on the next.
    last: Cell<usize>,
    /// The number of characters before each step, so that long lines stay cheap.
    before: Vec<usize>,
}

/// Bytes between two character counts.
const STEP: usize = 256;

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(breaks).collect();
        let last = Cell::new(1);
        let text = text.as_bytes();
        let sums = text.chunks(STEP).scan(0, |sum, chunk| {
            *sum += characters(chunk);
            Some(*sum)
        });
        Self { text, starts, last, before: std::iter::once(0).chain(sums).collect() }
    }

    pub(crate) fn location(&self, offset: usize) -> SourceLocation {
        let offset = offset.min(self.text.len());
        let line = self.line(offset);
        let start = self.starts[line - 1];
        let column = match offset - start {
            0..STEP => characters(&self.text[start..offset]),
            _ => self.characters_before(offset) - self.characters_before(start),
        };
        SourceLocation { line, column: column + 1 }
    }

    fn line(&self, offset: usize) -> usize {
        let last = self.last.get();
        let is_within = |line: usize| {
            let mut bounds = self.starts[line - 1..].iter();
            bounds.next().is_some_and(|&start| start <= offset)
                && bounds.next().is_none_or(|&end| offset < end)
        };
        // Values are found in the order of the text, so the line is one of the next few. A search is for the rest.
        let line = (last..self.starts.len().min(last + 4)).find(|&line| is_within(line));
        let line = line.unwrap_or_else(|| self.starts.partition_point(|&start| start <= offset));
        self.last.set(line);
        line
    }

    /// The location of a byte, given by line and byte column, both counted from 1.
    #[cfg(feature = "json")]
    pub(crate) fn location_of_byte(&self, line: usize, column: usize) -> SourceLocation {
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        self.location(start + column.saturating_sub(1))
    }

    fn characters_before(&self, offset: usize) -> usize {
        let step = offset / STEP;
        self.before[step] + characters(&self.text[step * STEP..offset])
    }
}

/// The number of characters that start in `bytes`.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters() {
        let lines = Lines::new("a = 1\nü = 2\n");
        let location = |line, column| SourceLocation { line, column };
        assert_eq!(lines.location(0), location(1, 1));
        assert_eq!(lines.location(4), location(1, 5));
        assert_eq!(lines.location(6), location(2, 1));
        assert_eq!(lines.location(11), location(2, 5));
        assert_eq!(lines.location(100), location(3, 1));
    }

    #[test]
    fn a_long_line_is_counted_to_its_end() {
        let text = format!("{}\n{}x", "ü".repeat(1_000), "ä€".repeat(1_000));
        let lines = Lines::new(&text);
        for (at, char) in text.char_indices() {
            let before = text[..at].rsplit('\n').next().expect("a line");
            let column = before.chars().count() + 1;
            assert_eq!(lines.location(at).column, column, "{at} {char}");
        }
        assert_eq!(lines.location(text.len()), SourceLocation { line: 2, column: 2_002 });
    }
}
