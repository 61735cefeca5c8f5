//! The governor crate's token bucket behind sluicegate's limits.
//!
//! [`Governor`] is a store in which governor's GCRA decides each request. governor's own tables grow with every key, and
//! their user has to clean them up. This store keeps the state in a table of bounded size that removes idle keys by itself.
//! So it can also do what governor cannot: charge several limits all or none, peek, book ahead, and give back.
//!
//! [`Around`] wraps a governor limiter that you already have and that other code uses too. It can do what that limiter can
//! do.
//!
//! ```
//! use sluicegate_core::Limit;
//! use sluicegate_core::adapter::Charge;
//! use sluicegate_core::key::{KeyBuf, Part};
//! use sluicegate_core::store::Store;
//! use sluicegate_governor::Governor;
//!
//! let store = Governor::new();
//! let limit = Limit::per_minute(60).burst(2);
//! assert!(store.check(&limit).is_ok());
//!
//! let mut key = KeyBuf::new();
//! "alice".write(&mut key);
//! let charge = Charge::of(limit, key, 1);
//! assert!(store.take(&charge).now()?.is_admitted());
//! assert!(store.take(&charge).now()?.is_admitted());
//! assert!(!store.take(&charge).now()?.is_admitted());
//! # Ok::<(), sluicegate_core::store::StoreError>(())
//! ```
//!
//! # Supported limits
//!
//! Plain token buckets whose tokens come at an interval of whole nanoseconds. Fifty a second are one each 20,000,000 ns.
//! Three a second have no such interval: one each 333,333,333 ns would be a little too many. So
//! [`Store::check`](sluicegate_core::store::Store::check) rejects them, as well as bursts beyond 32 bits and all other
//! algorithms. [`quota`] and [`limit`] convert between a limit and a governor quota.
//!
//! If you do not need governor, use [`Memory`](sluicegate_core::Memory): it keeps every limit, exactly, in less space.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod around;
mod bucket;
mod quota;
mod store;
mod table;

pub use self::around::{Around, Check};
pub use self::quota::{limit, quota};
pub use self::store::Governor;
