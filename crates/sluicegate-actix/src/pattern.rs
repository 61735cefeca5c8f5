//! Patterns of actix-web's resources: their parts, and the paths that they may match.
//!
//! actix-web reports the first pattern that matches a path. It does not report the guards, so another pattern may
//! answer: this module finds out which. If that depends on the regular expression of a parameter, the parameter may
//! match anything.

/// A part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'p> {
    Text(&'p str),
    /// `{name}`, `{name:regex}` or `{name}*`.
    Parameter {
        name: &'p str,
        /// Whether it may match a `/`, or nothing at all.
        is_open: bool,
    },
}

/// The parts of a pattern, in order.
pub(crate) fn pieces(pattern: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = pattern;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, behind) = parameter(rest).unwrap_or_else(|| {
            // A brace in front that closes nowhere is text.
            let brace = rest.char_indices().skip(1).find(|(_, c)| *c == '{');
            let end = brace.map_or(rest.len(), |(at, _)| at);
            (Piece::Text(&rest[..end]), &rest[end..])
        });
        rest = behind;
        Some(piece)
    })
}

/// The parameter at the beginning of `text`, and the rest.
fn parameter(text: &str) -> Option<(Piece<'_>, &str)> {
    let inner = text.strip_prefix('{')?;
    let mut depth = 1_usize;
    let end = inner.find(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    let (inner, behind) = (&inner[..end], &inner[end + 1..]);
    let (name, regex) = inner.split_once(':').map_or((inner, None), |(n, r)| (n, Some(r)));
    let (is_tail, behind) = if behind == "*" { (true, "") } else { (false, behind) };
    let is_open = is_tail || regex.is_some_and(|regex| !is_part_of_a_segment(regex));
    Some((Piece::Parameter { name, is_open }, behind))
}

/// The parts of regular expressions that match at least one character and no `/`. There are others. A parameter that
/// is treated as open by mistake costs a comparison, not a limit.
const WITHIN_A_SEGMENT: [&str; 12] = [
    "[^/]+",
    r"\d",
    r"\w",
    r"\.",
    r"\-",
    "a-z",
    "A-Z",
    "0-9",
    "a-f",
    "A-F",
    "[:digit:]",
    "[:alnum:]",
];

fn is_part_of_a_segment(regex: &str) -> bool {
    let mut rest = regex;
    while let Some(first) = rest.chars().next() {
        let known = WITHIN_A_SEGMENT.iter().find_map(|known| rest.strip_prefix(known));
        rest = match known {
            Some(behind) => behind,
            None if first.is_ascii_alphanumeric() || "_[]+".contains(first) => &rest[1..],
            // `{2}`, but not `{0,2}`, which also matches an empty text.
            None if first == '{' && !rest.starts_with("{0") && !rest.starts_with("{,") => {
                let Some(end) = rest.find('}') else { return false };
                &rest[end + 1..]
            }
            None => return false,
        };
    }
    !regex.is_empty()
}

/// Whether `path` may be routed to `pattern`, if the slashes of the path are merged, or one is added or
/// taken away at its end, as `NormalizePath` does.
///
/// Reads each of the two at most three times, whatever their content.
pub(crate) fn may_match(pattern: &str, path: &str) -> bool {
    let mut own = Segments(pattern);
    let mut others = path.split('/').filter(|segment| !segment.is_empty());
    loop {
        let Some(segment) = own.next() else { return others.next().is_none() };
        if is_open(segment) {
            return ends_alike(own, others);
        }
        match others.next() {
            Some(other) if segment_matches(segment, other) => {}
            _ => return false,
        }
    }
}

/// Whether the segments of a pattern after its last open one match the end of the path.
fn ends_alike<'p>(own: Segments<'_>, others: impl Iterator<Item = &'p str> + Clone) -> bool {
    let mut tail = own;
    let mut rest = own;
    while let Some(segment) = rest.next() {
        if is_open(segment) {
            tail = rest;
        }
    }
    let Some(beyond) = others.clone().count().checked_sub(tail.count()) else { return false };
    tail.zip(others.skip(beyond)).all(|(own, other)| segment_matches(own, other))
}

/// The segments of a pattern that are not empty; a `/` within braces separates nothing.
#[derive(Debug, Clone, Copy)]
struct Segments<'p>(&'p str);

impl<'p> Iterator for Segments<'p> {
    type Item = &'p str;

    fn next(&mut self) -> Option<&'p str> {
        let rest = self.0.trim_start_matches('/');
        let mut depth = 0_usize;
        let end = rest.find(|c| {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == '/' && depth == 0
        });
        let (segment, behind) = rest.split_at(end.unwrap_or(rest.len()));
        self.0 = behind;
        (!segment.is_empty()).then_some(segment)
    }
}

fn is_open(segment: &str) -> bool {
    let open = |piece| matches!(piece, Piece::Parameter { is_open: true, .. });
    segment.ends_with('*') || pieces(segment).any(open)
}

