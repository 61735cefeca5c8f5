//! The command `sluicegate serve` in processes of its own: one server, or several of which one divides the capacity.

mod balancer;
mod cluster;
mod sluicegate;

use std::time::Duration;

pub use self::balancer::Balancer;
pub use self::cluster::{Cluster, DESCRIPTORS};
pub use self::sluicegate::Sluicegate;

/// Longer than anything takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
