//! Overload protection: a queue that knows what requests cost and which of them matter.
//!
//! A rate limit protects a server from each client; a throttle protects the server itself. Requests enter a queue that
//! is bounded in cost and is drained at the server's capacity. When the queue is full, a request evicts less critical
//! ones or is refused at once, so the server keeps doing useful work under any load.
//!
//! ```
//! # #[cfg(feature = "tower")] {
//! use std::time::Duration;
//! use sluicegate_throttle::Throttle;
//!
//! // All processors that handlers can use, and a queue in which nobody waits for much longer than a fifth of a second.
//! let throttle = Throttle::builder().cpu(1.0).queue(Duration::from_millis(200)).build()?;
//! let layer = throttle.layer();
//! # let _ = layer;
//! # }
//! # Ok::<(), sluicegate_throttle::ConfigError>(())
//! ```
//!
//! The deciding parts, [`scheduler`], [`predict`] and [`adaptive`], have no clock, no runtime and no I/O.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod adaptive;
pub mod announce;
mod class;
mod error;
pub mod grpc_timeout;
#[cfg(feature = "_layer")]
#[cfg_attr(
    not(any(feature = "tower", feature = "actix")),
    expect(dead_code, reason = "there is no framework that uses it")
)]
pub mod layer;
pub mod predict;
pub mod scheduler;
mod table;

pub use self::class::{Class, Classes};
pub use self::error::{ConfigError, MAX_CLASSES, MAX_PARTITIONS};
#[cfg(feature = "_layer")]
pub use self::layer::{Throttle, ThrottleLayer};

#[cfg(all(doctest, feature = "tower"))]
#[doc = include_str!("../README.md")]
struct Readme;
