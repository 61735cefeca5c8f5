//! Exchanges with a server: calls within the deadline, what becomes of those that are late, and settlements.

pub(crate) mod call;
pub(crate) mod cross_slot;
mod evaluate;
pub(crate) mod heartbeat;
pub(crate) mod request;
pub(crate) mod settle;
pub(crate) mod shared;
