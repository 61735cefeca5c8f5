use std::fmt;

/// A pattern of paths or hosts, or a method, that is not valid. The message names the pattern and the mistake.
///
/// ```
/// use sluicegate::key::Path;
///
/// let error = Path.try_matches("users/{id}").unwrap_err();
/// assert_eq!(error.to_string(), "the path pattern `users/{id}` does not begin with a `/`");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    kind: &'static str,
    pattern: String,
    problem: &'static str,
}

/// The kind that is no pattern.
const METHOD: &str = "method";

impl PatternError {
    /// An error for conditions of other crates: the `kind` of the pattern, and the `problem` as the end of a sentence about
    /// it.
    pub fn new(kind: &'static str, pattern: &str, problem: &'static str) -> Self {
        Self { kind, pattern: pattern.into(), problem }
    }

    /// Characters that are not seen are written as escapes.
    pub(super) fn of_method(method: &str, problem: &'static str) -> Self {
        Self { kind: METHOD, pattern: method.escape_debug().to_string(), problem }
    }

    /// The invalid pattern, as it was written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, pattern, problem } = self;
        let pattern_of = if *kind == METHOD { "" } else { " pattern" };
        write!(f, "the {kind}{pattern_of} `{pattern}` {problem}")
    }
}

impl std::error::Error for PatternError {}
