//! Lines and columns of a text.

use super::location::SourceLocation;

/// Turns byte offsets into lines and columns.
pub(crate) struct Lines<'a> {
    text: &'a [u8],
    /// The offset of each line.
    starts: Vec<usize>,
    /// The number of characters before each step, so that long lines stay cheap.
    before: Vec<usize>,
}

/// Bytes between two character counts.
const STEP: usize = 256;

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(breaks).collect();
        let text = text.as_bytes();
        let sums = text.chunks(STEP).scan(0, |sum, chunk| {
            *sum += characters(chunk);
            Some(*sum)
        });
        Self { text, starts, before: std::iter::once(0).chain(sums).collect() }
    }

    pub(crate) fn location(&self, offset: usize) -> SourceLocation {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|&start| start <= offset);
        let column = self.characters_before(offset) - self.characters_before(self.starts[line - 1]);
        SourceLocation { line, column: column + 1 }
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
