#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;

/// Until when a served request holds its place in limits of concurrency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum HoldUntil {
    /// Until the head of the response is there.
    Head,
    /// Until the response's body has ended, failed or been dropped.
    #[default]
    End,
}
