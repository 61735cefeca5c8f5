use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use maxminddb::MaxMindDbError;

/// Why there is no database of places, or no condition on them.
#[derive(Debug)]
pub struct PlacesError {
    problem: Problem,
    path: Option<PathBuf>,
}

#[derive(Debug)]
enum Problem {
    Unreadable(io::Error),
    Broken(MaxMindDbError),
    NoCountry(String),
    NoFile,
    Code { code: String, form: &'static str },
}

impl PlacesError {
    /// Whether the file could not be read; it may be there when it is tried again.
    pub fn is_unreadable(&self) -> bool {
        matches!(self.problem, Problem::Unreadable(_))
    }

    /// Whether what was read is no database, or a broken one, or not one of places.
    pub fn is_broken(&self) -> bool {
        matches!(self.problem, Problem::Broken(_) | Problem::NoCountry(_))
    }

    /// The code that is none, where that is the error.
    pub fn code(&self) -> Option<&str> {
        match &self.problem {
            Problem::Code { code, .. } => Some(code),
            _ => None,
        }
    }

    pub(super) fn unreadable(path: &Path, error: io::Error) -> Self {
        Self::new(Problem::Unreadable(error)).in_file(path)
    }

    pub(super) fn broken(error: MaxMindDbError) -> Self {
        Self::new(Problem::Broken(error))
    }

    pub(super) fn no_country(database_type: &str) -> Self {
        Self::new(Problem::NoCountry(database_type.into()))
    }

    pub(super) fn no_file() -> Self {
        Self::new(Problem::NoFile)
    }

    pub(super) fn code_of(code: &str, form: &'static str) -> Self {
        Self::new(Problem::Code { code: code.into(), form })
    }

    pub(super) fn in_file(self, path: &Path) -> Self {
        Self { path: Some(path.into()), ..self }
    }

    fn new(problem: Problem) -> Self {
        Self { problem, path: None }
    }
}

impl fmt::Display for PlacesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "the database of places `{}` ", path.display())?,
            None if self.code().is_some() => {}
            None => f.write_str("the database of places ")?,
        }
        match &self.problem {
            Problem::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Problem::Broken(error) => write!(f, "is no sound MaxMind DB file: {error}"),
            Problem::NoCountry(kind) => write!(
                f,
                "is one of another kind, `{kind}`: no record in it has a `country` with an `iso_code`"
            ),
            Problem::NoFile => {
                f.write_str("was made from bytes and not from a file: give it others by `replace`")
            }
            Problem::Code { code, form } => write!(f, "`{code}` is {form}"),
        }
    }
}

impl Error for PlacesError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.problem {
            Problem::Unreadable(error) => Some(error),
            Problem::Broken(error) => Some(error),
            _ => None,
        }
    }
}
