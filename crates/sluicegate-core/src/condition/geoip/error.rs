use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use maxminddb::MaxMindDbError;

/// Why a GeoIP database, or a condition on it, could not be made.
#[derive(Debug)]
pub struct GeoError {
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

impl GeoError {
    /// Whether the file could not be read. A later attempt may succeed.
    pub fn is_unreadable(&self) -> bool {
        matches!(self.problem, Problem::Unreadable(_))
    }

    /// Whether the contents are not a valid GeoIP database.
    pub fn is_broken(&self) -> bool {
        matches!(self.problem, Problem::Broken(_) | Problem::NoCountry(_))
    }

    /// The code that is not valid, if that is the error.
    pub fn code(&self) -> Option<&str> {
        match &self.problem {
            Problem::Code { code, .. } => Some(code),
            _ => None,
        }
    }

    pub(crate) fn unreadable(path: &Path, error: io::Error) -> Self {
        Self::new(Problem::Unreadable(error)).in_file(path)
    }

    pub(crate) fn broken(error: MaxMindDbError) -> Self {
        Self::new(Problem::Broken(error))
    }

    pub(crate) fn no_country(database_type: &str) -> Self {
        Self::new(Problem::NoCountry(database_type.into()))
    }

    pub(crate) fn no_file() -> Self {
        Self::new(Problem::NoFile)
    }

    pub(crate) fn code_of(code: &str, form: &'static str) -> Self {
        Self::new(Problem::Code { code: code.into(), form })
    }

    pub(crate) fn in_file(self, path: &Path) -> Self {
        Self { path: Some(path.into()), ..self }
    }

    fn new(problem: Problem) -> Self {
        Self { problem, path: None }
    }
}

impl fmt::Display for GeoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "the GeoIP database `{}` ", path.display())?,
            None if self.code().is_some() => {}
            None => f.write_str("the GeoIP database ")?,
        }
        match &self.problem {
            Problem::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Problem::Broken(error) => write!(f, "is not a valid MaxMind DB file: {error}"),
            Problem::NoCountry(kind) => write!(
                f,
                "has the type `{kind}` and no countries: no record has a `country` with an `iso_code`"
            ),
            Problem::NoFile => {
                f.write_str("was made from bytes, so there is no file to reload: use `replace`")
            }
            Problem::Code { code, form } => write!(f, "`{code}` is {form}"),
        }
    }
}

impl Error for GeoError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.problem {
            Problem::Unreadable(error) => Some(error),
            Problem::Broken(error) => Some(error),
            _ => None,
        }
    }
}
