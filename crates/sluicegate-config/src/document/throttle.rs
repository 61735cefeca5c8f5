#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;

use super::shaped::deserialize_tables;
use super::throttle_parts::{
    Adaptive, ClassCase, ClassHeader, Codel, Deadline, Partition, QueueBound, ReportedCost,
    WhenShed,
};
use super::{Amount, Condition, HoldUntil, Key};

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
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// What drains the queue.
    pub(crate) capacity: Capacity,
    /// What the queue holds: what the capacity does in a time, such as `"200 ms"`, or a cost, `{ cost = 1000 }`.
    pub(crate) queue: QueueBound,
    /// The cost of the dearest request. A queue that does not hold it is an error.
    #[serde(default)]
    pub(crate) dearest: Option<u64>,
    /// The names of the classes of criticality, the most critical first: at most 8. The default is `CRITICAL_PLUS`,
    /// `CRITICAL`, `SHEDDABLE_PLUS` and `SHEDDABLE`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 8)))]
    pub(crate) classes: Option<Vec<String>>,
    /// The share of each class while all of them wait, the most critical class first. Without weights, a class is served
    /// only while no higher class waits.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(inner(range(min = 1))))]
    pub(crate) weights: Option<Vec<u32>>,
    /// A header that names the class, believed in requests from named peers only. It goes before `class`.
    #[serde(default)]
    pub(crate) class_header: Option<ClassHeader>,
    /// The class of some requests: the first condition that holds decides.
    #[serde(default)]
    pub(crate) class: Vec<ClassCase>,
    /// The class of all other requests. The default is the lowest class.
    #[serde(default)]
    pub(crate) default_class: Option<String>,
    /// Requests with the same key are expected to cost the same. The default is `["method", "route"]`. Use a key that
    /// clients cannot choose freely.
    #[serde(default)]
    pub(crate) predict_by: Option<Key>,
    /// The expected cost of the very first requests. The default is 1000, which is a millisecond where time is measured.
    /// A change takes effect when the service starts again.
    #[serde(default)]
    pub(crate) first_cost: Option<u64>,
    /// What a cost that a handler reports means where time is measured. The default is `instead`.
    #[serde(default)]
    pub(crate) reported_cost: Option<ReportedCost>,
    /// Requests of one class are served fairly between the values of this key, such as the customer.
    #[serde(default)]
    pub(crate) fair_by: Option<Key>,
    /// Serves a flow's freshest request first while its oldest has waited for longer than this, such as `"50 ms"`. By
    /// default, the oldest is always served first.
    #[serde(default)]
    pub(crate) freshest_when_late: Option<String>,
    /// Drops requests that waited for too long while the queue stood. Off by default.
    #[serde(default)]
    pub(crate) codel: Option<Codel>,
    /// How long clients wait: a time such as `"1 second"`, or `{ header = "x-deadline-ms" }`, or `{ grpc = true }`.
    /// Requests that cannot be finished in time are shed.
    #[serde(default)]
    pub(crate) deadline: Option<Deadline>,
    /// Parts of the work in flight with guaranteed shares, which others borrow while they are idle. At most 8.
    #[serde(default)]
    pub(crate) partitions: Vec<Partition>,
    /// Requests that pass at once and uncounted, such as health checks.
    #[serde(default)]
    pub(crate) exempt: Option<Condition>,
    /// What happens to requests that are shed. The default is `block`: 503. A change takes effect when the service
    /// starts again.
    #[serde(default)]
    pub(crate) when_shed: Option<WhenShed>,
    /// Until when a request counts as running: until the response's body has ended (`end`, the default), or until its
    /// head is there (`head`). A change takes effect when the service starts again.
    #[serde(default)]
    pub(crate) hold_until: Option<HoldUntil>,
    /// Adds the level of admission to every response, as the field `sluicegate-admission`. A change takes effect when
    /// the service starts again.
    #[serde(default)]
    pub(crate) announce: bool,
}

/// What drains the queue: exactly one of these.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Capacity {
    /// This many requests are started in each second, evenly spaced.
    #[serde(default)]
    pub(crate) requests_per_second: Option<u64>,
    /// Requests of this total cost are started in each second, in the unit that handlers report.
    #[serde(default)]
    pub(crate) cost_per_second: Option<u64>,
    /// Requests are started that need this share of the processors, such as `"80%"`. The cost of a request is the time
    /// that its handler and its body are polled, in microseconds.
    #[serde(default)]
    pub(crate) cpu: Option<Amount>,
    /// This many requests run at once.
    #[serde(default)]
    pub(crate) in_flight: Option<u64>,
    /// As many requests run at once as the service turns out to be able to serve, such as `{}` or `{ max = 500 }`.
    #[serde(default)]
    pub(crate) adaptive: Option<Adaptive>,
}

deserialize_tables! {
    Throttle: "a table with `capacity` and `queue`",
    Capacity: "a table such as { cpu = \"80%\" } or { in_flight = 100 }"
}
