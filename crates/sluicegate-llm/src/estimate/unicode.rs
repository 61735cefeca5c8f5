/// Turns UTF-16 and UTF-32 into UTF-8, and skips a byte order mark.
///
/// The encoding is found as Python's `json` module finds it: by a byte order mark, or by the zeros among the first four
/// bytes. What the header says makes no difference to it, or to most other parsers.
#[derive(Debug, Clone)]
pub(super) struct Unicode {
    /// The bytes of a unit; `None` until four bytes have come.
    width: Option<usize>,
    is_big_endian: bool,
    /// Bytes that are not read yet.
    pending: [u8; 4],
    known: usize,
}

/// How many bytes are shown at once.
const PIECE: usize = 512;

impl Unicode {
    pub(super) const fn new() -> Self {
        Self { width: None, is_big_endian: false, pending: [0; 4], known: 0 }
    }

    /// Reads the next bytes, and shows them as UTF-8.
    pub(super) fn read(&mut self, mut bytes: &[u8], show: &mut impl FnMut(&[u8])) {
        if self.width.is_none() {
            let taken = bytes.len().min(4 - self.known);
            let (first, rest) = bytes.split_at(taken);
            self.pending[self.known..self.known + taken].copy_from_slice(first);
            self.known += taken;
            bytes = rest;
            if self.known < 4 {
                return;
            }
            self.begin(show);
        }
        match self.width {
            Some(1) => show(bytes),
            Some(width) => self.read_units(width, bytes, show),
            None => {}
        }
    }

    /// There are no more bytes.
    pub(super) fn finish(&mut self, show: &mut impl FnMut(&[u8])) {
        if self.width.is_none() {
            show(&self.pending[..self.known]);
        }
    }

    fn begin(&mut self, show: &mut impl FnMut(&[u8])) {
        let (width, is_big_endian, mark) = match self.pending {
            [0, 0, 0xfe, 0xff] => (4, true, 4),
            [0xff, 0xfe, 0, 0] => (4, false, 4),
            [0xfe, 0xff, ..] => (2, true, 2),
            [0xff, 0xfe, ..] => (2, false, 2),
            [0xef, 0xbb, 0xbf, _] => (1, false, 3),
            [0, 0, ..] => (4, true, 0),
            [0, ..] => (2, true, 0),
            [_, 0, 0, 0] => (4, false, 0),
            [_, 0, ..] => (2, false, 0),
            _ => (1, false, 0),
        };
        (self.width, self.is_big_endian, self.known) = (Some(width), is_big_endian, 0);
        let first = self.pending;
        match width {
            1 => show(&first[mark..]),
            _ => self.read_units(width, &first[mark..], show),
        }
    }

    fn read_units(&mut self, width: usize, bytes: &[u8], show: &mut impl FnMut(&[u8])) {
        let (mut piece, mut length) = ([0; PIECE], 0);
        for byte in bytes {
            self.pending[self.known] = *byte;
            self.known += 1;
            if self.known < width {
                continue;
            }
            self.known = 0;
            let digits = self.pending[..width].iter().map(|byte| u32::from(*byte));
            let unit = match self.is_big_endian {
                true => digits.fold(0, |unit, byte| unit << 8 | byte),
                false => digits.rev().fold(0, |unit, byte| unit << 8 | byte),
            };
            length += match char::from_u32(unit) {
                Some(letter) => letter.encode_utf8(&mut piece[length..]).len(),
                // Half of a letter that takes four bytes in UTF-8.
                None => {
                    piece[length..length + 2].fill(0xff);
                    2
                }
            };
            if length > PIECE - 4 {
                show(&piece[..length]);
                length = 0;
            }
        }
        show(&piece[..length]);
    }
}