/// Whether a segment of a pattern, none of whose parameters is open, may match one of a path.
fn segment_matches(own: &str, other: &str) -> bool {
    let mut rest = other;
    // The number of parameters that still need at least one character.
    let mut waiting = 0;
    let mut pieces = pieces(own).peekable();
    while let Some(piece) = pieces.next() {
        let Piece::Text(text) = piece else {
            waiting += 1;
            continue;
        };
        let at = match (waiting, pieces.peek()) {
            (0, _) => rest.starts_with(text).then_some(0),
            // The last text ends the segment. Every other text is matched as early as possible.
            (_, None) => rest.len().checked_sub(text.len()).filter(|_| rest.ends_with(text)),
            _ => {
                // A parameter needs a character, which may have several bytes.
                let from = rest.char_indices().nth(waiting).map_or(rest.len(), |(at, _)| at);
                rest[from..].find(text).map(|at| at + from)
            }
        };
        match at {
            Some(at) if at >= waiting => rest = &rest[at + text.len()..],
            _ => return false,
        }
        waiting = 0;
    }
    if waiting == 0 { rest.is_empty() } else { rest.len() >= waiting }
}

/// Whether the pattern, with `captured` in the places of its parameters, is `path`.
pub(crate) fn is_filled_by<'c>(
    pattern: &str,
    captured: impl Iterator<Item = (&'c str, &'c str)>,
    path: &str,
) -> bool {
    let mut captured = captured;
    let mut rest = path;
    for piece in pieces(pattern) {
        let text = match piece {
            Piece::Text(text) => text,
            Piece::Parameter { name, is_open } => match captured.next() {
                Some((captured, value)) if captured == name => value,
                // It may still match nothing, in a resource inside of a scope.
                None if is_open => "",
                _ => return false,
            },
        };
        match rest.strip_prefix(text) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    rest.is_empty() && captured.next().is_none()
}

/// The pattern that must have matched for `captured`, whose parts are within `path`: `/users/{id}`. The regular
/// expressions of parameters are lost.
pub(crate) fn refilled<'c>(
    captured: impl Iterator<Item = (&'c str, &'c str)>,
    path: &str,
) -> Option<String> {
    let mut pattern = String::with_capacity(path.len());
    let mut end = 0;
    for (name, value) in captured {
        let start = (value.as_ptr() as usize).checked_sub(path.as_ptr() as usize)?;
        pattern.push_str(path.get(end..start)?);
        pattern.push('{');
        pattern.push_str(name);
        pattern.push('}');
        end = start.checked_add(value.len())?;
    }
    pattern.push_str(path.get(end..)?);
    Some(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_may_match_what_actix_routes_to_it() {
        for (pattern, path) in [
            ("/login", "/login"),
            ("/login", "//login/"),
            ("/login/", "/login"),
            ("/users/{id}", "/users/me"),
            ("/users/{id}/", "/users//me"),
            ("/v{version}/{file}.{ext}", "/v1/a.tar.gz"),
            ("/{file}.{ext}", "/é.x"),
            ("/{a}-{b}.{ext}", "/日-本.語"),
            ("/{id:[[:digit:]]{6}}", "/012345"),
            ("/{id:[0-9]{1,3}}-{rest}", "/7-x"),
            ("/static/{tail:.*}", "/static"),
            ("/static/{tail}*", "/static/a/b"),
            ("/{a:.*}/x/{b}", "/1/2/3/x/4"),
            ("/{path:[^{}]+/[a-z]+}", "/a/b"),
            ("/", "/"),
            ("", "/"),
        ] {
            assert!(may_match(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn a_pattern_matches_no_other_path() {
        for (pattern, path) in [
            ("/login", "/logins"),
            ("/login", "/login/x"),
            ("/login", "/"),
            ("/users/{id}", "/users"),
            ("/users/{id}", "/posts/7"),
            ("/v{version}", "/v"),
            ("/{file}.{ext}", "/a."),
            ("/{a}-{b}-c", "/a-c"),
            ("/static/{tail}*", "/other/a"),
            ("/{a:.*}/x/{b}", "/1/2/3/y/4"),
            ("/", "/x"),
        ] {
            assert!(!may_match(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn odd_patterns_are_read_without_a_panic() {
        for pattern in ["{", "}", "/{", "/{a:{}", "/a{b", "/*", "{}*", "/{é:[é]}é", "//", "/{:}"]
        {
            for path in ["", "/", "/é", "/a/b", "/{"] {
                let _ = may_match(pattern, path);
                let _ = is_filled_by(pattern, [("a", "é")].into_iter(), path);
            }
        }
    }

    #[test]
    fn what_was_captured_tells_the_pattern() {
        let path = "/a/b/a";
        let captured = [("x", &path[1..2]), ("y", &path[5..6])];
        let captured = || captured.into_iter();
        assert_eq!(refilled(captured(), path).as_deref(), Some("/{x}/b/{y}"));
        assert!(is_filled_by("/{x}/b/{y:[a-z]+}", captured(), path));
        assert!(!is_filled_by("/{x}/{z}/a", captured(), path));
        assert!(!is_filled_by("/{x}/b/a", captured(), path));
        assert_eq!(refilled([("x", "elsewhere")].into_iter(), path), None);
    }
}
