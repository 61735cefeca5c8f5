//! A [store](sluicegate_core::store::Store) for sluicegate in Redis or Valkey: any number of processes share every
//! limit, of every shape, at one round trip a decision.
//!
//! ```no_run
//! use sluicegate_core::{Limit, Memory};
//! use sluicegate_core::store::{Fallback, Share};
//! use sluicegate_redis::Redis;
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // Inside of a tokio runtime. It returns at once, and the server need not be there yet.
//! let redis = Redis::connect("redis://limiter:secret@redis.internal:6379")?;
//! // While it is away, each of four processes admits a fourth of every limit on its own.
//! let store = Fallback(redis, Share::new(Memory::new(), 1, 4));
//! # let _ = store;
//! # Ok(())
//! # }
//! ```
//!
//! A layer or a limiter is given it by its `store`, as any other. Servers from Redis 6 and Valkey 7 on will
//! do: one of them, a [cluster](Redis::cluster), or whichever is the master by what
//! [sentinels](RedisBuilder::sentinel) say.
//!
//! # What is promised
//!
//! - **One script decides.** All limits that a request is charged to are charged, or none, under any number of
//!   processes. Time is the server's, so that processes whose clocks differ agree.
//! - **An error means that nothing is charged.** What the server charges after the deadline, or for a future
//!   that was dropped, is given back as soon as its answer comes; a question that could not be waited for in the
//!   background is not asked. The one exception is a connection that
//!   breaks between question and answer: nobody knows then, and the charge stands if it was made. It is
//!   [counted](RedisCounts::unanswered); no question is asked twice on a guess.
//! - **No decision takes longer than the deadline,** 50 ms unless [told otherwise](RedisBuilder::deadline),
//!   whatever the server does. Nobody waits for an attempt to connect after one that failed, or for a server
//!   that keeps failing.
//! - **A failure is never a refusal.** It is a [`StoreError`](sluicegate_core::store::StoreError) whose source is a
//!   [`Failure`]; the layer admits, refuses with 503, or asks the second store of a
//!   [`Fallback`](sluicegate_core::store::Fallback), as it was told.
//! - **Nothing is unbounded:** [so many](RedisBuilder::background) questions are under way, and as many settlements,
//!   and no more. For each server there are at most two connections beside the one in use and the one being made:
//!   those on which late answers are awaited. A connection on which a question stays unanswered for too long is
//!   closed, and all that waits on it ends; so is one that sends an answer of more than 4 MiB, or one that nobody
//!   asked for. Rows in the server expire when they are as good as none; a token
//!   bucket's up to as long again after that, so that it need not be told anew each time.
//!
//! # What failures cost
//!
//! | what happens | what a decision costs then | what is done about it |
//! | --- | --- | --- |
//! | the server is not there | nothing: it is an error at once | connects in the background, in pauses from 20 ms to 2 s |
//! | it hangs, or drops packets | the deadline, for five requests; then nothing | the breaker opens; after its pause a new connection is made, and one request at a time finds out |
//! | it answers later than the deadline | the same | the same: a late answer does not close the breaker |
//! | it is killed | an error, for what was on the way | reconnects; a new server is sent the scripts |
//! | `SCRIPT FLUSH` | a second round trip, within the deadline | the script is sent in full |
//! | it was demoted to a replica, or refuses the user | an error | reconnects, at once the first time, then in the same pauses: the name may point to the new master; sentinels are asked again |
//! | its memory is full | an error, for requests that would write | as when it hangs, on the same connection |
//! | more questions are under way than [`background`](RedisBuilder::background) allows | nothing: it is an error at once | what is asked without a place could not be given back |
//! | a foreign value stands in a row | an error, for that key alone | the row is left alone |
//! | a node of a cluster is down | as above, for its slots alone | looks who serves them by now |
//! | a slot moves | a second round trip, within the deadline | `MOVED` is remembered, `ASK` followed |
//!
//! The breaker opens after five failures in a row, whatever they are: too slow, an error, a connection that was
//! closed. While it is open, one question at a time finds out whether the server answers within the deadline, and
//! nobody connects before its pause has ended. Pauses grow from 100 ms to 2 s, and go on growing until the server
//! has answered 50 questions in time. In a cluster each node has its own breaker.
//!
//! Settling never waits: it is handed to the connection before [`settle`](sluicegate_core::store::Store::settle)
//! returns, so that what the same task asks next is decided after it; where there is no connection, it is
//! sent when there is one again, for up to 30 s. [`flush`](Redis::flush) waits for it, before a process
//! ends. What was sent and not answered is not sent again.
//!
//! # Places
//!
//! Each process holds its places of a [`Limit::concurrent`](sluicegate_core::Limit::concurrent) on a lease of
//! [10 s](RedisBuilder::concurrency_lease), which it renews in the background as long as it holds any. What a
//! process that has died held is free after 10 s at the latest; what was taken or given back over a connection
//! that broke, when the row is next renewed.
//!
//! A process that cannot reach the server for longer than its lease, or is stopped for as long, loses its places.
//! Its requests still run, beside those that take the free places. It gives back nothing that it has lost: what
//! it settles later takes nothing from others, and nothing from places that it has taken since.
//!
//! # Floods
//!
//! A store that is told to [remember refusals](RedisBuilder::remember_refusals) answers whoever comes again
//! too early by itself, in about 100 ns, as the server would by then. It is off by default, because what
//! another process gives back is then seen a little later.
//!
//! # Several keys in a cluster
//!
//! All limits of one key lie in one slot, and so in one script. A request that owes on several keys, whose
//! slots differ, is charged slot after slot, in the order of the slots; when one refuses or fails, what was
//! charged before is given back. That is all or none, at one round trip a slot, but it is not one moment:
//! others can be refused by what is about to be given back. Such a request never waits its turn: it is
//! admitted at once or refused, because no place can be booked for the same moment in several slots. While a
//! slot moves, the cluster itself refuses to decide over several rows of it: that is an error.
//!
//! On a single server one script decides over all keys. There, too, plain requests that come while others are
//! on their way go together, up to 64 in one call of the script; each is decided by itself, in the order in
//! which they came, and what goes wrong with one is its own error.
//!
//! # Many decisions a round trip
//!
//! [`Leased`] takes tokens out of a [`Redis`] in batches and spends them in this process: a decision then costs
//! less than a microsecond, and still no more is admitted than the limit, over all processes. In exchange, half of
//! a bucket's burst is held by processes that may not need it at that moment.
//!
//! | | [`Redis`] | [`Leased`] |
//! | --- | --- | --- |
//! | round trips | one for each request | one for each batch |
//! | shapes | all | token buckets and fixed windows; the others as on the left |
//! | admits | exactly the limit | never more; hardly less, while the load is steady |
//! | while Redis is away | is an error at once | what was taken out is spent first |
//!
//! # What the server's user needs
//!
//! `ACL SETUSER limiter on >secret resetkeys ~sluicegate:* -@all +evalsha +eval +get +mget +set +del
//! +getrange +setrange +strlen +pexpire +pttl +time`. Besides, `+select` where the URL names a database,
//! `+cluster|slots +asking` in a cluster, and `+role` with sentinels. To be named by
//! [`client_name`](RedisBuilder::client_name) it needs `+client|setname`; without that, everything else works.
//!
//! # Features
//!
//! - `tls`: `rediss://`, by rustls with ring.
//! - `metrics`: by the facade of that name, with a description and a unit each:
//!   `sluicegate_redis_decisions_total` (`outcome`), `sluicegate_redis_failures_total` (`kind`),
//!   `sluicegate_redis_decision_seconds` (how long requests waited for the server, in vain or not),
//!   `sluicegate_redis_refused_locally_total`, `sluicegate_redis_breaker_open` (`server`; 0 from the start),
//!   `sluicegate_redis_breaker_openings_total`, `sluicegate_redis_connections_total`,
//!   `sluicegate_redis_scripts_loaded_total`, `sluicegate_redis_settled_total`,
//!   `sluicegate_redis_settlements_dropped_total`, `sluicegate_redis_given_back_total`,
//!   `sluicegate_redis_unanswered_total` and `sluicegate_redis_places_lost_total`; and of [`Leased`]
//!   `sluicegate_redis_leases_total`, `sluicegate_redis_lease_tokens_total` (`event`),
//!   `sluicegate_redis_lease_decisions_total` (`outcome`) and `sluicegate_redis_lease_passed_on_total`, which are told
//!   when the next lease is asked for. [`counts`](Redis::counts) shows the same without it, and
//!   `docs/grafana.json` is a dashboard for all of them.
//! - `tracing`: events when connections come and go, breakers open and close, and settlements are dropped.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod config_error;
mod exchange;
mod failure;
mod lease;
mod observe;
mod places;
mod refusals;
mod rows;
mod runtime;
mod script;
mod store;
mod wire;

pub use self::builder::RedisBuilder;
pub use self::config_error::ConfigError;
pub use self::failure::{Failure, FailureKind};
pub use self::lease::Leased;
pub use self::store::Redis;

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
    pub use crate::observe::counts::{BreakerState, RedisCounts};
    pub use crate::observe::latency::LatencyCounts;
}

/// The futures that the stores return.
pub mod future {
    pub use crate::exchange::future::RedisFuture;
    pub use crate::lease::LeasedFuture;
}
