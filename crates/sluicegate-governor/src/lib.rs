//! The governor crate's token bucket behind sluicegate's limits.
//!
//! [`Governor`] is a store that asks governor's GCRA whether a request is admitted. governor's own
//! tables grow with every key and have to be cleaned up by their user; this store keeps the state
//! itself, in a table of bounded size that tidies itself, and so can also charge several limits all or
//! none, look without spending, book ahead, and give back: all that governor has no words for.
//!
//! [`Around`] is for a governor limiter that you already have and that other code spends from, too. It
//! can do what that limiter can do.
//!
//! ```
//! use sluicegate_core::Limit;
//! use sluicegate_core::adapter::Charge;
//! use sluicegate_core::key::{KeyBuf, Part};
//! use sluicegate_core::store::Store;
//! use sluicegate_governor::Governor;
//!
//! let store = Governor::new();
//! let limit = Limit::per_second(50).burst(2);
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
//! # What governor can keep
//!
//! Plain token buckets whose tokens come at an interval of whole nanoseconds: fifty a second are one
//! each 20,000,000 ns; three a second are not one each 333,333,333 ns but a little less often, so
//! [`Store::check`](sluicegate_core::store::Store::check) refuses them, as it refuses bursts beyond 32 bits and
//! all other shapes. [`quota`] and [`limit`] translate between the two vocabularies.
//!
//! Where nothing ties you to governor, [`Memory`](sluicegate_core::Memory) keeps every limit, exactly, in
//! less room.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod around;
mod bucket;
mod clock;
mod quota;
mod store;
mod table;

pub use self::around::{Around, Check};
pub use self::quota::{limit, quota};
pub use self::store::Governor;
