//! What a rate limiter decides, without a framework, a runtime or I/O.
//!
//! A request shows a [`View`] of itself to a [`Rule`], which writes down what it owes, the
//! [`Charge`]; a [`Store`] answers the charge by running the one step of each [`Limit`]; the [`Gate`]
//! turns the [`Decision`] into a [`Step`] for the adapter to carry out; when the response is known,
//! the [`Ticket`] is settled.
//!
//! Services use this crate through `sluicegate`, which re-exports it; adapters and stores are written
//! against it.
//!
//! ```
//! use sluicegate_core::{Charge, KeyBuf, Limit, Memory, Part, Store};
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
//! # Ok::<(), sluicegate_core::StoreError>(())
//! ```
//!
//! # Features
//!
//! - `metrics`: what is decided, through the facade of that name, with its unit and description:
//!
//!   | metric | labels | |
//!   | --- | --- | --- |
//!   | `sluicegate_decisions_total` | `policy`, `verdict` | counter: once for each limit that admits a request, or each that refuses it; `admitted`, `waited`, `refused`, `banned`, `degraded`, `redirected`, `shadowed` or `uncounted` |
//!   | `sluicegate_remaining_share` | `policy` | histogram: what is left of the tightest limit, from 0 to 1 |
//!   | `sluicegate_wait_seconds` | `policy` | histogram: how long requests are made to wait, those that need not left out |
//!   | `sluicegate_store_errors_total` | `kind` | counter: `full`, `unavailable`, `too_slow` or `unsupported` |
//!   | `sluicegate_keyless_total` | `whose` | counter: `client` or `server` |
//!   | `sluicegate_memory_keys`, `sluicegate_memory_capacity` | `store` | gauges, when `Memory::record_metrics` is called |
//!   | `sluicegate_memory_turned_away_total`, `sluicegate_memory_counted_together_total` | `store` | counters, then too |
//!
//!   A policy is a limit's name; those after the 64th are `other`. Install the recorder before the first
//!   request: what is measured of a policy is registered at its first decision, and kept.
//! - `tracing`: events for what is refused, banned, missing or failing, and the span `rate_limit` around what is
//!   not decided at once. Keys are in none of them, unless an adapter is told to show them.

mod account;
mod adapter;
mod blocks;
mod by_policy;
mod cases;
mod charge;
mod clock;
mod condition;
mod cost;
mod counts;
mod fallback;
mod few;
pub mod fields;
mod gate;
mod headers;
mod hold;
#[cfg(feature = "hours")]
mod hours;
mod key;
mod known;
mod limit;
mod line;
mod memory;
mod meter;
mod paid;
#[cfg(feature = "places")]
mod places;
mod policy;
mod refusal;
mod report;
mod room;
mod rule;
mod running;
mod set_spent;
mod share;
mod show;
mod sleep;
mod span;
mod store;
mod ticket;
mod tiers;
mod unserved;
mod watch;

pub use self::account::{Cost, Reply};
pub use self::adapter::{Degraded, OnStoreError, Refused};
pub use self::blocks::{Blocks, BlocksFuture};
pub use self::cases::{Cases, CasesBuilder, Conditions, when};
pub use self::charge::{Charge, Debit};
pub use self::clock::{Clock, ManualClock};
pub use self::condition::{
    AllOf, AnyOf, ByClient, ByServer, ChosenBy, Condition, Either, Equals, ExtensionIs, HostIs,
    MAX_PATH, MethodIs, NetworkError, Not, PathMatches, PathReadings, PatternError, Present,
    RouteIs, Values, Within,
};
pub use self::cost::{
    Amount, ContentLength, CostFn, CostFrom, CostOf, content_length, cost_fn, cost_from,
    reply_header, reply_header_scaled,
};
pub use self::counts::{Counter, Counters, Counts};
pub use self::fallback::{Fallback, FallbackFuture};
pub use self::gate::{Gate, Place, Redirect, Rejection, Step};
pub use self::headers::{Field, Fields, Headers, Value, is_stored_for_others};
pub use self::hold::Hold;
#[cfg(feature = "hours")]
pub use self::hours::{Hours, HoursError, Weekday};
pub use self::key::*;
pub use self::known::Known;
pub use self::limit::{
    Decision, Keys, Limit, LimitError, LimitName, LimitStatus, Limits, MAX_LIMITS, Outcome,
    Receipt, Slot, State, Verdict, WhenFull, decide, preview, remote,
};
pub use self::memory::{Memory, MemoryBuilder};
pub use self::meter::Meter;
pub use self::paid::{Desk, Paid, Rest, Served};
#[cfg(feature = "places")]
pub use self::places::{InPlaces, PlaceKey, Places, PlacesError};
pub use self::policy::{Course, Policy, client_error, must_keep};
pub use self::refusal::Refusal;
#[cfg(feature = "cpu")]
pub use self::room::{Cpu, CpuError};
pub use self::room::{InFlight, InFlightGuard, Room};
pub use self::rule::{By, Chosen, KnownLimits, LimitsFor, Rule, RuleFn, When, choose, rule_fn};
pub use self::running::RunningCost;
pub use self::set_spent::SetSpent;
pub use self::share::{Share, ShareFuture};
pub use self::show::ShowKeys;
pub use self::sleep::Sleep;
pub use self::span::DecisionSpan;
pub use self::store::{Answer, AtOnce, Store, StoreError};
pub use self::ticket::Ticket;
pub use self::tiers::{ByTier, TierError, Tiers, TiersBuilder};
pub use self::unserved::{listen_unserved, note_unserved};
pub use self::watch::{MostRefused, RefusedKey, Watch};
