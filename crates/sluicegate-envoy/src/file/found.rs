//! What is wrong with a file, or worth a word, in the order in which it was found.

use std::fmt::Display;

use sluicegate_config::reader::MOST_PROBLEMS;
use sluicegate_config::{Place, Problem, Problems};

/// Collects all of it: whoever mends a file wants to know everything at once.
#[derive(Debug, Default)]
pub(super) struct Found {
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
    /// How many more of both there are.
    more: (usize, usize),
}

impl Found {
    /// What stands at `path` cannot be read, or not be followed.
    pub(super) fn problem(&mut self, path: &dyn Display, place: Place, what: impl Into<String>) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(Problem::new(path.to_string(), what).at(Some(place)));
        } else {
            self.more.0 += 1;
        }
    }

    /// What stands at `path` changes nothing here.
    pub(super) fn warning(&mut self, path: &dyn Display, place: Place, what: impl Into<String>) {
        if self.warnings.len() < MOST_PROBLEMS {
            self.warnings.push(Problem::new(path.to_string(), what).at(Some(place)));
        } else {
            self.more.1 += 1;
        }
    }

    /// The warnings, if there is no problem.
    pub(super) fn finish(mut self, text: &str) -> Result<Vec<Problem>, Problems> {
        let (problems, warnings) = self.more;
        if self.problems.is_empty() {
            if warnings > 0 {
                self.warnings
                    .push(Problem::new("", format!("and {warnings} more of such warnings")));
            }
            return Ok(self.warnings);
        }
        let lines: Vec<_> = text.split('\n').collect();
        let inside = self.problems.into_iter().map(|problem| inside(problem, &lines));
        Problems::and_more(inside, problems).map_or(Ok(Vec::new()), Err)
    }
}

/// The problem at a place in the text of these lines: where a text ends too soon, the parser points behind
/// it, and where it is empty, before it.
fn inside(problem: Problem, lines: &[&str]) -> Problem {
    let (Some(line), Some(column)) = (problem.line(), problem.column()) else { return problem };
    let within = line.clamp(1, lines.len());
    let text = lines[within - 1];
    // Characters are counted only where the place may be behind the line.
    if line == within && column <= text.len() / 4 {
        return problem.at(Some(Place { line, column: column.max(1) }));
    }
    let end = text.chars().count() + 1;
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
