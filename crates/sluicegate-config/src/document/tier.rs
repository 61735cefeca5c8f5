#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;

use super::Limit;
use super::shaped::deserialize_tables;

/// What one tier may spend: `limits`, or `unlimited = true`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Tier {
    /// The limits, all of which hold.
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// Whether this tier has no limit at all, which is said in the log.
    #[serde(default)]
    pub unlimited: bool,
}

deserialize_tables! {
    Tier: "a table such as { limits = [\"5/second\"] } or { unlimited = true }"
}
