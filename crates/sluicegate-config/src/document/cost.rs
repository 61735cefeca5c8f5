#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess};

use super::shaped::{Shaped, deserialize_shaped};

/// What a request costs: a number, or a table that says where it is read from.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub enum Cost {
    /// So much for each request.
    Fixed(u64),
    /// Worked out for each request.
    Table(CostTable),
}

/// Where the cost of a request is read from: one of `header`, `query`, `body` and `call`. What is there
/// and is no number is the client's mistake, and so is a number beyond `most`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CostTable {
    /// The name of the header that holds the number.
    #[serde(default)]
    pub header: Option<String>,
    /// The name of the parameter of the query that holds the number.
    #[serde(default)]
    pub query: Option<String>,
    /// One for each so many bytes of the body, by its declared length, rounded up.
    #[serde(default)]
    pub body: Option<u64>,
    /// The name of a function that the service provides.
    #[serde(default)]
    pub call: Option<String>,
    /// The cost of a request that does not say; without it, such a request is refused as incomplete.
    #[serde(default)]
    pub default: Option<u64>,
    /// The least that a request costs, whatever it says: 1, unless said otherwise.
    #[serde(default)]
    pub least: Option<u64>,
    /// The most that a request may cost; one that says more is refused as a bad request.
    #[serde(default)]
    pub most: Option<u64>,
    /// Divides the number, rounded up: `per = 1000` charges one for each thousand begun.
    #[serde(default)]
    pub per: Option<u64>,
    /// Multiplies the number, which may have a fraction, rounded up: `scale = 100` counts dollars in cents.
    #[serde(default)]
    pub scale: Option<u64>,
}

/// Where the response says what the request really cost: `"response"`, which is what the handler left as
/// `Cost` in the response's extensions, or a header of the response.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "lowercase"))]
pub enum Settle {
    /// The `Cost` in the response's extensions.
    Response,
    /// A header of the response.
    #[cfg_attr(feature = "schema", schemars(untagged))]
    Table(SettleTable),
}

/// The header of the response that says what the request really cost.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SettleTable {
    /// The name of the header. Where it is missing or no number, the charge stays as it was.
    pub header: String,
    /// Multiplies the number, which may have a fraction, rounded up.
    #[serde(default)]
    pub scale: Option<u64>,
}

impl<'de> Shaped<'de> for Cost {
    const EXPECTED: &'static str =
        "a number, or a table such as { header = \"x-cost\", default = 1 }";

    fn number<E: Error>(number: u64) -> Result<Self, E> {
        Ok(Self::Fixed(number))
    }

    fn table<A: MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
        CostTable::deserialize(MapAccessDeserializer::new(table)).map(Self::Table)
    }
}

impl<'de> Shaped<'de> for Settle {
    const EXPECTED: &'static str = "\"response\" or { header = \"x-tokens-used\" }";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        match text {
            "response" => Ok(Self::Response),
            _ => Err(E::unknown_variant(text, &["response"])),
        }
    }

    fn table<A: MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
        SettleTable::deserialize(MapAccessDeserializer::new(table)).map(Self::Table)
    }
}

deserialize_shaped!(Cost, Settle);
