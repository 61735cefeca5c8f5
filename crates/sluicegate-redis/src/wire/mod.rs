//! Connections: servers, clusters and sentinels, how they are found and what happens when they fail.
//!
//! The connections are held here, and not by the `ConnectionManager` or the asynchronous cluster of the
//! `redis` crate. The protocol, TLS and the multiplexed connection are that crate's. But its manager lets
//! every request wait for the connection that is being made, through all its attempts; it keeps a
//! connection that went silent until the system gives it up after many minutes; and it stays with a master
//! that became a replica. Its cluster sends a request again after the connection broke, which is wrong for
//! a charge, and has one task for all nodes. Here, a node is idle, dialling or up. A request that needs a
//! connection waits for the first attempt, within the deadline, and for no later one. Each node of a
//! cluster has its own connection and breaker, and one task at a time looks up who serves which slot. No
//! type of the `redis` crate is in a public signature, so its next major version does not force one here.

pub(crate) mod address;
pub(crate) mod cluster;
pub(crate) mod epochs;
pub(crate) mod node;
pub(crate) mod route;
#[cfg(feature = "tls")]
pub(crate) mod tls;

use std::fmt;

/// Certificates given by the operator, instead of those of the system.
#[derive(Clone, Default)]
pub(crate) struct Certificates {
    #[cfg(feature = "tls")]
    pub(crate) authorities: Option<Vec<u8>>,
    /// The client's own certificate and its key.
    #[cfg(feature = "tls")]
    pub(crate) own: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether the server's certificate may be for another host.
    #[cfg(feature = "tls")]
    pub(crate) any_host: bool,
}

/// Hides the key.
impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificates")
    }
}
