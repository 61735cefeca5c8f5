//! Logs of JSON, a line an object.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::field::{Draft, Field};

/// What the values of an object mean, by their names.
#[derive(Debug, Clone, Default)]
pub(super) struct Mapping {
    field: Option<Field>,
    members: Vec<(String, Self)>,
}

impl Mapping {
    /// Says what the value at a path means, such as `request.uri`.
    pub(super) fn add(&mut self, path: &str, field: Field) {
        let mut at = self;
        for name in path.split('.') {
            let index =
                at.members.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                    at.members.push((name.to_owned(), Self::default()));
                    at.members.len() - 1
                });
            at = &mut at.members[index].1;
        }
        at.field = Some(field);
    }

    /// Reads a line.
    pub(super) fn read(&self, line: &str, draft: &mut Draft<'_>) -> Option<()> {
        let mut deserializer = serde_json::Deserializer::from_str(line);
        Value { mapping: self, draft }.deserialize(&mut deserializer).ok()?;
        deserializer.end().ok()
    }
}

struct Value<'a, 'b> {
    mapping: &'a Mapping,
    draft: &'a mut Draft<'b>,
}

impl Value<'_, '_> {
    /// Takes a value that is no text, as it was written where the field is one of text.
    fn number<E>(self, written: &dyn fmt::Display, number: Option<f64>) -> Result<(), E> {
        use Field::{Bytes, Duration, Fraction, Ignore, Request, Start, Status, Time};

        let Some(field) = self.mapping.field else { return Ok(()) };
        match field {
            Time | Start | Duration(_) | Status | Bytes => {
                if let Some(number) = number {
                    self.draft.number(field, number);
                }
            }
            // The first line of a request is no number.
            Request | Fraction(_) | Ignore => {}
            _ => self.draft.text(field, &written.to_string()),
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { mapping, draft } = self;
        while let Some(member) = map.next_key_seed(Name(&mapping.members))? {
            match member {
                Some(mapping) => map.next_value_seed(Value { mapping, draft })?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    /// The lines of a header field. Of other values, the first one counts.
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { mapping, draft } = self;
        if list.next_element_seed(Value { mapping, draft })?.is_none() {
            return Ok(());
        }
        let Some(field @ Field::Header(_)) = mapping.field else {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        while let Some(value) = list.next_element::<serde_json::Value>()? {
            if let Some(line) = value.as_str() {
                draft.further_line(field, line);
            }
        }
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        if let Some(field) = self.mapping.field {
            self.draft.text(field, text);
        }
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.number(&number, Some(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.number(&number, Some(number as f64))
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.number(&number, Some(number as f64))
    }

    fn visit_bool<E>(self, is_true: bool) -> Result<(), E> {
        self.number(&is_true, None)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// The name of a member.
struct Name<'a>(&'a [(String, Mapping)]);

impl<'de, 'a> DeserializeSeed<'de> for Name<'a> {
    type Value = Option<&'a Mapping>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for Name<'a> {
    type Value = Option<&'a Mapping>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self
            .0
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, mapping)| mapping))
    }
}
