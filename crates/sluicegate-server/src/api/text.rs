//! Texts of JSON, whatever their bytes are.
//!
//! Programs pass on what their clients send, and JSON can hold more than UTF-8: bytes as they are, and halves of surrogates
//! such as `\udcff`. None of it is an error. See [`text`](crate::text).

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::text;

/// A text of JSON as text or as bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct Sent<T>(pub(super) T);

/// What texts of JSON become.
pub(super) trait FromSent {
    fn from_sent(bytes: &[u8]) -> Self;
}

impl FromSent for String {
    fn from_sent(bytes: &[u8]) -> Self {
        text::of(bytes).into_owned()
    }
}

impl FromSent for Vec<u8> {
    fn from_sent(bytes: &[u8]) -> Self {
        bytes.into()
    }
}

impl<'de, T: FromSent> Deserialize<'de> for Sent<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Text(PhantomData))
    }
}

struct Text<T>(PhantomData<T>);

impl<T: FromSent> Visitor<'_> for Text<T> {
    type Value = Sent<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Sent<T>, E> {
        self.visit_bytes(text.as_bytes())
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Sent<T>, E> {
        Ok(Sent(T::from_sent(bytes)))
    }
}

/// Reads a text.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Sent::deserialize(deserializer).map(|Sent(text)| text)
}

/// Reads a text, or nothing where there is `null`.
pub(super) fn text_or_nothing<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let sent: Option<Sent<_>> = Option::deserialize(deserializer)?;
    Ok(sent.map(|Sent(text)| text))
}
