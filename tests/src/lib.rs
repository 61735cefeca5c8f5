//! Tests that several crates have to pass: [`conformance`](mod@conformance) for every store, [`servers`] for tests that
//! need a Redis server, the [command](mod@command) in processes of its own, the simulated servers of
//! [`overload`](mod@overload), and a [`Request`] without a framework.

pub mod certificates;
#[cfg(unix)]
pub mod command;
pub mod conformance;
pub mod log;
pub mod operations;
pub mod overload;
pub mod random;
mod request;
#[cfg(unix)]
pub mod servers;
pub mod stores;
mod subject;

pub use self::request::{Request, names};
pub use self::subject::{Subject, answer, block_on, key};

/// The examples of the README, compiled and run as they are.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// The READMEs of the crates, compiled and run in the same way.
#[cfg(doctest)]
mod readmes {
    #[doc = include_str!("../../crates/sluicegate/README.md")]
    struct Sluicegate;
    #[doc = include_str!("../../crates/sluicegate-actix/README.md")]
    struct Actix;
    #[doc = include_str!("../../crates/sluicegate-axum/README.md")]
    struct Axum;
    #[doc = include_str!("../../crates/sluicegate-config/README.md")]
    struct Config;
    #[doc = include_str!("../../crates/sluicegate-core/README.md")]
    struct Core;
    #[doc = include_str!("../../crates/sluicegate-governor/README.md")]
    struct Governor;
    #[doc = include_str!("../../crates/sluicegate-limit/README.md")]
    struct Limit;
    #[doc = include_str!("../../crates/sluicegate-llm/README.md")]
    struct Llm;
    #[doc = include_str!("../../crates/sluicegate-redis/README.md")]
    struct Redis;
    #[doc = include_str!("../../crates/sluicegate-swap/README.md")]
    struct Swap;
    #[doc = include_str!("../../crates/sluicegate-tonic/README.md")]
    struct Tonic;
}

/// The pages of the guide. Their snippets use every crate, so they run here and not in `sluicegate`.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../crates/sluicegate/src/guide/algorithms.md")]
    struct Algorithms;
    #[doc = include_str!("../../crates/sluicegate/src/guide/clients.md")]
    struct Clients;
    #[doc = include_str!("../../crates/sluicegate/src/guide/engines.md")]
    struct Engines;
    #[doc = include_str!("../../crates/sluicegate/src/guide/first_limit.md")]
    struct FirstLimit;
    #[doc = include_str!("../../crates/sluicegate/src/guide/fleets.md")]
    struct Fleets;
    #[doc = include_str!("../../crates/sluicegate/src/guide/keys.md")]
    struct Keys;
    #[doc = include_str!("../../crates/sluicegate/src/guide/leases.md")]
    struct Leases;
    #[doc = include_str!("../../crates/sluicegate/src/guide/migrating.md")]
    struct Migrating;
    #[doc = include_str!("../../crates/sluicegate/src/guide/operating.md")]
    struct Operating;
    #[doc = include_str!("../../crates/sluicegate/src/guide/overload.md")]
    struct Overload;
    #[doc = include_str!("../../crates/sluicegate/src/guide/policies.md")]
    struct Policies;
    #[doc = include_str!("../../crates/sluicegate/src/guide/proxies.md")]
    struct Proxies;
    #[doc = include_str!("../../crates/sluicegate/src/guide/recipes.md")]
    struct Recipes;
    #[doc = include_str!("../../crates/sluicegate/src/guide/rejection.md")]
    struct Rejection;
    #[doc = include_str!("../../crates/sluicegate/src/guide/rules.md")]
    struct Rules;
    #[doc = include_str!("../../crates/sluicegate/src/guide/testing.md")]
    struct Testing;
    #[doc = include_str!("../../crates/sluicegate/src/guide/tokens.md")]
    struct Tokens;
    #[doc = include_str!("../../crates/sluicegate/src/guide/which_number.md")]
    struct WhichNumber;
}
