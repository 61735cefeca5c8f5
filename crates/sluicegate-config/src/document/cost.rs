#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess};

use super::shape::{Shaped, deserialize_shaped};

/// The cost of a request: a number, or a table that says where to read it.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub(crate) enum Cost {
    /// The same for each request.
    Fixed(u64),
    /// Read from each request.
    Table(CostTable),
}

/// Where the cost of a request is read from: one of `header`, `query`, `body`, `tokens` and `call`. A value that is not
/// a number, or is greater than `most`, is a bad request (400).
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct CostTable {
    /// The header that contains the number.
    pub(crate) header: Option<String>,
    /// The query parameter that contains the number.
    pub(crate) query: Option<String>,
    /// Charges 1 for each started block of this many bytes, by the declared length of the body.
    pub(crate) body: Option<u64>,
    /// The tokens of a language model that the request may use, which the service estimates by its body.
    pub(crate) tokens: Option<Tokens>,
    /// The function of the service that computes the cost.
    pub(crate) call: Option<String>,
    /// The cost of a request without the value. If this is not set, such a request is refused as incomplete.
    pub(crate) default: Option<u64>,
    /// The minimum cost. Smaller values are raised to it. The default is 1.
    pub(crate) least: Option<u64>,
    /// The maximum cost. A request with a greater value is refused as a bad request; one with more `tokens` reserves
    /// this.
    pub(crate) most: Option<u64>,
    /// Divides the number, rounded up: `per = 1000` charges 1 for each started thousand.
    pub(crate) per: Option<u64>,
    /// Multiplies the number, which may have a fraction, and rounds up: `scale = 100` counts dollars in cents.
    pub(crate) scale: Option<u64>,
}

/// Which tokens of a language model are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tokens {
    /// Input and output.
    All,
    /// Input and output, without input that the model read from its cache.
    Uncached,
    /// Input.
    Input,
    /// Input, without what the model read from its cache.
    UncachedInput,
    /// Output.
    Output,
}

/// Where the actual cost is read from: `"response"` for the `Cost` that the handler left in the response's
/// extensions, a header of the response, or the tokens that it used.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "lowercase"))]
pub(crate) enum Settle {
    /// The `Cost` in the response's extensions.
    Response,
    /// A header of the response, or tokens.
    #[cfg_attr(feature = "schema", schemars(untagged))]
    Table(SettleTable),
}

/// What the response contains of the actual cost: one of `header` and `tokens`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct SettleTable {
    /// The header. If it is missing or not a number, the charge stays as it was.
    pub(crate) header: Option<String>,
    /// The tokens of a language model that the answer used, when its body has ended.
    pub(crate) tokens: Option<Tokens>,
    /// Multiplies the number, which may have a fraction, and rounds up.
    pub(crate) scale: Option<u64>,
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
    const EXPECTED: &'static str =
        "\"response\", { header = \"x-tokens-used\" } or { tokens = \"all\" }";

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
