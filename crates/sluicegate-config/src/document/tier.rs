#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;

use super::Limit;
use super::shaped::deserialize_tables;

/// One tier: `limits`, or `unlimited = true`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Tier {
    /// The limits. All of them apply.
    #[serde(default)]
    pub(crate) limits: Vec<Limit>,
    /// Whether this tier has no limits. Its use is logged.
    #[serde(default)]
    pub(crate) unlimited: bool,
}

deserialize_tables! {
    Tier: "a table such as { limits = [\"5/second\"] } or { unlimited = true }"
}
