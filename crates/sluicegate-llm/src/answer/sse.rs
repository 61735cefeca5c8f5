//! Server-sent events, as the WHATWG HTML standard defines them (section 9.2), read as their bytes arrive.

/// What is shown of a stream of events.
pub(super) trait Events {
    /// The next bytes of the present event's data.
    fn data(&mut self, bytes: &[u8]);

    /// The present event is complete.
    fn end(&mut self);
}

/// A reader of lines. It shows the data of events, and skips all other lines.
#[derive(Debug, Clone, Default)]
pub(super) struct Sse {
    line: Line,
    /// Whether the last byte was a carriage return: a line feed behind it ends the same line.
    after_return: bool,
    /// Whether the stream has begun: a byte order mark is only skipped at its beginning.
    has_begun: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Has begun with this many bytes of [`DATA`].
    Name(usize),
    /// Has begun with this many bytes of [`BYTE_ORDER_MARK`].
    Mark(usize),
    Data,
    Other,
}

impl Default for Line {
    fn default() -> Self {
        Self::Name(0)
    }
}

const DATA: &[u8] = b"data:";
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Sse {
    /// Reads the next bytes.
    pub(super) fn read(&mut self, bytes: &[u8], events: &mut impl Events) {
        let mut rest = bytes;
        while let Some(&byte) = rest.first() {
            // `\r\n` is one end of a line, even where a piece of the body ends between the two. Taken for two, it would
            // end every event after its first line.
            if std::mem::take(&mut self.after_return) && byte == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
            self.read_line(line, events);
            rest = after;
            if let Some((byte, after)) = rest.split_first() {
                self.after_return = *byte == b'\r';
                self.end_line(events);
                rest = after;
            }
        }
    }

    /// Reads bytes of one line.
    fn read_line(&mut self, bytes: &[u8], events: &mut impl Events) {
        for (at, byte) in bytes.iter().enumerate() {
            self.line = match self.line {
                Line::Name(0) if !self.has_begun && *byte == BYTE_ORDER_MARK[0] => Line::Mark(1),
                Line::Mark(read) if BYTE_ORDER_MARK[read] == *byte => match read {
                    2 => Line::Name(0),
                    _ => Line::Mark(read + 1),
                },
                Line::Name(read) if DATA[read] == *byte => match read + 1 < DATA.len() {
                    true => Line::Name(read + 1),
                    false => Line::Data,
                },
                Line::Name(_) | Line::Mark(_) => Line::Other,
                // The space behind the colon is white space for JSON too.
                Line::Data => {
                    events.data(&bytes[at..]);
                    break;
                }
                Line::Other => break,
            };
            self.has_begun = true;
        }
    }

    fn end_line(&mut self, events: &mut impl Events) {
        match self.line {
            // An empty line ends the event.
            Line::Name(0) => events.end(),
            // Lines of data are joined by line feeds.
            Line::Data => events.data(b"\n"),
            _ => {}
        }
        self.line = Line::default();
        self.has_begun = true;
    }
}
