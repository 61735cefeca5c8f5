use crate::key::percent_decoded;

/// One of the ways in which servers read a path. Of most paths, all of them are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) slash: Slash,
    pub(super) dots: Dots,
}

/// What separates segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slash {
    /// A `/` as it stands.
    Written,
    /// One that is percent-encoded too, for servers that decode the path before they take it apart.
    Decoded,
}

/// What `.` and `..` are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dots {
    /// Segments like others, for servers that leave paths as they are.
    Kept,
    /// Gone, with the segment before `..`, once repeated slashes are one.
    Resolved,
    /// The same, before repeated slashes are one: `..` takes away an empty segment too.
    ResolvedFirst,
}

pub(super) const READINGS: [Reading; 6] = [
    Reading { slash: Slash::Written, dots: Dots::Kept },
    Reading { slash: Slash::Written, dots: Dots::Resolved },
    Reading { slash: Slash::Written, dots: Dots::ResolvedFirst },
    Reading { slash: Slash::Decoded, dots: Dots::Kept },
    Reading { slash: Slash::Decoded, dots: Dots::Resolved },
    Reading { slash: Slash::Decoded, dots: Dots::ResolvedFirst },
];

/// The segments of a path that are not empty, the last one first, not decoded: from there `..` is a
/// number of segments to pass over, and nothing has to be remembered.
pub(super) fn segments(path: &[u8], reading: Reading) -> impl Iterator<Item = &[u8]> {
    let (mut rest, mut gone) = (Some(path), 0_usize);
    std::iter::from_fn(move || {
        loop {
            let segment;
            (rest, segment) = split_last(rest?, reading.slash);
            let is = |dots: &[u8]| {
                reading.dots != Dots::Kept && percent_decoded(segment).eq(dots.iter().copied())
            };
            if is(b"..") {
                gone += 1;
            } else if is(b".") || segment.is_empty() && reading.dots != Dots::ResolvedFirst {
                continue;
            } else if gone > 0 {
                gone -= 1;
            } else if !segment.is_empty() {
                return Some(segment);
            }
        }
    })
}

/// What stands before the last slash, and behind it.
fn split_last(path: &[u8], slash: Slash) -> (Option<&[u8]>, &[u8]) {
    let is_slash = |at: &usize| match &path[*at..] {
        [b'/', ..] => true,
        [b'%', b'2', b'F' | b'f', ..] => slash == Slash::Decoded,
        _ => false,
    };
    match (0..path.len()).rev().find(is_slash) {
        Some(at) => {
            let width = if path[at] == b'/' { 1 } else { 3 };
            (Some(&path[..at]), &path[at + width..])
        }
        None => (None, path),
    }
}
