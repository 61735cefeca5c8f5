//! Leased capacity: clients of a shared resource each get a fair part of it, for a time.
//!
//! A client asks a server for capacity, gets a part of what there is as a lease, and keeps to it by itself. So nobody
//! sends what would be refused. What capacity means is up to those who use it: requests a second, work in flight,
//! dollars a day. The design is that of [Doorman](https://github.com/youtube/doorman) (2016), with one difference in
//! kind: the sum of what clients may use is never more than the capacity. The [`pool`] says how.
//!
//! The deciding parts have no clock, no runtime and no I/O: time is passed in, in milliseconds.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod amount;
pub mod client;
mod config_error;
#[cfg(feature = "etcd")]
#[cfg_attr(docsrs, doc(cfg(feature = "etcd")))]
pub mod etcd;
pub mod fair;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "client")]
mod lease;
pub mod limit;
pub mod message;
pub mod pool;
mod server;
mod template;

pub use self::amount::Amount;
pub use self::config_error::ConfigError;
pub use self::fair::{Band, Demand};
#[cfg(feature = "grpc")]
#[cfg_attr(docsrs, doc(cfg(feature = "grpc")))]
pub use self::grpc::{
    AlwaysMaster, CAPACITY_DESCRIPTORS, Call, CapacityService, CapacityServiceBuilder,
    GrpcTransport, Mastership, Role, candidate_problem,
};
#[cfg(feature = "client")]
#[cfg_attr(docsrs, doc(cfg(feature = "client")))]
pub use self::lease::{
    Basis, InProcess, Lease, LeaseBuilder, LeaseClient, LeaseClientBuilder, LeaseClientClosed,
    LeaseState, Transport, TransportError,
};
pub use self::limit::{LeasedLimit, Wants};
pub use self::pool::Pool;
pub use self::server::Server;
pub use self::template::{Algorithm, Source, Template, Templates};

#[cfg(all(doctest, feature = "grpc"))]
#[doc = include_str!("../README.md")]
struct Readme;

// The simulation names this crate as a program would.
#[cfg(test)]
extern crate self as sluicegate_lease;

#[cfg(test)]
#[path = "../tests/simulation/mod.rs"]
mod simulation;

#[cfg(test)]
#[path = "../tests/model/mod.rs"]
mod model;
