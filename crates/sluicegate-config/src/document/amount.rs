#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::Error;

use super::shaped::{Shaped, deserialize_shaped};

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

deserialize_shaped!(Amount);
