//! Errors and warnings about a document.

use std::collections::HashSet;
use std::fmt;

/// An error or warning about a value of a document: its path, its location in the text, and a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    path: String,
    location: Option<SourceLocation>,
    message: String,
}

impl Diagnostic {
    /// A diagnostic about the value at `path`, such as `rules[1].limits[0].burst`. `message` says what is wrong and
    /// what was expected.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), location: None, message: message.into() }
    }

    /// Sets the location in the text.
    #[must_use]
    pub fn at(mut self, location: Option<SourceLocation>) -> Self {
        self.location = location;
        self
    }

    /// The path in the document. Empty for the document as a whole.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn location(&self) -> Option<SourceLocation> {
        self.location
    }

    /// The line, counted from 1. `None` for a document that was made in code, or a file that could not be read.
    pub fn line(&self) -> Option<usize> {
        self.location.map(|location| location.line)
    }

    /// The column in characters, counted from 1.
    pub fn column(&self) -> Option<usize> {
        self.location.map(|location| location.column)
    }

    /// What is wrong, and what was expected.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Prints `line:column: path: message`, without the parts that are not known.
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

/// Every error in a document: one diagnostic or more. Of more than 100, the first 100 are kept and the others are
/// counted.
///
/// Two kinds of errors hide others. After a syntax error the text is not read further; TOML reports all syntax
/// errors, JSON and YAML the first one. While a value has the wrong form, the functions and files that the document
/// names are not checked, nor the meaning of values that depend on the wrong one.
///
/// Prints one line for each diagnostic, `file:line:column: path: message`, which editors and terminals turn into
/// links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    file: Option<Box<str>>,
    /// At least one.
    list: Box<[Diagnostic]>,
    /// How many more errors there are at least.
    more: usize,
}

/// The most diagnostics that are kept. A generated file may have an error in each line.
pub(crate) const MOST: usize = 100;

impl PolicyError {
    /// These diagnostics without duplicates, in the order of the text. `None` if there are none.
    pub fn of(problems: impl IntoIterator<Item = Diagnostic>) -> Option<Self> {
        Self::and_more(problems, 0)
    }

    /// Like [`of`](Self::of), with the number of errors that were left out.
    pub(crate) fn and_more(
        problems: impl IntoIterator<Item = Diagnostic>,
        more: usize,
    ) -> Option<Self> {
        // A value that several rules use is checked for each of them.
        let mut seen = HashSet::new();
        let mut problems: Vec<_> =
            problems.into_iter().filter(|problem| seen.insert(problem.clone())).collect();
        problems.sort_by_key(|problem| problem.location);
        let more = more + problems.len().saturating_sub(MOST);
        problems.truncate(MOST);
        let list = problems.into_boxed_slice();
        if list.is_empty() { None } else { Some(Self { file: None, list, more }) }
    }

    /// How many more errors there are at least than those of [`iter`](Self::iter). 0 unless there are more than 100.
    pub fn more(&self) -> usize {
        self.more
    }

    /// Sets the name of the file.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<String>) -> Self {
        self.file = Some(file.into().into());
        self
    }

    /// The diagnostics, in the order of the text.
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

/// A location in a text. Lines and columns count from 1, and a column is a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLocation {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

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
