//! Finds where values of the protocol end, without reading their content.

/// Why a value is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Oversize {
    Bytes,
    Parts,
}

/// Counts the values in a stream of bytes, and measures each. Unknown types count as lines: the client that reads the same
/// bytes reports them.
#[derive(Debug)]
pub(super) struct Frames {
    most: Bounds,
    /// Values that have ended, without push messages.
    ended: u64,
    /// Push messages since then.
    pushed: u64,
    /// The current value: its bytes and parts so far, and the parts that are missing.
    bytes: u64,
    parts: u64,
    missing: u64,
    is_push: bool,
    position: Position,
}

/// Bounds of one value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) bytes: u64,
    pub(super) parts: u64,
}

#[derive(Debug, Clone, Copy)]
enum Position {
    Beginning,
    /// In a line, whose digits are read as a number.
    Line {
        kind: u8,
        number: u64,
        is_negative: bool,
    },
    /// In a string, with this many bytes left.
    String(u64),
}

impl Frames {
    pub(super) const fn new(most: Bounds) -> Self {
        Self {
            most,
            ended: 0,
            pushed: 0,
            bytes: 0,
            parts: 0,
            missing: 0,
            is_push: false,
            position: Position::Beginning,
        }
    }

    /// How many values have ended.
    pub(super) const fn ended(&self) -> u64 {
        self.ended
    }

    /// How many push messages have come since the last value ended.
    pub(super) const fn pushed(&self) -> u64 {
        self.pushed
    }

    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Result<(), Oversize> {
        while let Some(&byte) = bytes.first() {
            let taken = match self.position {
                Position::Beginning => {
                    self.begin(byte);
                    1
                }
                Position::Line { kind, number, is_negative } => {
                    let end = bytes.iter().position(|byte| *byte == b'\n');
                    let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
                    let (number, is_negative) = digits(line, (number, is_negative));
                    self.bytes += line.len() as u64;
                    bytes = rest;
                    self.position = Position::Line { kind, number, is_negative };
                    if !rest.is_empty() {
                        self.bytes += 1;
                        bytes = &rest[1..];
                        self.end_line(kind, (number, is_negative))?;
                    }
                    0
                }
                Position::String(left) => {
                    let taken = left.min(bytes.len() as u64);
                    self.position = Position::String(left - taken);
                    if taken == left {
                        self.end();
                    }
                    taken
                }
            };
            bytes = &bytes[taken as usize..];
            self.bytes += taken;
            if self.bytes > self.most.bytes {
                return Err(Oversize::Bytes);
            }
            if self.missing == 0 {
                self.bytes = 0;
            }
        }
        Ok(())
    }

    fn begin(&mut self, kind: u8) {
        if self.missing == 0 {
            (self.missing, self.parts) = (1, 0);
            self.is_push = kind == b'>';
        }
        self.position = Position::Line { kind, number: 0, is_negative: false };
    }

    fn end_line(&mut self, kind: u8, (number, is_negative): (u64, bool)) -> Result<(), Oversize> {
        let number = if is_negative { 0 } else { number };
        let within = match kind {
            b'$' | b'=' | b'!' if !is_negative => {
                if number > self.most.bytes {
                    return Err(Oversize::Bytes);
                }
                self.position = Position::String(number + 2);
                return Ok(());
            }
            b'*' | b'~' | b'>' => number,
            b'%' => number.saturating_mul(2),
            // An attribute is followed by the value that it belongs to.
            b'|' => number.saturating_mul(2).saturating_add(1),
            _ => 0,
        };
        self.parts = self.parts.saturating_add(within);
        if self.parts > self.most.parts {
            return Err(Oversize::Parts);
        }
        self.missing += within;
        self.end();
        Ok(())
    }

    fn end(&mut self) {
        self.position = Position::Beginning;
        self.missing -= 1;
        if self.missing == 0 {
            (self.ended, self.pushed) = match self.is_push {
                true => (self.ended, self.pushed + 1),
                false => (self.ended + 1, 0),
            };
        }
    }
}

