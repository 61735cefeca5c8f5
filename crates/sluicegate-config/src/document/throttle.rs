#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess};

use super::shape::{
    Amount, Shaped, deserialize_shaped, deserialize_tables, deserialize_texts_or_tables,
};
use super::{Condition, HoldUntil, Key, Redirect};
use crate::source::DocumentPath;

/// Overload protection: a queue in front of the service that is bounded in cost and drained at the service's capacity.
/// Needs the feature `throttle`.
///
/// The numbers of a throttle change with the file while requests wait and run. Its kind of capacity, its classes and the
/// names of its partitions cannot: a file that changes them is refused while the service runs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Throttle {
    /// The name in metrics, events and snapshots. The default is `throttle`.
    pub(crate) name: Option<String>,
    /// What drains the queue.
    pub(crate) capacity: Capacity,
    /// What the queue holds: what the capacity does in a time, such as `"200 ms"`, or a cost, `{ cost = 1000 }`.
    pub(crate) queue: QueueBound,
    /// The cost of the dearest request. A queue that does not hold it is an error.
    pub(crate) dearest: Option<u64>,
    /// The names of the classes of criticality, the most critical first: at most 8. The default is `CRITICAL_PLUS`,
    /// `CRITICAL`, `SHEDDABLE_PLUS` and `SHEDDABLE`.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 8)))]
    pub(crate) classes: Option<Vec<String>>,
    /// The share of each class while all of them wait, the most critical class first. Without weights, a class is served
    /// only while no higher class waits.
    #[cfg_attr(feature = "schema", schemars(inner(range(min = 1))))]
    pub(crate) weights: Option<Vec<u32>>,
    /// A header that names the class, believed in requests from named peers only. It goes before `class`.
    pub(crate) class_header: Option<ClassHeader>,
    /// The class of some requests: the first condition that holds decides. A request whose path can be read in several ways,
    /// or that has a header twice, is never more critical than a class that one of them has.
    #[serde(default)]
    pub(crate) class: Vec<ClassCase>,
    /// The class of all other requests. The default is the lowest class.
    pub(crate) default_class: Option<String>,
    /// Requests with the same key are expected to cost the same. The default is `["method", "route"]`, and `"method"` for
    /// `sluicegate proxy`, which knows no routes. Use a key that clients cannot choose freely.
    pub(crate) predict_by: Option<Key>,
    /// The expected cost of the very first requests. The default is 1000, which is a millisecond where time is measured.
    /// A change takes effect when the service starts again.
    pub(crate) first_cost: Option<u64>,
    /// What a cost that a handler reports means where time is measured. The default is `instead`. `sluicegate proxy` sees no
    /// such cost.
    pub(crate) reported_cost: Option<ReportedCost>,
    /// Requests of one class are served fairly between the values of this key, such as the customer.
    pub(crate) fair_by: Option<Key>,
    /// Serves a flow's freshest request first while its oldest has waited for longer than this, such as `"50 ms"`. By
    /// default, the oldest is always served first.
    pub(crate) freshest_when_late: Option<String>,
    /// Drops requests that waited for too long while the queue stood. Off by default.
    pub(crate) codel: Option<Codel>,
    /// How long clients wait: a time such as `"1 second"`, or `{ header = "x-deadline-ms" }`, or `{ grpc = true }`.
    /// Requests that cannot be finished in time are shed.
    pub(crate) deadline: Option<Deadline>,
    /// Parts of the work in flight with guaranteed shares, which others borrow while they are idle. At most 8.
    #[serde(default)]
    pub(crate) partitions: Vec<Partition>,
    /// Requests that pass at once and uncounted, such as health checks.
    pub(crate) exempt: Option<Condition>,
    /// What happens to requests that are shed. The default is `block`: 503. A change takes effect when the service
    /// starts again.
    pub(crate) when_shed: Option<WhenShed>,
    /// Until when a request counts as running: until the response's body has ended (`end`, the default), or until its
    /// head is there (`head`). A change takes effect when the service starts again.
    pub(crate) hold_until: Option<HoldUntil>,
    /// Adds the level of admission to every response, as the field `sluicegate-admission`. A change takes effect when
    /// the service starts again.
    #[serde(default)]
    pub(crate) announce: bool,
}

impl Throttle {
    /// Calls `each` with every condition.
    pub(crate) fn each_condition(
        &self,
        path: &DocumentPath<'_>,
        each: &mut dyn FnMut(&Condition, &DocumentPath<'_>),
    ) {
        if let Some(exempt) = &self.exempt {
            exempt.each(&path.name("exempt"), each);
        }
        let class = path.name("class");
        for (i, case) in self.class.iter().enumerate() {
            case.when.each(&class.index(i).name("when"), each);
        }
        let partitions = path.name("partitions");
        for (i, partition) in self.partitions.iter().enumerate() {
            partition.when.each(&partitions.index(i).name("when"), each);
        }
    }
}

/// What drains the queue: exactly one of these.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Capacity {
    /// This many requests are started in each second, evenly spaced.
    pub(crate) requests_per_second: Option<u64>,
    /// Requests of this total cost are started in each second, in the unit that handlers report. `sluicegate proxy` sees no
    /// such cost.
    pub(crate) cost_per_second: Option<u64>,
    /// Requests are started that need this share of the processors, such as `"80%"`. The cost of a request is the time
    /// that its handler and its body are polled, in microseconds.
    pub(crate) cpu: Option<Amount>,
    /// This many requests run at once.
    pub(crate) in_flight: Option<u64>,
    /// As many requests run at once as the service turns out to be able to serve, such as `{}` or `{ max = 500 }`.
    pub(crate) adaptive: Option<Adaptive>,
}

/// Bounds of a limit of work in flight that is learnt.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Adaptive {
    /// The limit at the start. The default is 20.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(crate) start: Option<u64>,
    /// The lowest limit. The default is 2.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(crate) min: Option<u64>,
    /// The highest limit. The default is 1000.
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
    pub(crate) header: Option<String>,
    /// Whether to read `grpc-timeout`, which clients of gRPC send.
    #[serde(default)]
    pub(crate) grpc: bool,
    /// The time for requests that do not say it, or say it in a way that cannot be read. The default is no deadline.
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

deserialize_texts_or_tables! {
    QueueBound: "a time such as \"200 ms\", or { cost = 1000 }", Time, Cost(QueueCost);
    Deadline: "a time such as \"1 second\", or { header = \"x-deadline-ms\" }, or { grpc = true }",
        Time, Table(DeadlineTable);
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
        let spec = ShedTable::deserialize(MapAccessDeserializer::new(table))?;
        match spec {
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

deserialize_shaped!(WhenShed);

deserialize_tables! {
    Throttle: "a table with `capacity` and `queue`",
    Capacity: "a table such as { cpu = \"80%\" } or { in_flight = 100 }",
    Adaptive: "a table such as {} or { max = 500 }",
    ClassHeader: "a table such as { header = \"x-criticality\", trusted = [\"10.0.0.0/8\"] }",
    ClassCase: "a table such as { name = \"CRITICAL\", when = { path = \"/checkout\" } }",
    Codel: "a table such as { target = \"5 ms\", interval = \"100 ms\" }",
    Partition: "a table such as { name = \"checkout\", share = \"30%\", when = { path = \"/checkout\" } }"
}
