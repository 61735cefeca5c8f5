#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;

use super::shaped::deserialize_tables;
use super::{Amount, Condition, Limit};

/// Other limits for requests that match `when`, while `while` holds. At least one of the two is needed.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Case {
    /// The name of the case. A case with a budget of its own keeps what was spent under this name when its
    /// conditions change. Without a name, it starts from zero when its conditions change.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// The requests that the case applies to.
    #[serde(default)]
    pub(crate) when: Option<Condition>,
    /// The load at which the case applies. It allows more generous limits while the service has capacity to spare.
    #[serde(default, rename = "while")]
    pub(crate) load: Option<Load>,
    /// The limits in this case.
    pub(crate) limits: Vec<Limit>,
    /// Whether the case shares its budget with the other limits of the rule. By default it does if only the
    /// server chooses the case (`hours`, `claim`, `network`, `country`, `region`, `while`). A case that the client
    /// can choose, by path, header or method, has a budget of its own.
    #[serde(default)]
    pub(crate) shared: Option<bool>,
}

/// A condition on the load of the service: one of `has_capacity`, `in_flight` and `cpu`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Load {
    /// The function of the service with this name returns `true`: there is capacity to spare.
    #[serde(default)]
    pub(crate) has_capacity: Option<String>,
    /// Fewer requests than this are being served.
    #[serde(default)]
    pub(crate) in_flight: Option<u64>,
    /// This process uses less than this percentage of the processors, such as `80%`.
    #[serde(default)]
    pub(crate) cpu: Option<Amount>,
}

deserialize_tables! {
    Case: "a table with `when` or `while`, and `limits`",
    Load: "a table such as { in_flight = 100 }"
}
