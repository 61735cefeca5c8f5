#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess};

use super::shaped::{Shaped, deserialize_shaped};

/// A text, or a list of alternatives.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
#[non_exhaustive]
pub enum Texts {
    /// One text.
    One(String),
    /// Any of these texts.
    Any(Vec<String>),
}

impl Texts {
    /// The texts.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Any(texts) => texts,
        }
    }
}

impl From<&str> for Texts {
    fn from(text: &str) -> Self {
        Self::One(text.to_owned())
    }
}

impl From<Vec<String>> for Texts {
    fn from(texts: Vec<String>) -> Self {
        Self::Any(texts)
    }
}

impl<'de> Shaped<'de> for Texts {
    const EXPECTED: &'static str = "a text, or a list of texts";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(Self::One(text.to_owned()))
    }

    fn list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Self::Any)
    }
}

deserialize_shaped!(Texts);
