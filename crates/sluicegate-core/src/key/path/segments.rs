use super::steps::step;
use crate::key::percent_decoded;

/// One of the ways in which servers read a path. For most paths, all of them give the same result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) slash: Slash,
    pub(crate) dots: Dots,
}

/// What separates segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slash {
    /// A `/` as it is written.
    Written,
    /// A `/` that is percent-encoded too, for servers that decode the path before they split it.
    Decoded,
}

/// How `.` and `..` are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dots {
    /// As ordinary segments, for servers that leave paths as they are.
    Kept,
    /// Removed, with the segment before `..`, after repeated slashes are merged.
    Resolved,
    /// Resolved before repeated slashes are merged, so `..` can remove an empty segment.
    ResolvedFirst,
}

pub(crate) const READINGS: [Reading; 6] = [
    Reading { slash: Slash::Written, dots: Dots::Kept },
    Reading { slash: Slash::Written, dots: Dots::Resolved },
    Reading { slash: Slash::Written, dots: Dots::ResolvedFirst },
    Reading { slash: Slash::Decoded, dots: Dots::Kept },
    Reading { slash: Slash::Decoded, dots: Dots::Resolved },
    Reading { slash: Slash::Decoded, dots: Dots::ResolvedFirst },
];

/// The segments of a path in one reading: decoded, without empty ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segments {
    /// All segments, concatenated. This takes two allocations, however many segments there are.
    text: Vec<u8>,
    /// The end of each segment.
    ends: Vec<usize>,
}

impl Segments {
    pub(crate) fn read(path: &[u8], reading: Reading) -> Self {
        let mut kept: Vec<&[u8]> = Vec::new();
        for segment in split(path, reading.slash) {
            step(1);
            let is = |dots: &[u8]| {
                segment.len() <= 6 && percent_decoded(segment).eq(dots.iter().copied())
            };
            if segment.is_empty() && reading.dots != Dots::ResolvedFirst {
                continue;
            }
            match reading.dots {
                Dots::Resolved | Dots::ResolvedFirst if is(b".") => {}
                Dots::Resolved | Dots::ResolvedFirst if is(b"..") => drop(kept.pop()),
                _ => kept.push(segment),
            }
        }
        let mut segments = Self { text: Vec::with_capacity(path.len()), ends: Vec::new() };
        for segment in kept.into_iter().filter(|segment| !segment.is_empty()) {
            step(segment.len());
            segments.text.extend(percent_decoded(segment));
            segments.ends.push(segments.text.len());
        }
        segments
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut begin = 0;
        self.ends.iter().map(move |&end| &self.text[std::mem::replace(&mut begin, end)..end])
    }
}

/// The text between slashes.
fn split(path: &[u8], slash: Slash) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(path);
    std::iter::from_fn(move || {
        let path = rest?;
        let is_slash = |at: &usize| match &path[*at..] {
            [b'/', ..] => true,
            [b'%', b'2', b'F' | b'f', ..] => slash == Slash::Decoded,
            _ => false,
        };
        let at = (0..path.len()).find(is_slash);
        step(at.unwrap_or(path.len()));
        rest = at.map(|at| &path[at + if path[at] == b'/' { 1 } else { 3 }..]);
        Some(&path[..at.unwrap_or(path.len())])
    })
}
