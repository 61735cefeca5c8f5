//! Texts of JSON, whatever their bytes are.
//!
//! Programs pass on what their clients send, and JSON can hold more than UTF-8: bytes as they are, and halves of surrogates
//! such as `\udcff`. None of it is an error. See [`text`](crate::text).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use crate::text;

/// A text of JSON as text or as bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct JsonText<T>(pub(super) T);

/// What texts of JSON become.
pub(super) trait FromJsonText {
    fn from_json(bytes: &[u8]) -> Self;
}

impl FromJsonText for String {
    fn from_json(bytes: &[u8]) -> Self {
        text::of(bytes).into_owned()
    }
}

impl FromJsonText for Vec<u8> {
    fn from_json(bytes: &[u8]) -> Self {
        bytes.into()
    }
}

impl<'de, T: FromJsonText> Deserialize<'de> for JsonText<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(TextVisitor(PhantomData))
    }
}

struct TextVisitor<T>(PhantomData<T>);

impl<T: FromJsonText> Visitor<'_> for TextVisitor<T> {
    type Value = JsonText<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<JsonText<T>, E> {
        self.visit_bytes(text.as_bytes())
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<JsonText<T>, E> {
        Ok(JsonText(T::from_json(bytes)))
    }
}

/// Reads a text.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    JsonText::deserialize(deserializer).map(|JsonText(text)| text)
}

/// Reads a text, or nothing where there is `null`.
pub(super) fn text_or_nothing<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let sent: Option<JsonText<_>> = Option::deserialize(deserializer)?;
    Ok(sent.map(|JsonText(text)| text))
}

/// A value that is written as a JSON object. Serde also reads a struct from a list of its fields, so that `[]` would be
/// a request about which nothing is known, and pass.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

// Objects of JSON in which no name is there twice, and not too many are.

/// The most names of an object, because each of them is work. By default, Envoy and hyper accept a hundred header fields.
const MOST: usize = 1_000;

/// Reads texts by name. Parsers disagree about which of two values counts, so two with one name are an error.
///
/// # Errors
///
/// If a name is there twice, there are too many names, or a value is not a text.
pub(super) fn unique_texts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    deserializer.deserialize_map(UniqueNames { fold: false, values: PhantomData })
}

/// Like [`unique_texts`], but reads values as bytes, and names in small letters: those of header fields are the same in any case.
///
/// # Errors
///
/// If a name is there twice in any case, there are too many names, or a value is not a text.
pub(super) fn unique_fields<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Vec<u8>>, D::Error> {
    deserializer.deserialize_map(UniqueNames { fold: true, values: PhantomData })
}

struct UniqueNames<T> {
    fold: bool,
    values: PhantomData<T>,
}

impl<'de, T: FromJsonText> Visitor<'de> for UniqueNames<T> {
    type Value = BTreeMap<String, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut texts = BTreeMap::new();
        while let Some((JsonText(name), JsonText(text))) =
            map.next_entry::<JsonText<String>, JsonText<T>>()?
        {
            let name = if self.fold { name.to_ascii_lowercase() } else { name };
            if texts.len() == MOST {
                return Err(A::Error::custom(format_args!("there are more than {MOST} names")));
            }
            match texts.entry(name) {
                Entry::Vacant(entry) => _ = entry.insert(text),
                Entry::Occupied(entry) => {
                    let name = entry.key();
                    return Err(A::Error::custom(format_args!("`{name}` is there twice")));
                }
            }
        }
        Ok(texts)
    }
}
