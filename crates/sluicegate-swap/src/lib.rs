//! A [store](sluicegate_core::store::Store) in any engine that can compare and swap rows, so that any number of processes
//! share every limit. It supports all algorithms, and needs one round trip for a decision about a row that it has seen and that
//! nobody else has changed since.
//!
//! An [`Engine`] loads rows, and swaps some rows if each still has the version that is expected. [`Swap`] does the rest, with
//! the step that `Memory` runs. PostgreSQL is the feature `postgres`.
//!
//! ```
//! use std::collections::HashMap;
//! use std::sync::{Arc, Mutex};
//!
//! use sluicegate_swap::{Engine, EngineError, Loaded, Stored, Swap, Swapped, Write};
//!
//! #[derive(Default)]
//! struct Shelf(Mutex<HashMap<Arc<str>, Stored>>);
//!
//! impl Engine for Shelf {
//!     fn rows_at_once(&self) -> usize {
//!         64
//!     }
//!
//!     async fn load(&self, keys: &[Arc<str>]) -> Result<Loaded, EngineError> {
//!         let shelf = self.0.lock().unwrap();
//!         let rows = keys.iter().map(|key| shelf.get(key).cloned()).collect();
//!         Ok(Loaded { rows, now: None })
//!     }
//!
//!     async fn swap(&self, writes: &[Write]) -> Result<Swapped, EngineError> {
//!         let mut shelf = self.0.lock().unwrap();
//!         let version = |write: &Write| shelf.get(&write.key).map(|row| row.version);
//!         if writes.iter().any(|write| version(write) != write.expected) {
//!             return Ok(Swapped::Changed(None));
//!         }
//!         for Write { key, version, bytes, .. } in writes {
//!             shelf.insert(key.clone(), Stored { version: *version, bytes: bytes.clone() });
//!         }
//!         let versions = writes.iter().map(|write| write.version).collect();
//!         Ok(Swapped::Written { versions, now: None })
//!     }
//! }
//!
//! # let _runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # let _entered = _runtime.enter();
//! let store = Swap::new(Shelf::default());
//! # let _ = store;
//! ```
//!
//! Pass it to the `store` method of a layer or a limiter, like any other store.
//!
//! # What is promised
//!
//! - **One swap decides.** All limits of a request are charged, or none. An engine that swaps fewer rows at once than a
//!   request has limits charges them part by part, and gives back; such a request never waits in a queue.
//! - **An error means that nothing is charged.** A swap without an answer may have happened. The store looks at its rows
//!   until it knows. If it has happened, it is given back; if not, a write makes sure that it cannot happen any more. The
//!   only exception are rows that eight other processes have written meanwhile, and engines that stay away for longer than
//!   the [background](SwapBuilder::background) allows: such charges are [counted](SwapCounts::unanswered).
//! - **No decision takes longer than the deadline,** which is 50 ms [by default](SwapBuilder::deadline). After five failures
//!   in a row the breaker opens, and requests get an error at once until the engine answers again.
//! - **A failure is never a refusal.** It is a [`StoreError`](sluicegate_core::store::StoreError), and the layer admits,
//!   refuses with 503, or uses the second store of a [`Fallback`](sluicegate_core::store::Fallback), as configured.
//! - **Nothing is unbounded:** neither calls nor settlements under way, nor [remembered rows](SwapBuilder::remember_rows).
//!   The engine is told how long to keep each row.
//!
//! # Round trips
//!
//! A row that this process has written or seen last is swapped at once: one round trip. If another process has written it
//! meanwhile, the swap is tried again with the row as it is now, after a random pause from the second time on. Requests that
//! come while a row is on its way are decided together when it is back, in the order in which they came, by one swap. A
//! refusal writes nothing, and is given from a row that was just read; with
//! [remembered refusals](SwapBuilder::remember_refusals) it needs no call at all.
//!
//! # Time
//!
//! Limits use the engine's clock, which each answer shows. The estimate is wrong by at most half a round trip. A row never
//! goes back: a decision is made no earlier than the last one that was written to the row. The clocks of an engine's servers
//! have to agree within a second, or within two deadlines if that is longer, ten seconds at most. If the clock is set back by more, what was spent stays spent, and comes back after as long as
//! it would have. An engine without a clock uses the machines' system time, which has to agree within ten seconds: while it
//! does, a limit refills early by at most the difference, once. If clocks differ by more, each change between two such
//! processes may refill a limit.
//!
//! # Features
//!
//! - `postgres`: [`postgres::Postgres`]. `deadpool`: a pool of `deadpool-postgres` as its connections.
//! - `metrics`: metrics of the `metrics` crate, each with a description and a unit: `sluicegate_swap_decisions_total`
//!   (`outcome`), `sluicegate_swap_failures_total`, `sluicegate_swap_call_seconds` (how long calls of the engine took,
//!   whether or not it answered), `sluicegate_swap_loads_total`, `sluicegate_swap_swaps_total`,
//!   `sluicegate_swap_conflicts_total`, `sluicegate_swap_breaker_open` (`prefix`; 0 from the start),
//!   `sluicegate_swap_breaker_openings_total`, `sluicegate_swap_settled_total`,
//!   `sluicegate_swap_settlements_dropped_total`, `sluicegate_swap_given_back_total`, `sluicegate_swap_unanswered_total` and
//!   `sluicegate_swap_places_lost_total`. [`counts`](Swap::counts) shows the same without this feature, and
//!   `docs/grafana.json` is a dashboard for all of them.
//! - `tracing`: events when the breaker opens and closes.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod across;
mod builder;
mod counts;
mod decide;
mod engine;
mod entry;
mod flight;
mod observe;
mod places;
#[cfg(feature = "postgres")]
#[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
pub mod postgres;
mod queue;
mod row;
mod runtime;
mod shared;
mod store;
mod time;

pub use self::builder::SwapBuilder;
pub use self::counts::SwapCounts;
pub use self::engine::{Engine, EngineError, Loaded, Stored, Swapped, Write};
pub use self::store::Swap;
