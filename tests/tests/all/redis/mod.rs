//! The store on real servers: one server, a cluster, a replica that is promoted; killed, stopped, restarted, full.

mod away;
mod cluster;
mod conformance;
mod counting;
mod failover;
mod fleet;
mod floods;
mod lease_masters;
mod leased;
mod load;
mod mastership;
mod pacing;
mod places;
mod policies;
mod random;
mod refusing;
mod rights;
mod rows;
mod servers;
mod store;
mod time;
mod tls;
mod together;
mod wire;
mod worker;

use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
