//! The client: a task that renews leases, and handles that say what may be used.

mod client;
mod clock;
mod flight;
mod handle;
mod in_process;
#[cfg(test)]
mod limit_tests;
mod shared;
mod state;
mod task;
#[cfg(test)]
mod tests;
mod transport;

pub use self::client::{LeaseBuilder, LeaseClient, LeaseClientBuilder, LeaseError};
pub use self::handle::{Lease, LeaseClientClosed};
pub use self::in_process::InProcess;
pub use self::state::{Basis, LeaseState};
pub use self::transport::{Transport, TransportError};

#[cfg(feature = "grpc")]
pub(crate) use self::clock::Clock;
#[cfg(feature = "grpc")]
pub(crate) use self::flight::{Flight, arrival};
