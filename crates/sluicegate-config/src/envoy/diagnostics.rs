//! What is wrong with a file.

use std::fmt::Display;

use crate::source::{Diagnostic, MOST, PolicyError, SourceLocation};

/// The errors and warnings found so far.
#[derive(Debug, Default)]
pub(super) struct Diagnostics {
    problems: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    /// How many more errors and warnings there are.
    more: (usize, usize),
}

impl Diagnostics {
    /// Adds an error about the value at `path`.
    pub(super) fn problem(
        &mut self,
        path: &dyn Display,
        location: SourceLocation,
        what: impl Into<String>,
    ) {
        if self.problems.len() < MOST {
            self.problems.push(Diagnostic::new(path.to_string(), what).at(Some(location)));
        } else {
            self.more.0 += 1;
        }
    }

    /// Adds a warning about the value at `path`.
    pub(super) fn warning(
        &mut self,
        path: &dyn Display,
        location: SourceLocation,
        what: impl Into<String>,
    ) {
        if self.warnings.len() < MOST {
            self.warnings.push(Diagnostic::new(path.to_string(), what).at(Some(location)));
        } else {
            self.more.1 += 1;
        }
    }

    /// The warnings, if there are no errors.
    pub(super) fn finish(mut self, text: &str) -> Result<Vec<Diagnostic>, PolicyError> {
        let (problems, warnings) = self.more;
        if self.problems.is_empty() {
            if warnings > 0 {
                self.warnings
                    .push(Diagnostic::new("", format!("and {warnings} more of such warnings")));
            }
            return Ok(self.warnings);
        }
        let lines: Vec<_> = text.split('\n').collect();
        let inside = self.problems.into_iter().map(|problem| inside(problem, &lines));
        PolicyError::and_more(inside, problems).map_or(Ok(Vec::new()), Err)
    }
}

/// Moves the location of a diagnostic into the text. The parser points behind a text that ends too soon, and before
/// an empty one.
fn inside(problem: Diagnostic, lines: &[&str]) -> Diagnostic {
    let (Some(line), Some(column)) = (problem.line(), problem.column()) else { return problem };
    let within = line.clamp(1, lines.len());
    let text = lines[within - 1];
    // Count characters only if the location may be behind the line.
    if line == within && column <= text.len() / 4 {
        return problem.at(Some(SourceLocation { line, column: column.max(1) }));
    }
    let end = text.chars().count() + 1;
    let column = if line > within { end } else { column.clamp(1, end) };
    problem.at(Some(SourceLocation { line: within, column }))
}
