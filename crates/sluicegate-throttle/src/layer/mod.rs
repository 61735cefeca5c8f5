//! The layer for services: of tower, axum (feature `axum`) and actix-web (feature `actix`).
//!
//! ```
//! use std::convert::Infallible;
//! use std::time::Duration;
//! use http::{Request, Response};
//! use sluicegate::Header;
//! use sluicegate::key::Path;
//! use sluicegate_throttle::layer::class_when;
//! use sluicegate_throttle::{Class, Throttle};
//! use tower::{Service, ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let throttle = Throttle::builder().in_flight(100).queue(Duration::from_millis(200)).build()?;
//! let layer = throttle
//!     .layer()
//!     .criticality(class_when(Path.matches("/checkout"), Class::CRITICAL_PLUS))
//!     .fair_by(Header("x-customer"))
//!     .deadline(Duration::from_secs(1))
//!     .exempt(Path.matches("/health"));
//!
//! let mut service = ServiceBuilder::new().layer(layer).service_fn(|_: Request<String>| async {
//!     Ok::<_, Infallible>(Response::new(String::from("hello")))
//! });
//! let response = service.ready().await?.call(Request::new(String::new())).await?;
//! assert_eq!(response.status(), 200);
//! assert_eq!(throttle.snapshot().counts.started, 1);
//! # Ok(())
//! # }
//! ```

mod accuracy;
#[cfg(feature = "actix")]
mod actix;
mod announcing;
#[cfg(feature = "tower")]
mod body;
mod change;
mod criticality;
mod deadline;
#[cfg(feature = "tower")]
mod future;
mod guard;
mod has_room;
mod in_service;
mod look;
#[cfg(all(test, loom))]
mod loom;
mod meter;
mod names;
mod observing;
mod partition;
#[cfg(feature = "metrics")]
mod record;
mod refusal;
mod report;
mod requests;
#[cfg(feature = "tower")]
mod servers;
#[cfg(feature = "tower")]
mod service;
mod settings;
mod shared;
mod snapshot;
mod stopwatch;
mod sync;
mod throttle;
mod throttle_layer;
mod unit;
mod waiter;
mod when_shed;

#[cfg(feature = "actix")]
pub use self::actix::{ActixBody, ActixFuture, ActixService};
#[cfg(feature = "tower")]
pub use self::body::Body;
pub use self::criticality::{
    ClassFn, ClassHeader, ClassWhen, Criticality, Unreadable, class_fn, class_when,
};
pub use self::deadline::{Deadline, DeadlineHeader, GrpcTimeout, NoDeadline};
#[cfg(feature = "tower")]
pub use self::future::{HttpResponse, ResponseFuture};
pub use self::guard::Guard;
pub use self::has_room::HasRoom;
pub use self::partition::{NoPartition, Partition, PartitionBy, PartitionWhen, partition_when};
pub use self::requests::{Describe, Described, Nothing, Requests};
#[cfg(feature = "tower")]
pub use self::servers::Servers;
#[cfg(feature = "tower")]
pub use self::service::ThrottleService;
pub use self::settings::HoldUntil;
pub use self::snapshot::{
    ClassSnapshot, FlowSnapshot, KeySnapshot, PartitionSnapshot, Snapshot, UnreadCounts,
};
pub use self::throttle::{Throttle, ThrottleBuilder};
pub use self::throttle_layer::ThrottleLayer;
pub use self::unit::Reported;
pub use self::when_shed::WhenShed;
