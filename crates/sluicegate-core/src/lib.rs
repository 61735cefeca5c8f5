//! What a rate limiter decides, without a framework, a runtime or a network.
//!
//! A request shows a [`View`](key::View) of itself to a [`Rule`](rule::Rule), which writes down what it is charged,
//! the [`Charge`](adapter::Charge). A [`Store`](store::Store) answers the charge by running the one step of each
//! [`Limit`]. The [`Gate`](adapter::Gate) says what happens to a request that exceeds a limit. An adapter asks for all of
//! this at once, with [`Enforcer::admit`](adapter::Enforcer::admit). When the response is known, the
//! [`Paid`](adapter::Paid) request is settled.
//!
//! Services use this crate through `sluicegate`, which re-exports it; adapters and stores are written
//! against it.
//!
//! ```
//! use sluicegate::{Limit, Memory};
//! use sluicegate::adapter::Charge;
//! use sluicegate::key::{KeyBuf, Part};
//! use sluicegate::store::Store;
//!
//! let store = Memory::new();
//! let limit = Limit::per_minute(2);
//! let mut key = KeyBuf::new();
//! "alice".write(&mut key);
//! let charge = Charge::of(limit, key, 1);
//!
//! assert!(store.take(&charge).now()?.is_admitted());
//! assert!(store.take(&charge).now()?.is_admitted());
//! assert!(!store.take(&charge).now()?.is_admitted());
//! # Ok::<(), sluicegate::store::StoreError>(())
//! ```
//!
//! # Features
//!
//! - `metrics`: measures decisions through the `metrics` facade, with units and descriptions:
//!
//!   | metric | labels | |
//!   | --- | --- | --- |
//!   | `sluicegate_decisions_total` | `policy`, `verdict` | counter: once for each limit that admits a request, or each that refuses it; `admitted`, `waited`, `refused`, `banned`, `degraded`, `redirected`, `shadowed` or `uncounted` |
//!   | `sluicegate_remaining_share` | `policy` | histogram: what is left of the tightest limit, from 0 to 1 |
//!   | `sluicegate_wait_seconds` | `policy` | histogram: the wait of requests that have to wait |
//!   | `sluicegate_store_errors_total` | `kind` | counter: `full`, `unavailable`, `too_slow` or `unsupported` |
//!   | `sluicegate_unread_answers_total` | | counter: answers charged what was reserved, because nobody has read what they cost |
//!   | `sluicegate_keyless_total` | `whose` | counter: `client` or `server` |
//!   | `sluicegate_memory_keys`, `sluicegate_memory_capacity` | `store` | gauges, when `Memory::record_metrics` is called |
//!   | `sluicegate_memory_turned_away_total`, `sluicegate_memory_counted_together_total` | `store` | counters, then too |
//!   | `sluicegate_memory_file_refused_total`, `sluicegate_memory_file_failed_writes_total` | `store` | counters, then too, if the store is kept in a file |
//!
//!   A policy is the name of a limit. Policies after the 64th are `other`. Install the recorder before the first
//!   request: the metrics of a policy are registered at its first decision.
//! - `tracing`: events for refusals, bans, missing keys and failures, and the span `rate_limit` around decisions that
//!   take time. No event holds a key unless an adapter is told to show keys.
//! - `file`: keeps the counts of `Memory` in a file, so that they survive a restart.
//! - `hours`, `cpu`: conditions on the hour in a time zone, and on the processor time that is left.
//! - `geoip`: keys and conditions by country and region, from a GeoIP database.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod adapter;
pub mod clock;
pub mod condition;
pub mod cost;
pub mod key;
pub mod limit;
pub mod observe;
pub mod response;
pub mod rule;
pub mod store;

mod admission;
mod config_error;
mod http;
mod standard_error;

pub use self::admission::gate::Rejection;
pub use self::clock::ManualClock;
pub use self::cost::account::Cost;
pub use self::http::headers::Fields;
pub use self::key::Ip;
pub use self::key::{Claim, First, Global, Header, Route};
#[doc(inline)]
pub use self::limit::{Decision, Limit};
pub use self::rule::cases::when;
pub use self::rule::tiers::Tiers;
pub use self::store::memory::Memory;
