//! Requests wait for their turn by limits of this program's own.
//!
//! A [`Pacer`] has the limits, the store that counts, and how a caller waits: until it is admitted, at most so long, or
//! not at all. [`PaceLayer`] is the same as a layer, by any key of the request. Any store will do: with
//! `sluicegate_redis::Redis`, all processes share one outgoing quota; with `Leased`, or a
//! [`Share`](sluicegate::store::Share), without a round trip.
//!
//! A caller books its place up to a [second](Pacer::look_again) ahead, so callers leave in order of arrival, spread as
//! the limit says. One that has longer to wait looks at the limit again each second: limits may
//! [change](Pacer::set_limits), and so may the part of a fleet's limit. Cancelling gives the place back.
//!
//! ```
//! use std::time::Duration;
//! use sluicegate::Limit;
//! use sluicegate_client::pace::{Patience, Pacer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Ten a second, one after the other.
//! let patience = Patience::AtMost(Duration::from_secs(5));
//! let pacer = Pacer::new(Limit::per_second(10).burst(1)).patience(patience);
//!
//! pacer.turn("api.example").await?; // at once
//! drop(pacer.turn("api.example")); // gives its place back
//! pacer.turn("api.example").await?; // after 100 ms
//! # Ok(())
//! # }
//! ```

mod decide;
mod layer;
mod pacer;
mod service;
#[cfg(test)]
mod tests;
mod turn;

pub use self::decide::Patience;
pub use self::layer::PaceLayer;
pub use self::pacer::Pacer;
pub use self::turn::{PaceError, Turn};
