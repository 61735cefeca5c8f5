//! A serde deserializer over values. Its errors contain the path to the value.

use std::collections::btree_map;
use std::fmt;
use std::iter::Enumerate;
use std::slice;

use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected,
    IntoDeserializer, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::source::{Data, Entry, Node, Step, Stub};

/// An error, with the path from the value up to the root.
#[derive(Debug)]
pub(crate) struct Misfit {
    pub(super) message: String,
    pub(super) way: Vec<Step>,
}

impl Misfit {
    fn under(mut self, step: Step) -> Self {
        self.way.push(step);
        self
    }
}

impl de::Error for Misfit {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), way: Vec::new() }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match found {
            // serde writes 1e-320 with 320 zeros.
            Unexpected::Float(number) => Self::custom(format_args!(
                "invalid type: floating point `{number:?}`, expected {expected}"
            )),
            _ => Self::custom(format_args!("invalid type: {found}, expected {expected}")),
        }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Misfit {}

/// Replaces an invalid text: a name that is valid everywhere.
const ANY_TEXT: &str = "-";

/// Replaces an invalid value that can have several forms: a key.
const ANY_KEY: &str = "global";

impl<'de> Deserializer<'de> for &Node {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match &self.data {
            Data::Null => Err(Misfit::invalid_type(Unexpected::Other("null"), &visitor)),
            Data::Truth(truth) => visitor.visit_bool(*truth),
            Data::Number(number) => visitor.visit_u64(*number),
            Data::Negative(number) => visitor.visit_i64(*number),
            Data::Fraction(number) => visitor.visit_f64(*number),
            Data::Text(text) => visitor.visit_str(text),
            Data::Other(what) => Err(Misfit::invalid_type(Unexpected::Other(what), &visitor)),
            Data::List(list) => visitor.visit_seq(List(list.iter().enumerate())),
            Data::Table(table) => visitor.visit_map(Table { left: table.iter(), value: None }),
            Data::Stub(Stub::Any) => visitor.visit_str(ANY_KEY),
            Data::Stub(Stub::Table) => visitor.visit_map(Table::empty()),
            Data::Gone => Err(Misfit::custom("there is nothing")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.data {
            Data::Null | Data::Stub(_) | Data::Gone => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.data {
            Data::Stub(_) => visitor.visit_seq(List([].iter().enumerate())),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.data {
            Data::Stub(_) => visitor.visit_map(Table::empty()),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.data {
            Data::Stub(_) => visitor.visit_str(ANY_TEXT),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_string(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.data {
            Data::Stub(_) => visitor.visit_bool(false),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.data {
            Data::Stub(_) => visitor.visit_u16(1),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.data {
            Data::Stub(_) => visitor.visit_u64(1),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match &self.data {
            Data::Text(text) => visitor.visit_enum(Word(text)),
            // The author of a file may not know what an enum is.
            _ => String::deserialize(self).and_then(|text| visitor.visit_enum(Word(&text))),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u32 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct
        struct identifier ignored_any
    }
}

struct List<'n>(Enumerate<slice::Iter<'n, Node>>);

impl<'de> SeqAccess<'de> for List<'_> {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Misfit> {
        let Some((index, node)) = self.0.find(|(_, node)| !matches!(node.data, Data::Gone)) else {
            return Ok(None);
        };
        let value = seed.deserialize(node).map_err(|misfit| misfit.under(Step::Index(index)));
        value.map(Some)
    }
}

struct Table<'n> {
    left: btree_map::Iter<'n, String, Entry>,
    /// The value of the name that was read.
    value: Option<(&'n String, &'n Node)>,
}

impl Table<'_> {
    fn empty() -> Self {
        Self { left: btree_map::Iter::default(), value: None }
    }
}

impl<'de> MapAccess<'de> for Table<'_> {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Misfit> {
        let mut left = self.left.by_ref().map(|(name, entry)| (name, &entry.value));
        self.value = left.find(|(_, node)| !matches!(node.data, Data::Gone));
        let Some((name, _)) = self.value else { return Ok(None) };
        let key = seed.deserialize(name.as_str().into_deserializer());
        key.map(Some).map_err(|misfit: Misfit| misfit.under(Step::Name(name.clone())))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Misfit> {
        let Some((name, node)) = self.value.take() else {
            return Err(Misfit::custom("a value is read before its name"));
        };
        seed.deserialize(node).map_err(|misfit| misfit.under(Step::Name(name.clone())))
    }
}

/// A variant without data.
struct Word<'n>(&'n str);

impl<'de> EnumAccess<'de> for Word<'_> {
    type Error = Misfit;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Misfit> {
        Ok((seed.deserialize(self.0.into_deserializer())?, self))
    }
}

impl<'de> VariantAccess<'de> for Word<'_> {
    type Error = Misfit;

    fn unit_variant(self) -> Result<(), Misfit> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Misfit> {
        Err(Misfit::custom("expected a text alone"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Misfit> {
        Err(Misfit::custom("expected a text alone"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Misfit> {
        Err(Misfit::custom("expected a text alone"))
    }
}
