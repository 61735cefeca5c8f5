//! Connections: servers, clusters and sentinels, how they are found and what happens when they fail.

pub(crate) mod address;
pub(crate) mod backoff;
pub(crate) mod breaker;
pub(crate) mod certificates;
pub(crate) mod cluster;
pub(crate) mod epochs;
pub(crate) mod node;
mod relocate;
pub(crate) mod route;
#[cfg(feature = "tls")]
pub(crate) mod tls;