/// Continues a number, and whether it is negative, with more bytes of its line.
fn digits(line: &[u8], (number, is_negative): (u64, bool)) -> (u64, bool) {
    let digit = |byte: &u8| u64::from(byte.wrapping_sub(b'0'));
    let more = line.iter().map(digit).filter(|digit| *digit <= 9);
    let number = more.fold(number, |number, digit| number.saturating_mul(10).saturating_add(digit));
    (number, is_negative || line.contains(&b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Bounds = Bounds { bytes: 100, parts: 10 };

    /// In pieces of every length.
    fn ended(bytes: &[u8]) -> Result<u64, Oversize> {
        let in_pieces = |length| {
            let mut frames = Frames::new(MOST);
            let read = bytes.chunks(length).try_for_each(|piece| frames.read(piece));
            read.map(|()| frames.ended())
        };
        let whole = in_pieces(bytes.len().max(1));
        for length in 1..bytes.len() {
            assert_eq!(in_pieces(length), whole, "in pieces of {length}");
        }
        whole
    }

    #[test]
    fn a_value_ends_where_its_last_part_does() {
        for (bytes, expected) in [
            (&b""[..], 0),
            (b"+OK\r\n", 1),
            (b":1\r\n-ERR no\r\n_\r\n#t\r\n,1.5\r\n(123\r\n", 6),
            (b"$5\r\nhello\r\n", 1),
            (b"$5\r\nhello", 0),
            (b"$-1\r\n*-1\r\n*0\r\n$0\r\n\r\n", 4),
            (b"$7\r\n+1\r\n:2\r\r\n", 1),
            (b"*2\r\n:1\r\n", 0),
            (b"*2\r\n:1\r\n*1\r\n$1\r\na\r\n", 1),
            (b"%1\r\n+proto\r\n:3\r\n", 1),
            (b"|1\r\n+ttl\r\n:3\r\n:1\r\n", 1),
            (b"~2\r\n:1\r\n:2\r\n=7\r\ntxt:abc\r\n!3\r\nERR\r\n", 3),
            (b">2\r\n+invalidate\r\n*1\r\n+key\r\n+OK\r\n", 1),
            (b"garbage\r\n", 1),
        ] {
            assert_eq!(ended(bytes), Ok(expected), "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn a_value_that_is_too_large_is_refused_before_it_has_come() {
        assert_eq!(ended(b"$101\r\n"), Err(Oversize::Bytes));
        assert_eq!(ended(b"$99999999999999999999999999\r\n"), Err(Oversize::Bytes));
        assert_eq!(ended(b"*11\r\n"), Err(Oversize::Parts));
        assert_eq!(ended(b"*18446744073709551615\r\n"), Err(Oversize::Parts));
        assert_eq!(ended(b"%6\r\n"), Err(Oversize::Parts));
        assert_eq!(
            ended(b"*2\r\n*5\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n*5\r\n"),
            Err(Oversize::Parts)
        );
        assert_eq!(ended(&[b'+'; 101]), Err(Oversize::Bytes), "a line without an end");
    }

    #[test]
    fn push_messages_are_counted_until_a_value_ends() {
        let mut frames = Frames::new(MOST);
        frames.read(&b">2\r\n$1\r\na\r\n:1\r\n".repeat(7)).expect("small ones");
        assert_eq!((frames.ended(), frames.pushed()), (0, 7));
        frames.read(b"+OK\r\n>1\r\n:1\r\n").expect("small ones");
        assert_eq!((frames.ended(), frames.pushed()), (1, 1));
    }

    #[test]
    fn each_value_is_measured_by_itself() {
        let value = b"*3\r\n$30\r\n123456789012345678901234567890\r\n:1\r\n:2\r\n";
        assert_eq!(ended(&value.repeat(20)), Ok(20));
    }
}
