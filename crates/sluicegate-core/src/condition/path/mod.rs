//! Conditions on the path.
//!
//! Servers disagree about the meaning of a path: whether `%2F` separates segments, whether `..` goes up, and whether
//! repeated slashes are merged before or after that. `Path.matches` holds if any of six readings matches, because it
//! is meant to limit more. For nearly all paths, all readings are the same. So a condition on the path should not be
//! used for exceptions; `Route.is` is exact in both directions.
//!
//! For the same reason, `Condition::holds` is true as soon as one reading matches, and `Not` asks
//! `surely_holds`, which is true only if all readings match. A case replaces the limits after it only if it surely
//! holds. So no unusual spelling gets around a limit, or reaches an exception or the limits of another case alone.

pub(in crate::condition) mod literal;
mod tree;

use std::cell::OnceCell;

use smallvec::SmallVec;

pub(super) use self::tree::Tree;
use super::{Condition, PatternError};
use crate::key::path::segments::Segments;
use crate::key::path::steps::step;
use crate::key::path::{MAX_PATH, PathReading};
use crate::key::{Missing, Path, View, percent_decoded};

/// Returns an error if the path of `view` is too long for conditions.
pub(in crate::condition) fn check_length<V: View>(view: &V) -> Result<(), Missing> {
    path_of(view).map(|_| ())
}

/// The path of `view`, if it is short enough.
#[inline]
fn path_of<V: View>(view: &V) -> Result<&str, Missing> {
    let path = view.path();
    match path.len() <= MAX_PATH {
        true => Ok(path),
        false => Err(Missing::ambiguous(format!("a path of at most {MAX_PATH} bytes"))),
    }
}

/// Shows the segments of the path of `view` in each way to read it. `None` if one of them is too long to be read.
///
/// # Errors
///
/// If the path is too long for conditions.
pub(super) fn each_way_to_read<V: View>(
    view: &V,
    mut each: impl FnMut(&[&[u8]]),
) -> Result<Option<()>, Missing> {
    let (written, memo) = (path_of(view)?, &view.readings().get().path);
    let mut read = |path: &str, memo| {
        with_readings(path, memo, |readings, path| each_reading(readings, path, &mut each))
    };
    let routed = view.routed_path();
    let is_read =
        read(written, &memo.written) && (is_same(routed, written) || read(routed, &memo.routed));
    Ok(is_read.then_some(()))
}

