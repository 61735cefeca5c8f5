//! What is wrong with a document.

use std::collections::HashSet;
use std::fmt;

use super::location::SourceLocation;

/// One thing that is wrong: where it stands, and what was expected there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    path: String,
    location: Option<SourceLocation>,
    message: String,
}

impl Diagnostic {
    /// A problem with what stands at `path`, such as `rules[1].limits[0].burst`; `message` is a sentence
    /// that says what is wrong and what was expected.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), location: None, message: message.into() }
    }

    /// Says where in the text that is.
    #[must_use]
    pub fn at(mut self, location: Option<SourceLocation>) -> Self {
        self.location = location;
        self
    }

    /// The path in the document; empty for the document as a whole.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The line, from 1; `None` for a document that was made in code, or could not be read at all.
    pub fn line(&self) -> Option<usize> {
        self.location.map(|location| location.line)
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> Option<usize> {
        self.location.map(|location| location.column)
    }

    /// What is wrong, and what was expected.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Prints `line:column: path: message`, without what is not known.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(SourceLocation { line, column }) = self.location {
            write!(f, "{line}:{column}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Diagnostic {}

/// All that is wrong with a document: never nothing. Of more than a hundred problems, the first hundred are
/// told, and how many more there are at least.
///
/// Two kinds of problems hide others. A text that is not TOML, JSON or YAML is not looked at further: all
/// errors of syntax are told in TOML, the first one in JSON and YAML. And as long as something has the wrong
/// shape, it is not asked whether the service provides the functions and files that the document names, nor
/// about the meaning of what hangs on the wrong part.
///
/// Prints a line for each problem, `file:line:column: path: message`, which editors and terminals
/// turn into links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    file: Option<Box<str>>,
    /// At least one.
    list: Box<[Diagnostic]>,
    /// How many more there are, which are not told one by one.
    more: usize,
}

/// Most problems that are told one by one: a file that was made by a program may be wrong in each line.
pub const MOST: usize = 100;

impl PolicyError {
    /// These problems, each once, in the order in which they stand in the text; `None` if there are none.
    pub fn of(problems: impl IntoIterator<Item = Diagnostic>) -> Option<Self> {
        Self::and_more(problems, 0)
    }

    /// These problems, and the number of problems that were left out.
    pub fn and_more(problems: impl IntoIterator<Item = Diagnostic>, more: usize) -> Option<Self> {
        // What several rules use is looked at for each of them.
        let mut told = HashSet::new();
        let mut problems: Vec<_> =
            problems.into_iter().filter(|problem| told.insert(problem.clone())).collect();
        problems.sort_by_key(|problem| problem.location);
        let more = more + problems.len().saturating_sub(MOST);
        problems.truncate(MOST);
        let list = problems.into_boxed_slice();
        if list.is_empty() { None } else { Some(Self { file: None, list, more }) }
    }

    /// How many problems there are at least besides those of [`iter`](Self::iter): 0 unless there are more
    /// than a hundred.
    pub fn more(&self) -> usize {
        self.more
    }

    /// Names the file that they are in.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<String>) -> Self {
        self.file = Some(file.into().into());
        self
    }

    /// The problems, in the order in which they stand in the text.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }
}

impl From<Diagnostic> for PolicyError {
    fn from(problem: Diagnostic) -> Self {
        Self { file: None, list: Box::new([problem]), more: 0 }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            match &self.file {
                Some(file) if problem.location.is_some() => write!(f, "{file}:{problem}")?,
                Some(file) => write!(f, "{file}: {problem}")?,
                None => problem.fmt(f)?,
            }
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\nand at least {more} more"),
        }
    }
}

impl std::error::Error for PolicyError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(line: usize, column: usize) -> Option<SourceLocation> {
        Some(SourceLocation { line, column })
    }

    #[test]
    fn problems_are_told_in_the_order_of_the_text() {
        let problems = PolicyError::of([
            Diagnostic::new("rules[1].name", "the name is taken").at(location(12, 3)),
            Diagnostic::new("time_zone", "no such zone").at(location(1, 13)),
        ]);
        let problems = problems.expect("two").in_file("policies.toml");
        assert_eq!(
            problems.to_string(),
            "policies.toml:1:13: time_zone: no such zone\n\
             policies.toml:12:3: rules[1].name: the name is taken"
        );
        assert_eq!(PolicyError::of([]), None);
    }

    #[test]
    fn what_is_found_twice_is_told_once() {
        let twice =
            ["one", "other", "one"].map(|what| Diagnostic::new("tiers", what).at(location(1, 1)));
        assert_eq!(PolicyError::of(twice).expect("two").iter().count(), 2);
    }

    #[test]
    fn of_very_many_problems_the_first_are_told_and_the_rest_counted() {
        let many =
            |count| (0..count).rev().map(|at| Diagnostic::new("", "x").at(location(at + 1, 1)));
        let problems = PolicyError::of(many(100)).expect("a hundred");
        assert_eq!((problems.iter().count(), problems.more()), (100, 0));
        let problems = PolicyError::of(many(1_000)).expect("a thousand");
        assert_eq!((problems.iter().count(), problems.more()), (100, 900));
        let text = problems.to_string();
        assert!(text.starts_with("1:1: x\n2:1: x\n"), "{text}");
        assert!(text.ends_with("100:1: x\nand at least 900 more"), "{text}");
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let problems = PolicyError::from(Diagnostic::new("", "there is no such file"));
        assert_eq!(problems.to_string(), "there is no such file");
        assert_eq!(problems.in_file("a.toml").to_string(), "a.toml: there is no such file");
    }
}
