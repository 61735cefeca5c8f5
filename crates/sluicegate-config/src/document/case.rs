#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;

use super::shaped::deserialize_tables;
use super::{Amount, Condition, Limit};

/// Other limits in a case: where `when` and `while` hold, as far as they are said.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Case {
    /// What the case is called. A case with a budget of its own keeps it under this name when its conditions
    /// change; one without a name keeps it as long as its conditions stay.
    #[serde(default)]
    pub name: Option<String>,
    /// To which requests the case applies.
    #[serde(default)]
    pub when: Option<Condition>,
    /// While there is room, by the load of the service: limits that are more generous then are elastic.
    #[serde(default, rename = "while")]
    pub room: Option<Room>,
    /// The limits in this case.
    pub limits: Vec<Limit>,
    /// Whether what is spent in this case is spent in others too. Unless said otherwise, that is so where only
    /// the server chooses the case (`hours`, `claim`, `network`, `country`, `region`, `while`). A case that the
    /// client can choose, by the path, a header or the method, has a budget of its own.
    #[serde(default)]
    pub shared: Option<bool>,
}

/// How much load leaves room: one of `room`, `in_flight` and `cpu`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Room {
    /// While a function says so that the service provides by this name.
    #[serde(default)]
    pub room: Option<String>,
    /// While fewer requests than this are being served.
    #[serde(default)]
    pub in_flight: Option<u64>,
    /// While this process uses less of the machine's processors than this percentage: `80%`.
    #[serde(default)]
    pub cpu: Option<Amount>,
}

deserialize_tables! {
    Case: "a table with `when` or `while`, and `limits`",
    Room: "a table such as { in_flight = 100 }"
}
