//! The text of a log, in pieces of whole lines.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use indicatif::ProgressBar;
use memchr::{memchr, memrchr};
use zstd::stream::read::Decoder;

/// How much is read at once, and the longest line. A line of an access log has some hundred bytes, and servers accept
/// targets and fields of a few kilobytes.
pub(super) const LONGEST: usize = 1 << 20;

/// A file, or the standard input.
pub(super) struct Source {
    reader: Box<dyn Read>,
    /// The beginning of a line whose end is still to be read.
    rest: Vec<u8>,
    /// Whether the rest of a line that is too long is still to come.
    is_skipping: bool,
}

/// Lines that were read together, and how many were too long.
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) too_long: u64,
}

impl Source {
    /// Opens a file, or the standard input where the path is `-`. What is compressed is recognised by its first bytes.
    pub(super) fn open(path: &Path, bar: &ProgressBar) -> io::Result<Self> {
        let mut raw: Box<dyn Read> = match path.as_os_str() == "-" {
            true => Box::new(io::stdin()),
            false => Box::new(File::open(path)?),
        };
        let mut magic = Vec::with_capacity(4);
        raw.by_ref().take(4).read_to_end(&mut magic)?;
        let kind = magic.clone();
        let whole = BufReader::with_capacity(1 << 16, bar.wrap_read(Cursor::new(magic).chain(raw)));
        let reader: Box<dyn Read> = match *kind {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(whole)),
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
                // Reads frames one behind the other, as parallel compressors write them, and skips those without text.
                Box::new(Decoder::with_buffer(whole)?)
            }
            _ => Box::new(whole),
        };
        Ok(Self::of(reader))
    }

    pub(super) fn of(reader: Box<dyn Read>) -> Self {
        Self { reader, rest: Vec::new(), is_skipping: false }
    }

    /// The next lines, unless the log has ended.
    pub(super) fn piece(&mut self) -> io::Result<Option<Piece>> {
        let mut too_long = 0;
        loop {
            let mut bytes = std::mem::take(&mut self.rest);
            let room = LONGEST - bytes.len();
            bytes.reserve_exact(room);
            let read = self.reader.by_ref().take(room as u64).read_to_end(&mut bytes)?;
            let is_end = read < room;
            if self.is_skipping {
                match memchr(b'\n', &bytes) {
                    None if is_end => bytes.clear(),
                    None => continue,
                    Some(at) => drop(bytes.drain(..=at)),
                }
                self.is_skipping = false;
            }
            if is_end {
                let is_over = bytes.is_empty() && too_long == 0;
                return Ok((!is_over).then(|| Piece { text: text(bytes), too_long }));
            }
            match memrchr(b'\n', &bytes) {
                Some(at) => {
                    self.rest = bytes.split_off(at + 1);
                    return Ok(Some(Piece { text: text(bytes), too_long }));
                }
                None => {
                    // What was skipped before may have left less than a piece.
                    if bytes.len() < LONGEST {
                        self.rest = bytes;
                        continue;
                    }
                    too_long += 1;
                    self.is_skipping = true;
                }
            }
        }
    }
}

/// Bytes that are not UTF-8 are replaced: rules read paths as text.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
