#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;

use super::Texts;
use super::shaped::deserialize_tables;

/// Header fields and errors as an API of language models has them, so that its clients understand the service. A change
/// takes effect when the service starts again.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Dialect {
    /// Whose API it is.
    pub(crate) api: Api,
    /// The names of rules, or of limits, that count requests.
    #[serde(default)]
    pub(crate) requests: Option<Texts>,
    /// The names of those that count tokens of input and output.
    #[serde(default)]
    pub(crate) tokens: Option<Texts>,
    /// The names of those that count tokens of input. OpenAI's API has no fields for them.
    #[serde(default)]
    pub(crate) input_tokens: Option<Texts>,
    /// The names of those that count tokens of output. OpenAI's API has no fields for them.
    #[serde(default)]
    pub(crate) output_tokens: Option<Texts>,
}

/// An API of language models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Api {
    /// OpenAI's, which many others have too: `x-ratelimit-remaining-tokens`.
    OpenAi,
    /// Anthropic's: `anthropic-ratelimit-tokens-remaining`.
    Anthropic,
}

deserialize_tables! {
    Dialect: "a table such as { api = \"openai\", requests = \"requests\", tokens = \"tokens\" }"
}
