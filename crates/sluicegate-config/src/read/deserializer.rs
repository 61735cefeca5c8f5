//! A serde deserializer over values. Its errors contain the path to the value.

use std::iter::Enumerate;
use std::slice;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::forward_to_deserialize_any;

use super::error::FormError;
use crate::source::{Data, Entry, Node, Step, Stub};

/// Replaces an invalid text: a name that is valid everywhere.
const ANY_TEXT: &str = "-";

/// Replaces an invalid value that can have several forms: a key.
const ANY_KEY: &str = "global";

impl Node {
    /// The error of a value that has another form than `expected`.
    fn unlike(&self, expected: &str) -> FormError {
        let found = match &self.data {
            Data::Null | Data::Gone => Unexpected::Unit,
            Data::Truth(truth) => Unexpected::Bool(*truth),
            Data::Number(number) => Unexpected::Unsigned(*number),
            Data::Negative(number) => Unexpected::Signed(*number),
            Data::Fraction(number) => Unexpected::Float(*number),
            Data::Text(text) => Unexpected::Str(text),
            Data::Other(what) => Unexpected::Other(what),
            Data::List(_) => Unexpected::Seq,
            Data::Table(_) | Data::Stub(_) => Unexpected::Map,
        };
        FormError::invalid_type(found, &expected)
    }

    /// A whole number up to `most`.
    fn number<'de, V: Visitor<'de>>(
        &self,
        most: u64,
        expected: &str,
        visitor: V,
    ) -> Result<V::Value, FormError> {
        match self.data {
            Data::Stub(_) => visitor.visit_u64(1),
            Data::Number(number) if number <= most => visitor.visit_u64(number),
            _ => Err(self.unlike(expected)),
        }
    }
}

/// What a visitor expects is put in words here, where the type that is asked for is known: a file's author knows no
/// types of Rust.
impl<'de> Deserializer<'de> for &Node {
    type Error = FormError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FormError> {
        match &self.data {
            Data::Truth(truth) => visitor.visit_bool(*truth),
            Data::Number(number) => visitor.visit_u64(*number),
            Data::Negative(number) => visitor.visit_i64(*number),
            Data::Fraction(number) => visitor.visit_f64(*number),
            Data::Text(text) => visitor.visit_str(text),
            Data::List(list) => visitor.visit_seq(List(list.iter().enumerate())),
            Data::Table(table) => visitor.visit_map(Table { left: table.iter(), value: None }),
            Data::Stub(Stub::Any) => visitor.visit_str(ANY_KEY),
            Data::Stub(Stub::Table) => visitor.visit_map(Table::empty()),
            Data::Null | Data::Gone => Err(FormError::invalid_type(Unexpected::Unit, &visitor)),
            Data::Other(what) => Err(FormError::invalid_type(Unexpected::Other(what), &visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FormError> {
        match self.data {
            Data::Null | Data::Stub(_) | Data::Gone => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FormError> {
        match &self.data {
            Data::Stub(_) => visitor.visit_seq(List([].iter().enumerate())),
            Data::List(list) => visitor.visit_seq(List(list.iter().enumerate())),
            _ => Err(self.unlike("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FormError> {
        match &self.data {
            Data::Stub(_) => visitor.visit_map(Table::empty()),
            Data::Table(table) => visitor.visit_map(Table { left: table.iter(), value: None }),
            _ => Err(self.unlike("a table")),
        }
    }

    /// A list is no table, although the code that serde derives would take its values for the fields in order.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FormError> {
        match self.data {
            // It does not fit, so that a stand-in for a table with fields takes its place.
            Data::Stub(Stub::Any) => self.deserialize_any(visitor),
            _ => self.deserialize_map(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FormError> {
        match &self.data {
            Data::Stub(_) => visitor.visit_str(ANY_TEXT),
            Data::Text(text) => visitor.visit_str(text),
            _ => Err(self.unlike("a text")),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FormError> {
        match self.data {
            Data::Stub(_) => visitor.visit_bool(false),
            Data::Truth(truth) => visitor.visit_bool(truth),
            _ => Err(self.unlike("`true` or `false`")),
        }
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FormError> {
        self.number(u16::MAX.into(), "a whole number from 0 to 65535", visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FormError> {
        self.number(u32::MAX.into(), "a whole number from 0 to 4294967295", visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FormError> {
        self.number(u64::MAX, "a whole number, not negative", visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FormError> {
        match &self.data {
            Data::Stub(_) => visitor.visit_enum(ANY_TEXT.into_deserializer()),
            Data::Text(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            _ => Err(self.unlike("a text")),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u128 f32 f64 char bytes byte_buf str unit unit_struct newtype_struct tuple
        tuple_struct identifier ignored_any
    }
}

struct List<'n>(Enumerate<slice::Iter<'n, Node>>);

impl<'de> SeqAccess<'de> for List<'_> {
    type Error = FormError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, FormError> {
        let Some((index, node)) = self.0.find(|(_, node)| !matches!(node.data, Data::Gone)) else {
            return Ok(None);
        };
        let value = seed.deserialize(node).map_err(|error| error.under(Step::Index(index)));
        value.map(Some)
    }
}

struct Table<'n> {
    left: slice::Iter<'n, (String, Entry)>,
    /// The value of the name that was read.
    value: Option<(&'n String, &'n Node)>,
}

impl Table<'_> {
    fn empty() -> Self {
        Self { left: [].iter(), value: None }
    }
}

impl<'de> MapAccess<'de> for Table<'_> {
    type Error = FormError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, FormError> {
        let mut left = self.left.by_ref().map(|(name, entry)| (name, &entry.value));
        self.value = left.find(|(_, node)| !matches!(node.data, Data::Gone));
        let Some((name, _)) = self.value else { return Ok(None) };
        let key = seed.deserialize(name.as_str().into_deserializer());
        key.map(Some).map_err(|error: FormError| error.under(Step::Name(name.clone())))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, FormError> {
        let Some((name, node)) = self.value.take() else {
            return Err(FormError::custom("a value is read before its name"));
        };
        seed.deserialize(node).map_err(|error| error.under(Step::Name(name.clone())))
    }
}
