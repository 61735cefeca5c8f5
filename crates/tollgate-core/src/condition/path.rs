mod segments;

use self::segments::{READINGS, Reading, segments};
use super::{Condition, PatternError};
use crate::key::{Path, View, percent_decoded};

impl Path {
    /// Holds for requests to paths of this pattern: `/api/{id}/*`.
    ///
    /// A segment in braces is any one segment; a `*` at the end, or `{*name}`, is any number of them,
    /// none included. All else is compared byte for byte, case included.
    ///
    /// The condition is meant for limiting more, and is generous: percent-encoded spellings, repeated
    /// slashes, a slash at the end, and `.` and `..` are no way around it, and where servers disagree
    /// about what a path means, it holds if any reading of it matches. So it is no way to make
    /// exceptions, as in `Not(Path.matches(..))`: a path that matches may still be read differently
    /// by whoever answers it. Where the framework routes, prefer [`Route.is`](crate::Route::is), which
    /// is right both ways.
    ///
    /// ```
    /// use tollgate_core::{Ip, Limit, Path};
    ///
    /// let rule = Limit::per_minute(5).by(Ip::peer()).when(Path.matches("/login"));
    /// ```
    ///
    /// # Panics
    ///
    /// If the pattern is none. For patterns that come from configuration there is
    /// [`try_matches`](Self::try_matches).
    #[track_caller]
    pub fn matches(self, pattern: &str) -> PathMatches {
        self.try_matches(pattern).unwrap_or_else(|error| panic!("{error}"))
    }

    /// [`matches`](Self::matches) for patterns that come from configuration.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the pattern.
    pub fn try_matches(self, pattern: &str) -> Result<PathMatches, PatternError> {
        PathMatches::parse(pattern).map_err(|problem| PatternError::new("path", pattern, problem))
    }
}

/// Holds for requests to paths of a pattern; see [`Path::matches`].
#[derive(Debug, Clone)]
pub struct PathMatches {
    segments: Vec<Segment>,
    /// Whether any number of segments may follow.
    rest: bool,
}

#[derive(Debug, Clone)]
enum Segment {
    Any,
    /// Decoded.
    Text(Vec<u8>),
}

impl PathMatches {
    fn parse(pattern: &str) -> Result<Self, &'static str> {
        let pattern = pattern.strip_prefix('/').ok_or("does not begin with a `/`")?;
        if pattern.contains(['?', '#']) {
            return Err("has more than a path: a query is a condition of its own");
        }
        let pattern = pattern.strip_suffix('/').unwrap_or(pattern);
        let mut segments: Vec<_> = pattern.split('/').filter(|_| !pattern.is_empty()).collect();
        let rest = segments.last().is_some_and(|last| is_rest(last));
        segments.truncate(segments.len() - usize::from(rest));
        let segments = segments.into_iter().map(Segment::parse).collect::<Result<_, _>>()?;
        Ok(Self { segments, rest })
    }

    fn matches(&self, path: &[u8], reading: Reading) -> bool {
        let count = segments(path, reading).count();
        let Some(beyond) = count.checked_sub(self.segments.len()) else { return false };
        let last_first = || segments(path, reading).skip(beyond);
        (beyond == 0 || self.rest)
            && self.segments.iter().rev().zip(last_first()).all(|(own, other)| own.matches(other))
    }
}

/// `*`, or `{*name}` as axum has it.
fn is_rest(segment: &str) -> bool {
    let named = segment.strip_prefix("{*").and_then(|name| name.strip_suffix('}'));
    segment == "*" || named.is_some_and(|name| !name.contains(['{', '}', '*']))
}

impl Segment {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let name = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        match name.unwrap_or(text) {
            "" => Err("has an empty segment"),
            "." | ".." => Err("has a segment `.` or `..`, which stands for another path"),
            inner if inner.contains('*') => Err("has a `*` elsewhere than at its end"),
            inner if inner.contains(['{', '}']) => {
                Err("has a brace within a segment: braces hold a whole one, as in `/users/{id}`")
            }
            _ if name.is_some() => Ok(Self::Any),
            text => Ok(Self::Text(percent_decoded(text.as_bytes()).collect())),
        }
    }

    fn matches(&self, segment: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Text(text) => percent_decoded(segment).eq(text.iter().copied()),
        }
    }
}

impl<V: View> Condition<V> for PathMatches {
    fn holds(&self, view: &V) -> bool {
        let path = view.path().as_bytes();
        // Nearly all paths read in one way only.
        let plain = !path.contains(&b'%') && !path.windows(2).any(|two| two == b"/.");
        let readings = if plain { &READINGS[..1] } else { &READINGS };
        readings.iter().any(|reading| self.matches(path, *reading))
    }
}

#[cfg(test)]
mod tests;
