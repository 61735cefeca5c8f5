//! Exchanges with a server: calls within the deadline, what becomes of those that are late, and settlements.

mod answer;
pub(crate) mod background;
pub(crate) mod batch;
pub(crate) mod beats;
pub(crate) mod call;
#[cfg(feature = "mastership")]
pub(crate) mod campaign;
pub(crate) mod cross_slot;
pub(crate) mod delivery;
mod evaluate;
pub(crate) mod future;
pub(crate) mod heartbeat;
pub(crate) mod request;
pub(crate) mod settle;
pub(crate) mod shared;
