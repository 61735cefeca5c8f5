use schemars::JsonSchema;
use serde::Deserialize;

use super::Limit;

/// What one tier may spend: `limits`, or `unlimited = true`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// The limits, all of which hold.
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// Whether this tier has no limit at all, which is said in the log.
    #[serde(default)]
    pub unlimited: bool,
}
