//! Stores: where counts are kept.
//!
//! [`Memory`] keeps them in this process and is the default. `sluicegate-redis` and `sluicegate-governor` have
//! stores of their own. [`Fallback`] asks a second store when the first one fails, [`Share`] takes a part of every
//! limit, and [`LiveShare`] one that follows the [`Members`] of a fleet. [`Store`] is the trait behind them.
//!
//! ```
//! use sluicegate::{Limit, Limiter, Memory};
//!
//! let limiter = Limiter::new(Limit::per_minute(100)).store(Memory::with_capacity(50_000));
//! # let _ = limiter;
//! ```

mod answer;
mod blocks;
mod boxed;
pub(crate) mod charge;
mod contract;
mod error;
mod fallback;
pub(crate) mod members;
pub(crate) mod memory;
mod on_error;
pub(crate) mod set_spent;
mod share;

pub(crate) use self::answer::Never;
pub use self::answer::{Answer, AtOnce};
pub use self::blocks::{Blocks, BlocksFuture};
pub use self::boxed::{BoxStore, BoxStoreFuture};
pub use self::contract::Store;
pub use self::error::StoreError;
pub use self::fallback::{Fallback, FallbackFuture};
pub use self::members::{Members, Want, fair_parts};
pub use self::memory::{Memory, MemoryBuilder};
pub use self::on_error::OnStoreError;
pub use self::share::{LiveShare, Share, ShareFuture};
pub use crate::admission::paid::Ticket;
