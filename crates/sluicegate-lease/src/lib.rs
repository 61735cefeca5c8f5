//! Leased capacity: clients of a shared resource each get a fair part of it, for a time.
//!
//! A client asks a server for capacity, gets a part of what there is as a lease, and keeps to it by itself. So nobody
//! sends what would be refused. What capacity means is up to those who use it: requests a second, work in flight,
//! dollars a day. The design is that of [Doorman](https://github.com/youtube/doorman) (2016), with one difference in
//! kind: the sum of what clients may use is never more than the capacity. The [`pool`] says how.
//!
//! ```
//! use sluicegate_lease::client::{Action, OnLoss, Session};
//! use sluicegate_lease::{Amount, Pool, Template, Templates};
//!
//! // A server's part: 100 units of everything, divided fairly.
//! let mut pool = Pool::new(Templates::new([Template::new("*", Amount::units(100))])?);
//! pool.lead(0, 1, Some(Vec::new()));
//!
//! // A client's part: it wants 30 units, and uses nothing when it has lost its lease.
//! let mut session = Session::new("worker-1", 0, 7);
//! session.add("db", Amount::units(30), OnLoss::Stop);
//!
//! // What is sent between them, and how, is up to you.
//! let Action::Ask(request) = session.poll(0) else { panic!("it asks at once") };
//! let response = pool.answer(2, &request)?;
//! session.answered(5, &response);
//! assert_eq!(session.capacity(5, "db"), Amount::units(30));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The deciding parts have no clock, no runtime and no I/O: time is passed in, in milliseconds.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod amount;
pub mod client;
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
pub use sluicegate_core::adapter::ConfigError;

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
