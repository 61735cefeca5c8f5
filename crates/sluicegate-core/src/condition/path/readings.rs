//! A path is read once for all conditions of a request. The view lends out a [`PathReadings`], in which the
//! first condition leaves the segments of every reading that differs. Each pattern then compares segments.
//! The work is the length of the path plus the length of the patterns, and not their product. Short plain
//! paths are compared as they are, without an allocation.

use std::cell::OnceCell;

use super::PathMatches;
use super::segments::{READINGS, Segments};
use crate::key::{Missing, View};

/// The longest path that conditions compare with their patterns, in bytes: a request with a longer one is
/// refused with 400 by the first condition that asks for its path.
///
/// The bound is what a server has to understand at least (RFC 9112, section 3), and what proxies commonly
/// pass on; paths that people use are a tenth of it. Reading a path of this length in every way looks at
/// each byte less than twenty times, once for a request.
pub const MAX_PATH: usize = 8_000;

/// Why a condition does not read the path of `view`, if it does not.
pub(in crate::condition) fn check_length<V: View>(view: &V) -> Result<(), Missing> {
    match view.path().len() <= MAX_PATH {
        true => Ok(()),
        false => Err(Missing::ambiguous(format!("a path of at most {MAX_PATH} bytes"))),
    }
}

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
    pub(super) written: OnceCell<Readings>,
    /// Of the path that is left to route.
    pub(super) routed: OnceCell<Readings>,
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
pub(super) enum Readings {
    /// In one way, which is plain to see: nothing is encoded, no slash is repeated, no segment begins with
    /// a dot.
    Plain,
    /// In these ways, which differ.
    Several(Box<[Segments]>),
    /// In ways that nobody works out: something has rewritten it to one that is longer than the client's.
    TooLong,
}

impl Readings {
    pub(super) fn of(path: &[u8]) -> Self {
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

    /// Whether the path matches `pattern` in one way to read it.
    pub(super) fn any(&self, path: &[u8], pattern: &PathMatches) -> bool {
        match self {
            Self::Plain => pattern.matches_plain(path),
            Self::Several(readings) => readings.iter().any(|reading| pattern.matches(reading)),
            Self::TooLong => true,
        }
    }

    /// Whether it does in every way.
    pub(super) fn all(&self, path: &[u8], pattern: &PathMatches) -> bool {
        match self {
            Self::Plain => pattern.matches_plain(path),
            Self::Several(readings) => readings.iter().all(|reading| pattern.matches(reading)),
            Self::TooLong => false,
        }
    }
}

/// Counts bytes and segments that are looked at, for the test that bounds them.
#[inline]
#[cfg_attr(not(test), expect(unused_variables, reason = "only tests count"))]
pub(super) fn step(steps: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + steps);
}

#[cfg(test)]
thread_local! {
    pub(super) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
