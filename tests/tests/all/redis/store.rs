//! Stores on the servers that the tests of this program share, and on servers of their own.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sluicegate_core::adapter::Charge;
use sluicegate_core::store::Store;
use sluicegate_core::{Limit, ManualClock};
use sluicegate_redis::{Redis, RedisBuilder};
use sluicegate_tests::servers::{Cluster, Reply, Server};
use sluicegate_tests::{answer, key};
use tokio::runtime::Runtime;

/// The runtime of all stores of this process.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).enable_all().build().expect("threads")
    });
    &RUNTIME
}

/// A server for all tests that do not disturb it.
pub(crate) fn shared() -> &'static Server {
    static SERVER: LazyLock<Server> = LazyLock::new(Server::start);
    &SERVER
}

/// A cluster for all tests that do not disturb it.
pub(crate) fn shared_cluster() -> &'static Cluster {
    static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| Cluster::start(3));
    &CLUSTER
}

/// A prefix that no other test has.
pub(crate) fn own_prefix() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("test-{}-{}:", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// A store that uses `clock`, also for its deadlines. Calls under way must not miss them when the clock is turned.
pub(crate) fn by_hand(clock: &ManualClock) -> RedisBuilder {
    let ages = Duration::from_secs(10 * 365 * 24 * 60 * 60);
    // Held places are renewed in the background, also by that clock.
    let store = patient().clock(clock).deadline(ages).connect_timeout(ages);
    store.background(4_096, ages).concurrency_lease(ages)
}

/// A builder for a patient store with rows of its own, so that a busy machine fails no test.
pub(crate) fn patient() -> RedisBuilder {
    let minute = Duration::from_secs(60);
    Redis::builder().prefix(&own_prefix()).deadline(minute).connect_timeout(minute)
}

pub(crate) fn open(builder: RedisBuilder) -> Redis {
    let _entered = runtime().enter();
    builder.build().expect("the settings are valid")
}

/// A patient store on a server.
pub(crate) fn on(server: &Server) -> Redis {
    open(patient().url(&server.url()))
}

/// How much is left of `limit` on the key `name`.
pub(crate) fn left(store: &Redis, limit: Limit, name: &str) -> u64 {
    let charge = Charge::of(limit, key(name), 1);
    let peeked = answer(store.peek(&charge)).expect("the store answers");
    peeked.decision(&charge).remaining().expect("one limit")
}

/// The names of the rows on a server with a prefix.
pub(crate) fn rows(server: &Server, prefix: &str) -> Vec<String> {
    let (mut names, mut cursor) = (Vec::new(), "0".to_owned());
    loop {
        let pattern = format!("{prefix}*");
        let found = server.cli(["SCAN", &cursor, "MATCH", &pattern, "COUNT", "1000"]).list();
        let [next, found] = found.try_into().expect("a cursor and names");
        names.extend(found.list().into_iter().map(Reply::text));
        cursor = next.text();
        if cursor == "0" {
            return names;
        }
    }
}

/// Waits until everything has been settled.
pub(crate) fn settled(store: &Redis) {
    runtime().block_on(store.flush());
}
