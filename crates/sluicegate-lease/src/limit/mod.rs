//! A limit whose numbers follow a lease.
//!
//! A [`LeasedLimit`] is a limit and the store that decides by it. So everything that works with a limit works with a lease:
//! layers, queues, header fields, metrics, and pacing of outgoing requests.
//!
//! ```
//! use std::time::Duration;
//! use sluicegate::{Global, Limiter, RateLimitLayer, Rejection};
//! use sluicegate_lease::{Amount, LeasedLimit};
//!
//! let db = LeasedLimit::rate("db").build()?;
//!
//! // In front of a service, with a queue.
//! let layer = RateLimitLayer::new(db.limit().by(Global))
//!     .store(db.clone())
//!     .rejection(Rejection::queue(Duration::from_millis(200)));
//! // In code without HTTP.
//! let limiter = Limiter::new(db.limit()).store(db.clone());
//!
//! // Without a lease, nothing goes.
//! assert!(!limiter.take("").now()?.is_admitted());
//! // 36.5 a second, for a minute; then nothing.
//! db.grant(Amount::from_f64(36.5).unwrap(), Duration::from_secs(60), Amount::ZERO);
//! assert!(limiter.take("").now()?.is_admitted());
//! # let _ = layer;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it admits
//!
//! - **A rate:** in any interval no more than the integral of what was held during it, and the burst of what was held
//!   before. The burst is what flows in a period, at least one request, or a number that you give. A new limit begins
//!   with its burst. When a grant grows, what is left stays as it is and fills at the new rate; when it shrinks, no more
//!   than the new burst is left. What is spent under one grant counts under all later ones. A request in a queue counts
//!   from when its place is booked.
//! - **A gauge:** as many at a time as is held, rounded down; it asks for whole places. What is in use when a grant
//!   shrinks stays in use until it ends, and is [reported](LeasedLimit::outstanding) to the server, which does not give it
//!   to others before.
//! - **Nothing** once the lease has ended or was closed, unless the client is told to keep what it had or to use the safe
//!   capacity: see [`OnLoss`](crate::client::OnLoss). No place in a queue is booked beyond the end of a lease.
//!
//! All keys share the lease, so use [`Global`](sluicegate_core::Global). The limit of a client is another limit, in a
//! layer of its own or in a store [beside](LeasedBuilder::beside) this one.

mod build;
mod learned;
mod leased;
mod meter;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod wants;

pub use self::build::LeasedBuilder;
pub use self::leased::LeasedLimit;
pub use self::wants::Wants;

#[cfg(feature = "client")]
pub(crate) use self::leased::WeakLimit;
