//! What the dashboard and `sluicegate top` show: rates, refused keys, latency, the store, the policies in force.
//!
//! [`Status`] is the document of `GET /v1/status` on the admin port. Requests pay for it with one sampled measurement
//! of time and one addition: everything else is read from counters that exist for metrics, once a second.

mod capacity;
mod dashboard;
mod document;
mod history;
mod latency;
mod numbers;
mod peaks;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use self::capacity::leased;
pub use self::capacity::{Capacity, Client, Member, Resource};
pub(crate) use self::dashboard::Dashboard;
pub use self::document::{
    FailedCalls, Keys, PendingStatus, PolicyStatus, Rate, Refused, RefusedBy, Status,
};
pub use self::latency::LatencyStatus;
pub(crate) use self::latency::{Latency, RequestOutcome, Timing};
pub use self::peaks::PeaksStatus;
pub(crate) use self::store::Source;
pub use self::store::StoreStatus;