/// Returns `false` if the path has not been read.
fn each_reading(readings: &PathReading, path: &[u8], each: &mut impl FnMut(&[&[u8]])) -> bool {
    type Parts<'a> = SmallVec<[&'a [u8]; 16]>;
    match readings {
        PathReading::Plain => {
            let segments = path.split(|byte| *byte == b'/');
            each(&segments.filter(|segment| !segment.is_empty()).collect::<Parts<'_>>());
        }
        PathReading::Several(readings) => {
            readings.iter().for_each(|reading| each(&reading.iter().collect::<Parts<'_>>()));
        }
        PathReading::TooLong => return false,
    }
    true
}

/// Calls `read` with the readings of `path`, which are cached in `memo`.
fn with_readings<O>(
    path: &str,
    memo: &OnceCell<PathReading>,
    read: impl FnOnce(&PathReading, &[u8]) -> O,
) -> O {
    let path = path.as_bytes();
    read(memo.get_or_init(|| PathReading::of(path)), path)
}

/// Whether nothing has removed a part of the path.
fn is_same(routed: &str, written: &str) -> bool {
    std::ptr::eq(routed, written) || routed == written
}

impl Path {
    /// Holds for requests to paths of this pattern: `/api/{id}/*`.
    ///
    /// A segment in braces is any single segment. A `*` at the end, or `{*name}`, is any number of segments,
    /// including none. Everything else is compared byte for byte, including case. Braces hold a name and nothing else:
    /// what other routers write there (`{path:path}`, `{rest...}`, `{id:[0-9]+}`) is not valid.
    ///
    /// The condition is meant to limit more, and is generous. Percent-encoding, repeated slashes, a slash at the end,
    /// and `.` and `..` do not get around it. If servers disagree about the meaning of a path, it holds if any
    /// reading matches. `Not(Path.matches(..))` is generous too: it holds unless every reading matches. A case of
    /// [`when`](crate::when) replaces the limits after it only if every reading matches. A request
    /// with a path of more than [`MAX_PATH`](crate::condition::MAX_PATH) bytes is refused with 400. If the framework
    /// routes, prefer [`Route.is`](crate::Route::is).
    ///
    /// Spellings that only some applications take for the same path are other paths here: another case (`/LOGIN`),
    /// parameters of a segment (`/login;x`), a backslash (`/x\..\login`), and an encoded space or zero byte at the end
    /// (`/login%20`, `/login%00`). The guide says [what to do](https://docs.rs/sluicegate/latest/sluicegate/guide/rules/)
    /// about such an application.
    ///
    /// The path is the one that the client wrote. A nested router sees only the rest of the path. There the pattern
    /// may also match the rest: within `nest("/api", ..)` both `/api/login` and `/login` match.
    ///
    /// ```
    /// use sluicegate::{Ip, Limit};
    /// use sluicegate::key::Path;
    ///
    /// let rule = Limit::per_minute(5).by(Ip::peer()).when(Path.matches("/login"));
    /// ```
    ///
    /// # Panics
    ///
    /// If the pattern is not valid. For patterns from configuration there is [`try_matches`](Self::try_matches).
    #[track_caller]
    pub fn matches(self, pattern: &str) -> PathMatches {
        self.try_matches(pattern).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`matches`](Self::matches), for patterns from configuration.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the pattern.
    pub fn try_matches(self, pattern: &str) -> Result<PathMatches, PatternError> {
        let made = PathMatches::parse(pattern);
        let made = made.map_err(|problem| PatternError::new("path", pattern, problem))?;
        literal::warn("path", pattern);
        Ok(made)
    }

    /// The first segment of a pattern that other routers take for a variable or an expression, such as `:id`, `<id>` or
    /// `[0-9]+`. Here it is compared byte for byte, so hardly any request matches. A segment of any value is `{id}`.
    ///
    /// [`matches`](Self::matches) and [`Route.is`](crate::Route::is) log a warning about such a pattern.
    ///
    /// ```
    /// use sluicegate::key::Path;
    ///
    /// assert_eq!(Path::literal_segment("/users/:id"), Some(":id"));
    /// assert_eq!(Path::literal_segment("/users/{id}/*"), None);
    /// ```
    pub fn literal_segment(pattern: &str) -> Option<&str> {
        literal::segment(pattern)
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
        if pattern.len() >= MAX_PATH {
            return Err("is longer than any path that is read");
        }
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

    /// The pattern of a framework's route, as generous as what is in its braces may be. `None` if it is no path at all.
    pub(super) fn of_route(pattern: &str) -> Option<Self> {
        let pattern = pattern.strip_prefix('/')?;
        let (mut segments, mut rest) = (Vec::new(), false);
        for segment in pattern.split('/').filter(|segment| !segment.is_empty()) {
            rest = is_rest(segment) || may_be_several(segment);
            if rest {
                break;
            }
            segments.push(match segment.contains(['{', '}']) {
                true => Segment::Any,
                false => Segment::Text(percent_decoded(segment.as_bytes()).collect()),
            });
        }
        Some(Self { segments, rest })
    }

    /// Segment by segment, so the time depends on the length of the pattern, not of the path.
    fn matches(&self, reading: &Segments) -> bool {
        step(1);
        let is_long_enough = match self.rest {
            true => reading.len() >= self.segments.len(),
            false => reading.len() == self.segments.len(),
        };
        is_long_enough
            && self.segments.iter().zip(reading.iter()).all(|(own, other)| own.matches(other))
    }

    /// Whether the path matches in one of these ways to read it.
    fn matches_any(&self, readings: &PathReading, path: &[u8]) -> bool {
        match readings {
            PathReading::Plain => self.matches_plain(path),
            PathReading::Several(readings) => readings.iter().any(|reading| self.matches(reading)),
            PathReading::TooLong => true,
        }
    }

    /// Whether the path matches in every one of these ways.
    fn matches_all(&self, readings: &PathReading, path: &[u8]) -> bool {
        match readings {
            PathReading::Plain => self.matches_plain(path),
            PathReading::Several(readings) => readings.iter().all(|reading| self.matches(reading)),
            PathReading::TooLong => false,
        }
    }

    /// Like [`matches`](Self::matches), for a path that reads in one way only.
    fn matches_plain(&self, path: &[u8]) -> bool {
        let mut rest = path.strip_prefix(b"/").unwrap_or(path);
        for own in &self.segments {
            if rest.is_empty() {
                return false;
            }
            let matched = match own {
                Segment::Text(text) => {
                    step(text.len());
                    rest.strip_prefix(&**text)
                }
                Segment::Any => {
                    let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
                    step(end);
                    Some(&rest[end..])
                }
            };
            rest = match matched {
                Some([]) => &[],
                Some([b'/', behind @ ..]) => behind,
                _ => return false,
            };
        }
        rest.is_empty() || self.rest
    }
}

/// `*`, or `{*name}` as in axum.
fn is_rest(segment: &str) -> bool {
    let named = segment.strip_prefix("{*").and_then(|name| name.strip_suffix('}'));
    segment == "*" || named.is_some_and(is_name)
}

/// Names of variables. Anything else in braces means more to some router: `{path:path}` and `{rest...}` are any number of
/// segments, `{v1,v2}` is one of two, and `{$}` is the end.
fn is_name(text: &str) -> bool {
    text.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '-'))
}

/// Whether a segment of a framework's route may match several segments of a path: `{tail:.*}`, `{path:path}`, `{rest...}`,
/// or a part of an expression that holds a slash.
fn may_be_several(segment: &str) -> bool {
    let count = |brace| segment.matches(brace).count();
    if count('{') != count('}') {
        return true;
    }
    let Some((_, inner)) = segment.split_once('{') else { return false };
    let inner = inner.rsplit_once('}').map_or(inner, |(inner, _)| inner);
    match inner.split_once(':') {
        Some((_, "path")) => true,
        Some((_, expression)) => {
            ["*", ".", "[^", r"\S", r"\D", r"\W"].iter().any(|any| expression.contains(any))
        }
        None => ["*", "+", "..."].iter().any(|rest| inner.contains(rest)),
    }
}

impl Segment {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let name = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        let decoded: Vec<u8> = percent_decoded(text.as_bytes()).collect();
        match name.unwrap_or(text) {
            "" => Err("has an empty segment"),
            _ if matches!(decoded.as_slice(), b"." | b"..") => {
                Err("has a segment `.` or `..`, which stands for another path")
            }
            inner if inner.contains('*') => Err("has a `*` elsewhere than at its end"),
            inner if inner.contains(['{', '}']) => {
                Err("has a brace within a segment: braces hold a whole one, as in `/users/{id}`")
            }
            inner if name.is_some() && !is_name(inner) => Err(
                "has more than a name in braces: `{id}` is any one segment, and a `*` at the end is any number of them",
            ),
            _ if name.is_some() => Ok(Self::Any),
            _ => Ok(Self::Text(decoded)),
        }
    }

    fn matches(&self, segment: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Text(text) => {
                step(text.len());
                segment == text
            }
        }
    }
}

impl<V: View> Condition<V> for PathMatches {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        let (written, memo) = (path_of(view)?, &view.readings().get().path);
        let matches = |readings: &_, path: &_| self.matches_any(readings, path);
        if with_readings(written, &memo.written, matches) {
            return Ok(true);
        }
        let routed = view.routed_path();
        Ok(!is_same(routed, written) && with_readings(routed, &memo.routed, matches))
    }

    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        let (written, memo) = (path_of(view)?, &view.readings().get().path);
        let matches = |readings: &_, path: &_| self.matches_all(readings, path);
        Ok(with_readings(written, &memo.written, matches))
    }
}

#[cfg(test)]
mod tests;
