//! Capacity that clients share: how much there is, who draws on it, and the pool that divides it.
//!
//! A file says what there is to share: [`Capacities::read`] shows one. One [`Pool`](sluicegate_lease::Pool) divides it
//! among all clients, whatever they speak. [`Shared`] has it, by [`Service::capacity`](crate::Service::capacity):
//! [`Shared::leases`] is the gRPC service for clients of leases, and [`Shared::with`] gives other rooms the same pool,
//! with its time. Each of their clients needs a name in the pool that no other has.

mod callers;
mod file;
mod plan;
mod shared;

pub use self::plan::{BucketId, Capacities, Capacity, Client, Draw, Source, Value};
pub use self::shared::Shared;
