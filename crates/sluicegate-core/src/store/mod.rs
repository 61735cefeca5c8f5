//! Stores: where counts are kept.
//!
//! [`Memory`] keeps them in this process and is the default. `sluicegate-redis` and `sluicegate-governor` have
//! stores of their own. [`Fallback`] asks a second store when the first one fails, and [`Share`] takes the part
//! of every limit that a [`Fleet`] leaves to this process. [`Store`] is the trait behind them.
//!
//! ```
//! use sluicegate::{Limit, Limiter, Memory};
//!
//! let limiter = Limiter::new(Limit::per_minute(100)).store(Memory::with_capacity(50_000));
//! # let _ = limiter;
//! ```

mod answer;
pub(crate) mod background;
mod blocks;
mod boxed;
pub(crate) mod breaker;
pub(crate) mod charge;
mod contract;
mod error;
mod fallback;
pub(crate) mod fleet;
pub(crate) mod memory;
pub(crate) mod set_spent;
mod share;

pub(crate) use self::answer::Never;
pub use self::answer::{Answer, AtOnce};
pub use self::blocks::{Blocks, BlocksFuture};
pub use self::boxed::{BoxStore, BoxStoreFuture};
pub use self::contract::Store;
pub use self::error::{OnStoreError, StoreError};
pub use self::fallback::{Fallback, FallbackFuture};
pub use self::fleet::{Fleet, Membership, Want, fair_parts};
pub use self::memory::{Memory, MemoryBuilder};
pub use self::share::{PartStore, Share};
pub use crate::admission::paid::Ticket;
