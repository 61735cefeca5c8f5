//! Objects of JSON in which no name is there twice.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Error, MapAccess, Visitor};

/// Reads texts by name. Parsers disagree about which of two values counts, so two with one name are an error.
///
/// # Errors
///
/// If a name is there twice, or a value is not a text.
pub(super) fn texts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    deserializer.deserialize_map(Texts { fold: false })
}

/// Like [`texts`], but reads names in small letters: those of header fields are the same in any case.
///
/// # Errors
///
/// If a name is there twice in any case, or a value is not a text.
pub(super) fn fields<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    deserializer.deserialize_map(Texts { fold: true })
}

struct Texts {
    fold: bool,
}

impl<'de> Visitor<'de> for Texts {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut texts = BTreeMap::new();
        while let Some((mut name, text)) = map.next_entry::<String, String>()? {
            if self.fold {
                name.make_ascii_lowercase();
            }
            if texts.contains_key(&name) {
                return Err(A::Error::custom(format_args!("`{name}` is there twice")));
            }
            texts.insert(name, text);
        }
        Ok(texts)
    }
}
