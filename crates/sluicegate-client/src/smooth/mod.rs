//! Spreads requests over time, where a limit alone would let them go in bursts.
//!
//! | method | for |
//! | --- | --- |
//! | [`Stored::bursty`] | a steady rate; what was not used is stored for some seconds. Guava's `SmoothBursty` |
//! | [`Stored::warming_up`] | the same, with a server that is slow when it is cold. Guava's `SmoothWarmingUp` |
//! | [`Spread`] | a server with a fixed window, of which a client would use everything in its first milliseconds |
//! | [`Refilled`] | a semaphore that is refilled each period |
//! | [`Pacer`](crate::pace::Pacer) with a `burst(1)` | one request after the other, exactly |
//!
//! The methods are told the time, and say how long to wait. [`Gate`] waits, and [`SmoothLayer`] lets requests wait. They work in floating point, as Guava does, so
//! they are no limits to rely on: behind them, a [`Limit`](sluicegate::Limit) is exact.
//!
//! ```
//! use std::time::Duration;
//! use sluicegate_client::smooth::{Gate, Stored};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gate = Gate::new(Stored::bursty(100.0, Duration::from_secs(1))?);
//! gate.acquire(5).await; // at once: the next one pays
//! let waited = gate.acquire(1).await;
//! assert!(waited <= Duration::from_millis(50));
//! # Ok(())
//! # }
//! ```

mod gate;
mod layer;
mod line;
mod refilled;
mod service;
mod spread;
mod stored;

pub use self::gate::{Gate, Reserve};
pub use self::layer::{SmoothBuilder, SmoothLayer};
pub use self::refilled::Refilled;
pub use self::spread::Spread;
pub use self::stored::Stored;
