use std::cell::RefCell;

use crate::origin::Origin;
use crate::path::Path;
use crate::problem::{Problem, Problems};

/// Collects what is wrong, so that all of it can be told at once.
pub(super) struct Notes<'a> {
    origin: &'a Origin,
    problems: RefCell<Vec<Problem>>,
}

impl<'a> Notes<'a> {
    pub(super) fn new(origin: &'a Origin) -> Self {
        Self { origin, problems: RefCell::default() }
    }

    /// Notes what is wrong with the value at `path`.
    pub(super) fn wrong(&self, path: &Path<'_>, message: impl Into<String>) {
        self.problems.borrow_mut().push(self.origin.problem(path, message));
    }

    /// The value, or else a note of why there is none.
    pub(super) fn check<T, E: ToString>(&self, path: &Path<'_>, value: Result<T, E>) -> Option<T> {
        value.map_err(|error| self.wrong(path, error.to_string())).ok()
    }

    /// What was made, if nothing is wrong.
    pub(super) fn finish<T>(self, made: T) -> Result<T, Problems> {
        match Problems::of(self.problems.into_inner()) {
            Some(problems) => Err(problems),
            None => Ok(made),
        }
    }
}
