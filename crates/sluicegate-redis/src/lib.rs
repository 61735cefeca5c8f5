//! A [store](sluicegate_core::store::Store) in Redis or Valkey, so that any number of processes share every limit. It
//! supports all algorithms, and needs one round trip for a decision.
//!
//! ```no_run
//! use sluicegate_core::{Limit, Memory};
//! use sluicegate_core::store::{Fallback, Fleet, Share};
//! use sluicegate_redis::Redis;
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // Inside a tokio runtime. It returns at once, and the server need not be there yet.
//! let redis = Redis::connect("redis://limiter:secret@redis.internal:6379")?;
//! // While the server is away, each of four processes admits a quarter of every limit.
//! let store = Fallback(redis, Share::new(Memory::new(), &Fleet::fixed(1, 4)));
//! # let _ = store;
//! # Ok(())
//! # }
//! ```
//!
//! Pass it to the `store` method of a layer or a limiter, like any other store. It works with Redis 6 and later and
//! Valkey 7 and later: with a single server, a [cluster](Redis::cluster), or the master that
//! [sentinels](RedisBuilder::sentinel) name.
//!
//! # What is promised
//!
//! - **One script decides.** All limits of a request are charged, or none, under any number of processes. Scripts use
//!   the server's clock, so processes whose clocks differ agree.
//! - **An error means that nothing is charged.** If the server charges after the deadline, or for a future that was
//!   dropped, the charge is given back as soon as the answer arrives. A call that could not be given back is not made.
//!   The only exception is a connection that breaks between call and answer: it is unknown then whether the charge was
//!   made, and if it was, it stands. Such calls are [counted](counts::RedisCounts::unanswered), and never repeated.
//! - **No decision takes longer than the deadline,** which is 50 ms [by default](RedisBuilder::deadline). Requests do
//!   not wait for a connection after an attempt that failed, nor for a server that keeps failing.
//! - **A failure is never a refusal.** It is a [`StoreError`](sluicegate_core::store::StoreError) whose source is a
//!   [`Failure`]. The layer then admits, refuses with 503, or uses the second store of a
//!   [`Fallback`](sluicegate_core::store::Fallback), as configured.
//! - **Nothing is unbounded.** The number of calls and of settlements under way is [limited](RedisBuilder::background).
//!   Each server has at most four connections: the one in use, one that is being made, and two on which late answers
//!   are awaited. A connection is closed when a call on it stays unanswered for too long, and when more than 4 MiB come
//!   without an answer. Rows expire in the server when they equal fresh ones. A token
//!   bucket's row stays up to twice as long, so that busy keys need not write the expiry each time.
//!
//! # What failures cost
//!
//! | what happens | cost of a decision | what the store does |
//! | --- | --- | --- |
//! | the server is not there | nothing: an error at once | reconnects in the background, in pauses from 20 ms to 2 s |
//! | it hangs, or drops packets | the deadline, for five requests and those that come while the five wait; then nothing | the breaker opens; after its pause a new connection is made, and one request at a time probes the server |
//! | it answers later than the deadline | the same | the same: a late answer does not close the breaker |
//! | it is killed | an error, for calls on their way | reconnects, and sends the scripts to the new server |
//! | `SCRIPT FLUSH` | a second round trip, within the deadline | sends the script in full |
//! | it becomes a replica, or rejects the user | an error | reconnects, at once the first time, then in the same pauses, because the name may point to the new master; asks sentinels again |
//! | its memory is full | an error, for requests that would write | as when it hangs, on the same connection |
//! | more calls are under way than [`background`](RedisBuilder::background) allows | nothing: an error at once | makes no call, because its charge could not be given back |
//! | a row holds a foreign value | an error, for that key only | leaves the row alone |
//! | a node of a cluster is down | as above, for its slots only | asks the other nodes which of them serves these slots now |
//! | a slot moves | a second round trip, within the deadline | remembers `MOVED`, follows `ASK`, and gives up after 16 redirections |
//!
//! The breaker opens after five failures in a row, of any kind: too slow, an error, a closed connection, which is one
//! failure however many calls were on it. While it is open, one call at a time probes whether the server answers within
//! the deadline, and no connection is made before the pause has ended. Pauses grow from 100 ms to 2 s, and keep growing
//! until the server has answered 50 calls in time. When a probe has succeeded, five calls at a time are made at first,
//! and one more at a time for each answer; other requests get an error at once. Each node of a cluster has a breaker of
//! its own.
//!
//! Settlements never wait. [`settle`](sluicegate_core::store::Store::settle) hands them to the connection before it
//! returns, so that later calls of the same task are decided after them. Without a connection they are sent when there
//! is one again, for up to 30 s. Call [`flush`](Redis::flush) before the process ends, to wait for them. A settlement
//! that was sent but not answered is not repeated.
//!
//! # Limits of concurrency
//!
//! A process holds its places of a [`Limit::concurrent`](sluicegate_core::Limit::concurrent) on a lease of
//! [10 s](RedisBuilder::concurrency_lease), and renews the lease in the background for as long as it holds any. The
//! places of a process that has died are free after 10 s at the latest. If a connection breaks while places are taken or
//! given back, the count is corrected when the row is next renewed.
//!
//! A process that cannot reach the server for longer than its lease, or is stopped for that long, loses its places. Its
//! requests continue, beside those that take the free places. Settling them later takes nothing from other processes,
//! and nothing from places that this process has taken since.
//!
//! # Floods
//!
//! With [remembered refusals](RedisBuilder::remember_refusals), the store refuses a client that returns too early
//! without a round trip, in about 100 ns, with the answer that the server would give. This is off by default, because
//! it takes a little longer to notice what other processes give back.
//!
//! # Several keys in a cluster
//!
//! All limits of one key lie in one slot, so one script decides them. A request with several keys in different slots is
//! charged slot by slot, in the order of the slots. If one slot refuses or fails, the charges in the others are given
//! back. That is still all or none, at one round trip for each slot, but not at one moment: other requests can be
//! refused because of charges that are about to be given back. Such a request never waits in a queue: it is admitted at
//! once or refused, because no place can be booked for the same moment in several slots. While a slot moves, the
//! cluster rejects scripts over several of its rows, which is an error.
//!
//! On a single server, one script decides all keys. Simple requests that arrive while others are on their way are sent
//! together, up to 64 in one run of the script. They are decided one after another, in the order in which they came, and
//! each has its own answer or error.
//!
//! # Many decisions per round trip
//!
//! [`Leased`] takes tokens out of a [`Redis`] store in batches, and spends them in this process. A decision then takes
//! less than a microsecond, and all processes together still never admit more than the limit. In exchange, processes
//! hold half of a bucket's burst that they may not need at the moment.
//!
//! | | [`Redis`] | [`Leased`] |
//! | --- | --- | --- |
//! | round trips | one for each request | one for each batch |
//! | algorithms | all | token buckets and fixed windows; others as on the left |
//! | admits | exactly the limit | never more; hardly less, under a steady load |
//! | while Redis is away | an error at once | spends the tokens in hand first |
//!
//! # No round trip at all
//!
//! Processes that [join a fleet](Redis::fleet) tell each other by heartbeats, and divide limits among themselves. Each
//! decides its part in memory, at any rate. While the server is away, everyone keeps the part that it had.
//!
//! # What the server's user needs
//!
//! `ACL SETUSER limiter on >secret resetkeys ~sluicegate:* -@all +evalsha +eval +get +mget +set +del
//! +getrange +setrange +strlen +pexpire +pttl +time`. In addition: `+select` if the URL names a database,
//! `+cluster|slots +asking` in a cluster, and `+role` with sentinels. [`client_name`](RedisBuilder::client_name) needs
//! `+client|setname`; without that right, only the name is missing. Elections need `+sadd +srem +sscan`.
//!
//! # Features
//!
//! - `tls`: `rediss://`, through rustls with ring.
//! - `mastership`: [elects the master](Redis::mastership) among the servers of `sluicegate-lease`.
//! - `metrics`: metrics of the `metrics` crate, each with a description and a unit:
//!   `sluicegate_redis_decisions_total` (`outcome`), `sluicegate_redis_failures_total` (`kind`),
//!   `sluicegate_redis_decision_seconds` (how long requests waited for the server, whether or not it answered),
//!   `sluicegate_redis_refused_locally_total`, `sluicegate_redis_breaker_open` (`server`; 0 from the start),
//!   `sluicegate_redis_breaker_openings_total`, `sluicegate_redis_connections_total`,
//!   `sluicegate_redis_scripts_loaded_total`, `sluicegate_redis_settled_total`,
//!   `sluicegate_redis_settlements_dropped_total`, `sluicegate_redis_given_back_total`,
//!   `sluicegate_redis_unanswered_total` and `sluicegate_redis_places_lost_total`; and of [`Leased`]
//!   `sluicegate_redis_leases_total`, `sluicegate_redis_lease_tokens_total` (`event`),
//!   `sluicegate_redis_lease_decisions_total` (`outcome`) and `sluicegate_redis_lease_passed_on_total`, which are
//!   updated when the next lease is requested. [`counts`](Redis::counts) shows the same without this feature, and
//!   `docs/grafana.json` is a dashboard for all of them.
//! - `tracing`: events when connections are made and lost, breakers open and close, and settlements are dropped.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod exchange;
mod failure;
mod fleet;
mod lease;
#[cfg(feature = "mastership")]
mod mastership;
mod observe;
mod places;
mod refusals;
mod rows;
mod runtime;
mod script;
mod store;
mod wire;

pub use self::builder::RedisBuilder;
pub use self::failure::{Failure, FailureKind};
pub use self::fleet::FleetBuilder;
pub use self::lease::Leased;
pub use self::store::Redis;
pub use sluicegate_core::adapter::ConfigError;

#[cfg(feature = "mastership")]
pub use self::mastership::{Candidacy, RedisMastership};

/// What the stores have done so far: the types that [`Redis::counts`] and [`Leased::counts`] return.
///
/// ```
/// use sluicegate_redis::Redis;
/// use sluicegate_redis::counts::BreakerState;
///
/// fn is_healthy(store: &Redis) -> bool {
///     let counts = store.counts();
///     counts.breaker == BreakerState::Closed && counts.unanswered == 0
/// }
/// ```
pub mod counts {
    pub use crate::lease::LeaseCounts;
    pub use crate::observe::counts::{BreakerState, LatencyCounts, RedisCounts};
}

/// The futures that the stores return.
pub mod future {
    pub use crate::lease::LeasedFuture;
    pub use crate::store::RedisFuture;
}
