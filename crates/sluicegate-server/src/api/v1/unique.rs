//! Objects of JSON in which no name is there twice, and not too many are.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error, MapAccess, Visitor};

use crate::api::text::{FromSent, Sent};

/// The most names of an object, because each of them is work. By default, Envoy and hyper accept a hundred header fields.
const MOST: usize = 1_000;

/// Reads texts by name. Parsers disagree about which of two values counts, so two with one name are an error.
///
/// # Errors
///
/// If a name is there twice, there are too many names, or a value is not a text.
pub(super) fn texts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    deserializer.deserialize_map(Texts { fold: false, values: PhantomData })
}

/// Like [`texts`], but reads values as bytes, and names in small letters: those of header fields are the same in any case.
///
/// # Errors
///
/// If a name is there twice in any case, there are too many names, or a value is not a text.
pub(super) fn fields<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Vec<u8>>, D::Error> {
    deserializer.deserialize_map(Texts { fold: true, values: PhantomData })
}

struct Texts<T> {
    fold: bool,
    values: PhantomData<T>,
}

impl<'de, T: FromSent> Visitor<'de> for Texts<T> {
    type Value = BTreeMap<String, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut texts = BTreeMap::new();
        while let Some((Sent(name), Sent(text))) = map.next_entry::<Sent<String>, Sent<T>>()? {
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
