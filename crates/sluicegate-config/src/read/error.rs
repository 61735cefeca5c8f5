//! Values that have another form than expected: what is wrong as data, and in words.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use crate::source::Step;

/// Why a value could not be read, with the path from the value up to the root.
#[derive(Debug)]
pub(crate) struct FormError {
    pub(super) kind: Kind,
    pub(super) path: Vec<Step>,
}

/// What is wrong with the form of a value.
#[derive(Debug)]
pub(super) enum Kind {
    /// No field has this name.
    UnknownField { name: String, known: &'static [&'static str] },
    /// None of the expected words is this one.
    UnknownWord { word: String, known: &'static [&'static str] },
    /// A table lacks the field with this name.
    MissingField(&'static str),
    /// The value has another type, or another range.
    WrongValue { found: String, expected: String },
    /// Anything else, in words.
    Other(String),
}

impl FormError {
    fn new(kind: Kind) -> Self {
        Self { kind, path: Vec::new() }
    }

    /// Adds the step that leads to the value.
    pub(super) fn under(mut self, step: Step) -> Self {
        self.path.push(step);
        self
    }
}

impl de::Error for FormError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Kind::Other(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Str(text) => format!("the text {text:?}"),
            // serde writes 1e-320 with 320 zeros.
            Unexpected::Float(number) => format!("the floating point `{number:?}`"),
            Unexpected::Seq => "a list".to_owned(),
            Unexpected::Map => "a table".to_owned(),
            Unexpected::Unit => "nothing (`null`)".to_owned(),
            other => format!("the {other}"),
        };
        Self::new(Kind::WrongValue { found, expected: expected.to_string() })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        Self::new(Kind::UnknownWord { word: word.to_owned(), known })
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        Self::new(Kind::UnknownField { name: name.to_owned(), known })
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new(Kind::MissingField(name))
    }
}

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl std::error::Error for FormError {}

/// A sentence with the error and what was expected.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField { name: wrong, known }
            | Self::UnknownWord { word: wrong, known } => {
                write!(f, "`{wrong}` is not known here")?;
                match nearest(wrong, known) {
                    Some(name) => write!(f, "; did you mean `{name}`?")?,
                    None => f.write_str(",")?,
                }
                match known {
                    [] => f.write_str(" expected nothing"),
                    [one] => write!(f, " expected `{one}`"),
                    [several @ .., last] => {
                        write!(f, " expected `{}` or `{last}`", several.join("`, `"))
                    }
                }
            }
            Self::MissingField(name) => write!(f, "`{name}` is missing"),
            Self::WrongValue { found, expected } => write!(f, "found {found}, expected {expected}"),
            Self::Other(message) => f.write_str(message),
        }
    }
}

/// The similarity from which a name is suggested, from 0 to 1: `burst` for `brust`, but not `name` for `rate`.
const ALIKE: f64 = 0.75;

/// The known name that is most similar to `wrong`, if it is similar enough.
pub(super) fn nearest<'n>(wrong: &str, known: &[&'n str]) -> Option<&'n str> {
    let likeness = |name: &str| strsim::jaro_winkler(wrong, name);
    let nearest = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    nearest.copied().filter(|name| likeness(name) >= ALIKE)
}
