use std::cell::OnceCell;

use super::PathMatches;
use super::segments::{READINGS, Segments};

/// The longest path that conditions compare with their patterns, in bytes.
///
/// A longer one matches each pattern, unread: it may be any of them. The bound is what a server has to
/// understand at least (RFC 9112, section 3); paths that people use are a tenth of it. Reading a path of
/// this length in every way takes less than a tenth of a millisecond, once for a request.
pub const MAX_PATH: usize = 8_000;

/// A plain path up to this length is compared as it is. It is looked through again for each pattern with
/// a `{name}` in it, so that a longer one is better taken apart once.
const MAX_UNREAD: usize = 256;

/// The ways to read the path of one request, worked out when the first condition asks, and kept for all
/// others.
///
/// A [`View`](crate::View) has one and lends it out. Without it each condition works them out for
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
    /// In more ways than anybody wants to work out.
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
