//! The client: a task that renews leases, and handles that say what may be used.

mod client;
mod handle;
#[cfg(test)]
mod limit_tests;
mod shared;
mod task;
#[cfg(test)]
mod tests;
mod transport;

pub use self::client::{LeaseBuilder, LeaseClient, LeaseClientBuilder};
pub use self::handle::{Lease, LeaseClientClosed};
pub use self::shared::{Basis, LeaseState};
pub use self::transport::{InProcess, Transport, TransportError};

#[cfg(feature = "grpc")]
pub(crate) use self::transport::{Clock, Flight, arrival};
