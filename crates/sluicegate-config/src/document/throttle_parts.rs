#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess};

use super::shaped::{Shaped, deserialize_shaped, deserialize_tables};
use super::{Amount, Condition, Redirect};

/// Bounds of a limit of work in flight that is learnt.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Adaptive {
    /// The limit at the start. The default is 20.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(crate) start: Option<u64>,
    /// The lowest limit. The default is 2.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(crate) min: Option<u64>,
    /// The highest limit. The default is 1000.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(crate) max: Option<u64>,
}

/// What a queue holds.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub(crate) enum QueueBound {
    /// What the capacity does in this time, such as `200 ms`.
    Time(String),
    /// A cost.
    Cost(QueueCost),
}

/// What a queue holds, as a cost.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueCost {
    /// The total cost of queued requests.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(crate) cost: u64,
}

/// A header that names the class of a request.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct ClassHeader {
    /// The name of the header, such as `x-criticality`.
    pub(crate) header: String,
    /// Addresses and networks of the peers that are believed, such as `10.0.0.0/8`. A client that may state its
    /// criticality states the highest.
    pub(crate) trusted: Vec<String>,
}

/// The class of the requests for which a condition holds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct ClassCase {
    /// The name of the class.
    pub(crate) name: String,
    /// The requests.
    pub(crate) when: Condition,
}

/// What a cost that a handler reports means where time is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReportedCost {
    /// It is the cost, and the measured time is not counted.
    Instead,
    /// It is added to the measured time.
    OnTop,
}

/// Drops requests that waited for more than twice the target, after an interval in which every request of their class
/// waited for longer than the target.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Codel {
    /// The wait that is good enough, such as `5 ms`.
    pub(crate) target: String,
    /// The time over which waits are looked at, such as `100 ms`: at least the target.
    pub(crate) interval: String,
}

/// How long clients wait for a response.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub(crate) enum Deadline {
    /// One time for all requests, such as `1 second`.
    Time(String),
    /// What the request says.
    Table(DeadlineTable),
}

/// How long clients wait, as requests say: either `header` or `grpc`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct DeadlineTable {
    /// The name of a header with whole milliseconds, such as `x-deadline-ms`.
    #[serde(default)]
    pub(crate) header: Option<String>,
    /// Whether to read `grpc-timeout`, which clients of gRPC send.
    #[serde(default)]
    pub(crate) grpc: bool,
    /// The time for requests that do not say it, or say it in a way that cannot be read. The default is no deadline.
    #[serde(default)]
    pub(crate) otherwise: Option<String>,
}

/// A part of the work in flight with a guaranteed share.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Partition {
    /// The name: unique.
    pub(crate) name: String,
    /// The share of the work in flight, such as `"30%"`. All shares together are at most 100 %.
    pub(crate) share: Amount,
    /// The requests of the partition. A request belongs to the first partition whose condition holds.
    pub(crate) when: Condition,
}

/// What happens to requests that are shed.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "lowercase"))]
pub(crate) enum WhenShed {
    /// They are refused: `503 Service Unavailable`.
    Block,
    /// They are redirected.
    #[cfg_attr(feature = "schema", schemars(untagged))]
    Redirect(Redirect),
    /// They are served with a mark, so that the handler can serve less.
    #[cfg_attr(feature = "schema", schemars(untagged))]
    Degrade(Degrade),
}

/// Serves requests that are shed with a mark.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Degrade {
    /// How many such requests are served at once. Others are refused.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(crate) degrade: u64,
}

impl<'de> Shaped<'de> for QueueBound {
    const EXPECTED: &'static str = "a time such as \"200 ms\", or { cost = 1000 }";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(Self::Time(text.to_owned()))
    }

    fn table<A: MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
        QueueCost::deserialize(MapAccessDeserializer::new(table)).map(Self::Cost)
    }
}

impl<'de> Shaped<'de> for Deadline {
    const EXPECTED: &'static str =
        "a time such as \"1 second\", or { header = \"x-deadline-ms\" }, or { grpc = true }";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(Self::Time(text.to_owned()))
    }

    fn table<A: MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
        DeadlineTable::deserialize(MapAccessDeserializer::new(table)).map(Self::Table)
    }
}

impl<'de> Shaped<'de> for WhenShed {
    const EXPECTED: &'static str =
        "\"block\", { redirect = \"https://busy.example.com/\" } or { degrade = 1000 }";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        match text {
            "block" => Ok(Self::Block),
            _ => Err(E::unknown_variant(text, &["block"])),
        }
    }

    fn table<A: MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
        let said = ShedTable::deserialize(MapAccessDeserializer::new(table))?;
        match said {
            ShedTable { redirect: Some(redirect), status, degrade: None } => {
                Ok(Self::Redirect(Redirect { redirect, status }))
            }
            ShedTable { redirect: None, status: None, degrade: Some(degrade) } => {
                Ok(Self::Degrade(Degrade { degrade }))
            }
            _ => Err(A::Error::custom(format_args!("expected {}", Self::EXPECTED))),
        }
    }
}

/// Both tables of [`WhenShed`], to tell them apart.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShedTable {
    redirect: Option<String>,
    status: Option<u16>,
    degrade: Option<u64>,
}

deserialize_shaped!(QueueBound, Deadline, WhenShed);

deserialize_tables! {
    Adaptive: "a table such as {} or { max = 500 }",
    ClassHeader: "a table such as { header = \"x-criticality\", trusted = [\"10.0.0.0/8\"] }",
    ClassCase: "a table such as { name = \"CRITICAL\", when = { path = \"/checkout\" } }",
    Codel: "a table such as { target = \"5 ms\", interval = \"100 ms\" }",
    Partition: "a table such as { name = \"checkout\", share = \"30%\", when = { path = \"/checkout\" } }"
}
