//! A path is read once for all conditions of a request. The view lends out a [`PathReadings`], in which the
//! first condition leaves the segments of every reading that differs. Each pattern then compares segments.
//! The work is the length of the path plus the length of the patterns, and not their product. Short plain
//! paths are compared as they are, without an allocation.

use std::cell::OnceCell;

use super::segments::{READINGS, Segments};
use super::steps::step;

/// The longest path that conditions compare with their patterns, in bytes: a request with a longer one is
/// refused with 400 by the first condition that asks for its path.
///
/// The bound is what a server has to understand at least (RFC 9112, section 3), and what proxies commonly
/// pass on; paths that people use are a tenth of it. Reading a path of this length in every way looks at
/// each byte less than twenty times, once for a request.
pub const MAX_PATH: usize = 8_000;

/// A plain path up to this length is compared as it is. It is looked through again for each pattern with
/// a `{name}` in it, so that a longer one is better taken apart once.
const MAX_UNREAD: usize = 256;

/// The ways to read the path of one request, worked out when the first condition asks, and kept for all
/// others.
///
/// A [`View`](crate::key::View) has one and lends it out. Without it each condition works them out for
/// itself.
#[derive(Debug, Default)]
pub struct PathReadings {
    /// Of the path that the client wrote.
    pub(crate) written: OnceCell<Readings>,
    /// Of the path that is left to route.
    pub(crate) routed: OnceCell<Readings>,
}

impl PathReadings {
    /// Nothing worked out yet.
    #[inline]
    pub const fn new() -> Self {
        Self { written: OnceCell::new(), routed: OnceCell::new() }
    }
}

/// How a path reads.
#[derive(Debug)]
pub(crate) enum Readings {
    /// In one way, which is plain to see: nothing is encoded, no slash is repeated, no segment begins with
    /// a dot.
    Plain,
    /// In these ways, which differ.
    Several(Box<[Segments]>),
    /// In ways that nobody works out: something has rewritten it to one that is longer than the client's.
    TooLong,
}

impl Readings {
    pub(crate) fn of(path: &[u8]) -> Self {
        if path.len() > MAX_PATH {
            return Self::TooLong;
        }
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
