#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess};

use super::shaped::{Shaped, deserialize_shaped};

/// What happens to a request over the limit.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "lowercase"))]
pub(crate) enum Reject {
    /// It is refused: `429 Too Many Requests`.
    Block,
    /// It is served, and reported as a request that would have been refused.
    Shadow,
    /// It is served with a mark, so that the handler can serve less.
    Degrade,
    /// It is redirected.
    #[cfg_attr(feature = "schema", schemars(untagged))]
    Redirect(Redirect),
}

/// Where a request over the limit is redirected.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Redirect {
    /// The target, such as `https://busy.example.com/`.
    pub(crate) redirect: String,
    /// The status: 302, 303, 307 or 308. The default is 307.
    #[serde(default)]
    pub(crate) status: Option<u16>,
}

impl<'de> Shaped<'de> for Reject {
    const EXPECTED: &'static str =
        "\"block\", \"shadow\", \"degrade\" or { redirect = \"https://busy.example.com/\" }";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        match text {
            "block" => Ok(Self::Block),
            "shadow" => Ok(Self::Shadow),
            "degrade" => Ok(Self::Degrade),
            _ => Err(E::unknown_variant(text, &["block", "shadow", "degrade"])),
        }
    }

    fn table<A: MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
        Redirect::deserialize(MapAccessDeserializer::new(table)).map(Self::Redirect)
    }
}

deserialize_shaped!(Reject);
