use std::fmt;

/// As long as most header fields are.
const ON_STACK: usize = 120;

/// A line of text being written, on the stack as long as it is short.
pub(crate) struct Line {
    short: [u8; ON_STACK],
    len: usize,
    /// All of it, once it is longer.
    long: String,
}

impl Line {
    pub(crate) const fn new() -> Self {
        Self { short: [0; ON_STACK], len: 0, long: String::new() }
    }

    pub(crate) fn as_str(&self) -> &str {
        if self.long.is_empty() {
            // Whole strings were copied there, one after another.
            return std::str::from_utf8(&self.short[..self.len]).unwrap_or_default();
        }
        &self.long
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.long.is_empty() {
            if let Some(room) = self.short.get_mut(self.len..self.len + text.len()) {
                room.copy_from_slice(text.as_bytes());
                self.len += text.len();
                return Ok(());
            }
            self.long = self.as_str().to_owned();
        }
        self.long.push_str(text);
        self.len += text.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    #[test]
    fn a_line_reads_as_it_was_written_however_long() {
        for pieces in 0..100 {
            let mut line = Line::new();
            for number in 0..pieces {
                write!(line, "{number} zwölf, ").expect("a line takes everything");
            }
            let expected: String = (0..pieces).map(|number| format!("{number} zwölf, ")).collect();
            assert_eq!(line.as_str(), expected);
            assert_eq!(line.is_empty(), pieces == 0);
        }
    }
}
