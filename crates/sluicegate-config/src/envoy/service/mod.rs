//! Envoy's rate limit service itself: decides about the descriptors that Envoy sends.
//!
//! [`Domain::read`] reads a file of the service. [`Plan::new`] finds the limits that a request meets, without asking
//! anybody, and [`Plan::judge`] says what the decision of a [store](sluicegate_core::store::Store) means. Neither does
//! any I/O, and neither knows the messages of the protocol: `sluicegate-server` has both.
//!
//! ```
//! use std::sync::Arc;
//!
//! use sluicegate_core::Memory;
//! use sluicegate_core::store::Store;
//! use sluicegate_config::envoy::service::{Descriptor, Domain, Domains, Plan, Request, Settings};
//!
//! let (domain, _) = Domain::read(
//!     "domain: edge
//! descriptors:
//!   - key: user
//!     rate_limit: { unit: minute, requests_per_unit: 1 }
//! ",
//! )?;
//! let mut domains = Domains::new();
//! domains.add(Arc::new(domain));
//!
//! let store = Memory::new();
//! let descriptors = vec![Descriptor::of([("user", "alice")])];
//! let request = Request { domain: "edge", descriptors };
//! let mut is_over = || -> Result<bool, Box<dyn std::error::Error>> {
//!     let plan = Plan::new(&domains, &request, Settings::default())?;
//!     let outcome = store.take(plan.charge()).now()?;
//!     Ok(plan.judge(outcome.decision(plan.charge()), &[], 0).answer.is_over)
//! };
//! assert!(!is_over()?);
//! assert!(is_over()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Differences from the service
//!
//! With [`Settings::apart`], there is one in what is counted: negative hits are given back, which the service adds like
//! others. Without it:
//!
//! - A request that one limit refuses is charged by none. The service charges the others. Hits that a descriptor names
//!   itself are an exception: see [`Hits::Report`].
//! - A descriptor that only looks, with 0 hits, is refused if nothing is left. In the service it is refused if more
//!   than the limit is spent, which happens here only by a late report.

mod domain;
mod judge;
mod plan;
mod request;
mod rule;

pub use self::domain::{Domain, Domains};
pub use self::judge::{Answer, CurrentLimit, Judgement, Status};
pub use self::plan::{Plan, Question, Settings};
pub use self::request::{BadRequest, Descriptor, Hits, MOST_DESCRIPTORS, MOST_ENTRIES, Request};
pub use self::rule::{Rate, Rule, Unit};

/// Looked up by texts of requests.
type Map<K, V> = std::collections::HashMap<Box<K>, V>;
