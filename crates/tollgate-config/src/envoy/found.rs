//! What is wrong with a file, or worth a word, in the order in which it was found.

use std::fmt::Display;

use crate::problem::{Place, Problem, Problems};

/// Collects all of it: whoever mends a file wants to know everything at once.
#[derive(Debug, Default)]
pub(super) struct Found {
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Found {
    /// What stands at `path` cannot be read, or not be followed.
    pub(super) fn problem(&mut self, path: &dyn Display, place: Place, what: impl Into<String>) {
        self.problems.push(Problem::new(path.to_string(), what).at(Some(place)));
    }

    /// What stands at `path` changes nothing here.
    pub(super) fn warning(&mut self, path: &dyn Display, place: Place, what: impl Into<String>) {
        self.warnings.push(Problem::new(path.to_string(), what).at(Some(place)));
    }

    /// The warnings, if there is no problem.
    pub(super) fn finish(self, text: &str) -> Result<Vec<Problem>, Problems> {
        match Problems::of(self.problems.into_iter().map(|problem| inside(problem, text))) {
            Some(problems) => Err(problems),
            None => Ok(self.warnings),
        }
    }
}

/// The problem at a place in `text`: where a text ends too soon, the parser points behind it, and where
/// it is empty, before it.
fn inside(problem: Problem, text: &str) -> Problem {
    let (Some(line), Some(column)) = (problem.line(), problem.column()) else { return problem };
    let lines: Vec<_> = text.split('\n').collect();
    let within = line.clamp(1, lines.len());
    let end = lines[within - 1].chars().count() + 1;
    let column = if line > within { end } else { column.clamp(1, end) };
    problem.at(Some(Place { line: within, column }))
}

/// A text as it is quoted in a message: its beginning, on one line.
pub(super) fn short(text: &str) -> String {
    const MOST: usize = 60;
    let beginning: String = text.chars().take(MOST).collect();
    let more = if beginning.len() < text.len() { ".." } else { "" };
    format!("`{}{more}`", beginning.escape_debug())
}
