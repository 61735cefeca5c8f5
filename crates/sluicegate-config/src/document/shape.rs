//! Values with several forms: a text or a table, a number or a text.
//!
//! serde's untagged enums can read them too, but lose the location and the reason of an error.

use std::fmt;
use std::marker::PhantomData;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// A value that can have each form whose function it implements.
pub(super) trait Shaped<'de>: Sized {
    /// The expected forms, in words that follow "expected".
    const EXPECTED: &'static str;

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Err(E::invalid_type(Unexpected::Str(text), &Self::EXPECTED))
    }

    fn number<E: Error>(number: u64) -> Result<Self, E> {
        Err(E::invalid_type(Unexpected::Unsigned(number), &Self::EXPECTED))
    }

    fn truth<E: Error>(truth: bool) -> Result<Self, E> {
        Err(E::invalid_type(Unexpected::Bool(truth), &Self::EXPECTED))
    }

    fn list<A: SeqAccess<'de>>(_: A) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Seq, &Self::EXPECTED))
    }

    fn table<A: MapAccess<'de>>(_: A) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Map, &Self::EXPECTED))
    }
}

/// Reads a value in any of its forms.
pub(super) fn read<'de, T: Shaped<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    from.deserialize_any(Shapes(PhantomData))
}

struct Shapes<T>(PhantomData<T>);

impl<'de, T: Shaped<'de>> Visitor<'de> for Shapes<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::text(text)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::number(number)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        match u64::try_from(number) {
            Ok(number) => T::number(number),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &T::EXPECTED)),
        }
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<T, E> {
        T::truth(truth)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<T, A::Error> {
        T::table(table)
    }
}

/// Implements `Deserialize` for types that are [`Shaped`].
macro_rules! deserialize_shaped {
    ($($type:ty),*) => {$(
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $crate::document::shape::read(from)
            }
        }
    )*};
}

/// Implements `Deserialize` for tables whose fields are derived with `#[serde(remote = "Self")]`. serde's own
/// derive also accepts a list as a table, field by field.
macro_rules! deserialize_tables {
    ($($type:ty: $expected:literal),*) => {$(
        impl<'de> $crate::document::shape::Shaped<'de> for $type {
            const EXPECTED: &'static str = $expected;

            fn table<A: serde::de::MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
                Self::deserialize(serde::de::value::MapAccessDeserializer::new(table))
            }
        }

        $crate::document::shape::deserialize_shaped!($type);
    )*};
}

/// Implements `Deserialize` for types of which one variant is a text, and another one a table.
macro_rules! deserialize_texts_or_tables {
    ($($type:ident: $expected:literal, $text:ident, $variant:ident($table:ty);)*) => {$(
        impl<'de> $crate::document::shape::Shaped<'de> for $type {
            const EXPECTED: &'static str = $expected;

            fn text<E: serde::de::Error>(text: &str) -> Result<Self, E> {
                Ok(Self::$text(text.to_owned()))
            }

            fn table<A: serde::de::MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
                let table = serde::de::value::MapAccessDeserializer::new(table);
                <$table>::deserialize(table).map(Self::$variant)
            }
        }

        $crate::document::shape::deserialize_shaped!($type);
    )*};
}

pub(super) use {deserialize_shaped, deserialize_tables, deserialize_texts_or_tables};

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

/// A number such as `80`, or a percentage such as `"80%"`.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub(crate) enum Amount {
    /// A number.
    Count(u64),
    /// A percentage, such as `80%`.
    Percent(String),
}

impl<'de> Shaped<'de> for Amount {
    const EXPECTED: &'static str = "a number, or a percentage such as \"80%\"";

    fn number<E: Error>(number: u64) -> Result<Self, E> {
        Ok(Self::Count(number))
    }

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(Self::Percent(text.to_owned()))
    }
}

deserialize_shaped!(Amount, Texts);
