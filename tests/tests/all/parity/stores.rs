//! Where the servers keep their counts.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sluicegate_core::adapter::Outcome;
use sluicegate_core::store::{Store, StoreError};
use sluicegate_core::{ManualClock, Memory};
use sluicegate_redis::{Redis, RedisBuilder};
use sluicegate_tests::servers::Server;

/// A store that every adapter can use.
pub(crate) trait Kept:
    Store<Future: Future<Output = Result<Outcome, StoreError>> + Send> + Clone + Send + Sync + 'static
{
}

impl<S> Kept for S where
    S: Store<Future: Future<Output = Result<Outcome, StoreError>> + Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Makes the store for one scenario.
pub(crate) trait Keep {
    type Store: Kept;

    fn store(&self, clock: &ManualClock) -> Self::Store;
}

pub(crate) struct InMemory;

impl Keep for InMemory {
    type Store = Memory;

    fn store(&self, clock: &ManualClock) -> Memory {
        Memory::builder().capacity(1_000).clock(clock).build()
    }
}

/// On a Redis server that all scenarios share, each with its own prefix.
pub(crate) struct InRedis;

impl Keep for InRedis {
    type Store = Redis;

    fn store(&self, clock: &ManualClock) -> Redis {
        static SERVER: LazyLock<Server> = LazyLock::new(Server::start);
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let builder = by_hand(clock).url(&SERVER.url()).prefix(&format!("scenario-{number}:"));
        builder.build().expect("the settings are valid")
    }
}

/// On a Redis server that is gone.
pub(crate) struct Nowhere;

impl Keep for Nowhere {
    type Store = Redis;

    fn store(&self, clock: &ManualClock) -> Redis {
        let server = Server::start();
        server.kill();
        by_hand(clock).url(&server.url()).build().expect("the settings are valid")
    }
}

/// Deadlines use the manual clock too, and calls under way must not miss them when it is turned.
fn by_hand(clock: &ManualClock) -> RedisBuilder {
    let ages = Duration::from_secs(10 * 365 * 24 * 60 * 60);
    let store = Redis::builder().clock(clock).deadline(ages).connect_timeout(ages);
    // The renewal of held places, and giving up a connection, use that clock too.
    store.background(4_096, ages).concurrency_lease(ages)
}
