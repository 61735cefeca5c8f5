//! What happens to a decision when the server fails, in each way that a server can fail.

mod breaker;
mod connecting;
mod deadline;
mod errors;
mod fake;
mod fleet;
mod sentinel;
mod settling;
mod slots;
mod storms;
mod trickle;

use std::error::Error;
use std::time::Duration;

use sluicegate_core::adapter::{Answer, Charge, Outcome};
use sluicegate_core::key::KeyBuf;
use sluicegate_core::store::{Store, StoreError};
use sluicegate_core::{Limit, ManualClock};
use sluicegate_redis::counts::RedisCounts;
use sluicegate_redis::future::RedisFuture;
use sluicegate_redis::{Failure, FailureKind, Redis, RedisBuilder};

use self::fake::Fake;

const DEADLINE: Duration = Duration::from_millis(50);
const TICK: Duration = Duration::from_micros(1);

fn builder(fake: &Fake, clock: &ManualClock) -> RedisBuilder {
    quick(Redis::builder().url(&fake.url()).clock(clock))
}

/// Short pauses: these tests do not wait for time to pass. A connection may take long on a busy machine.
fn quick(builder: RedisBuilder) -> RedisBuilder {
    let builder = builder.reconnect(Duration::from_millis(1), Duration::from_millis(4));
    builder.deadline(DEADLINE).connect_timeout(Duration::from_secs(20))
}

fn store(fake: &Fake, clock: &ManualClock) -> Redis {
    builder(fake, clock).build().expect("a good URL")
}

fn charge_of(name: &str) -> Charge {
    Charge::of(Limit::per_minute(100), KeyBuf::of(name), 1)
}

fn charge() -> Charge {
    charge_of("alice")
}

fn later(store: &Redis) -> RedisFuture {
    match store.take(&charge()) {
        Answer::Later(future) => future,
        Answer::Now(outcome) => panic!("no call is made: {outcome:?}"),
    }
}

async fn decide(store: &Redis, charge: &Charge) -> Result<Outcome, StoreError> {
    match store.take(charge) {
        Answer::Later(future) => future.await,
        Answer::Now(outcome) => outcome,
    }
}

async fn take(store: &Redis) -> Result<Outcome, StoreError> {
    decide(store, &charge()).await
}

fn kind(outcome: Result<Outcome, StoreError>) -> FailureKind {
    let error = outcome.expect_err("no decision");
    if error.is_too_slow() {
        return FailureKind::TooSlow;
    }
    let failure = error.source().and_then(|source| source.downcast_ref::<Failure>());
    failure.expect("the failure is the source").kind()
}

/// Waits until the store has counted what the test expects.
async fn until(store: &Redis, mut counted: impl FnMut(&RedisCounts) -> bool) {
    for _ in 0..20_000 {
        if counted(&store.counts()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the counts never got there: {:?}", store.counts());
}
