use std::any::Any;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sluicegate_core::Memory;
use sluicegate_redis::counts::BreakerState;
use sluicegate_redis::{Leased, Redis};
use utoipa::ToSchema;

/// The state of the store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct StoreStatus {
    /// `memory`, `redis`, `leases` out of Redis, or `other`.
    pub kind: String,
    /// About how many keys the memory holds.
    pub keys: Option<u64>,
    /// The number of keys that the memory was made for.
    pub room: Option<u64>,
    /// How many requests a limit did not count because the memory was full.
    pub turned_away: Option<u64>,
    /// `closed` if Redis is asked, or `open` if it keeps failing and is asked only now and then.
    pub breaker: Option<String>,
    /// How often the breaker has opened.
    pub breaker_openings: Option<u64>,
    /// Connections to Redis that were made.
    pub connections: Option<u64>,
    /// The longest call to Redis, in microseconds.
    pub longest_call_us: Option<u64>,
    /// Tokens that were leased from Redis and are in hand.
    pub tokens_in_hand: Option<u64>,
    /// Requests that were decided by leased tokens, without Redis.
    pub decided_here: Option<u64>,
    /// Leased tokens that were not spent in their time.
    pub expired: Option<u64>,
    /// Decisions that the store did not make, by what was wrong.
    pub errors: BTreeMap<String, u64>,
}

/// A store whose state is known.
#[derive(Debug, Clone, Default)]
pub(crate) enum Source {
    Memory(Memory),
    Redis(Redis),
    Leased(Leased),
    #[default]
    Other,
}

impl Source {
    pub(crate) fn of(store: &dyn Any) -> Self {
        if let Some(memory) = store.downcast_ref::<Memory>() {
            return Self::Memory(memory.clone());
        }
        if let Some(leased) = store.downcast_ref::<Leased>() {
            return Self::Leased(leased.clone());
        }
        store.downcast_ref::<Redis>().map_or(Self::Other, |redis| Self::Redis(redis.clone()))
    }

    pub(super) fn status(&self, errors: BTreeMap<String, u64>) -> StoreStatus {
        let told = StoreStatus { errors, ..StoreStatus::default() };
        match self {
            Self::Memory(memory) => StoreStatus {
                kind: "memory".to_owned(),
                keys: Some(memory.about_len() as u64),
                room: Some(memory.capacity() as u64),
                turned_away: Some(memory.turned_away()),
                ..told
            },
            Self::Redis(redis) => of_redis(redis, told),
            Self::Leased(leased) => {
                let counts = leased.counts();
                StoreStatus {
                    kind: "leases".to_owned(),
                    tokens_in_hand: Some(counts.unspent),
                    decided_here: Some(counts.admitted_here + counts.refused_here),
                    expired: Some(counts.expired),
                    ..of_redis(leased.redis(), told)
                }
            }
            Self::Other => StoreStatus { kind: "other".to_owned(), ..told },
        }
    }
}

fn of_redis(redis: &Redis, told: StoreStatus) -> StoreStatus {
    let counts = redis.counts();
    let breaker = if counts.breaker == BreakerState::Open { "open" } else { "closed" };
    let longest = u64::try_from(counts.latency.longest.as_micros());
    StoreStatus {
        kind: "redis".to_owned(),
        breaker: Some(breaker.to_owned()),
        breaker_openings: Some(counts.breaker_openings),
        connections: Some(counts.connections),
        longest_call_us: longest.ok(),
        ..told
    }
}
