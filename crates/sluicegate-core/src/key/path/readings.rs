//! A path is parsed once for all conditions of a request. The first condition stores in a [`PathReadings`] the segments
//! of every distinct reading. Each pattern then compares segments. The work is the length of the path plus the length of
//! the patterns, not their product. Short plain paths are compared as they are, without an allocation.

use std::cell::OnceCell;

use super::segments::{READINGS, Segments};
use super::steps::{parse, step};

/// The longest path, in bytes, that conditions compare with their patterns. A request with a longer path is refused
/// with 400 by the first condition that needs it.
///
/// A server should support at least this length (RFC 9112, section 3), and proxies commonly pass it on. Real paths
/// have a tenth of it. Parsing a path of this length in every way looks at each byte less than twenty times, once for
/// a request.
pub const MAX_PATH: usize = 8_000;

/// A plain path up to this length is compared as it is. Each pattern with a `{name}` scans it again, so a longer path
/// is better parsed once.
const MAX_UNREAD: usize = 256;

/// The readings of the path of one request. The first condition that needs them works them out, and all others reuse
/// them.
#[derive(Debug, Default)]
pub(crate) struct PathReadings {
    /// Readings of the path that the client wrote.
    pub(crate) written: OnceCell<PathReading>,
    /// Readings of the path that is left to route.
    pub(crate) routed: OnceCell<PathReading>,
}

/// How a path can be read.
#[derive(Debug)]
pub(crate) enum PathReading {
    /// In one way only: nothing is encoded, no slash is repeated, no segment begins with a dot.
    Plain,
    /// In these distinct ways.
    Several(Box<[Segments]>),
    /// Not parsed: something has rewritten the path to one that is longer than the client's.
    TooLong,
}

impl PathReading {
    pub(crate) fn of(path: &[u8]) -> Self {
        if path.len() > MAX_PATH {
            return Self::TooLong;
        }
        parse();
        step(path.len());
        let is_odd = |two: &[u8]| two[0] == b'%' || two == b"/." || two == b"//";
        let is_plain = !path.windows(2).any(is_odd) && path.last() != Some(&b'%');
        if is_plain && path.len() <= MAX_UNREAD {
            return Self::Plain;
        }
        let mut readings = Vec::with_capacity(1);
        for reading in READINGS.into_iter().take(if is_plain { 1 } else { READINGS.len() }) {
            let segments = Segments::read(path, reading);
            if !readings.contains(&segments) {
                readings.push(segments);
            }
        }
        Self::Several(readings.into())
    }
}
