//! A store around a limiter that other code uses too.

use std::sync::Arc;
use std::time::Duration;

use governor::clock::FakeRelativeClock;
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use sluicegate_core::adapter::Charge;
use sluicegate_core::key::KeyBuf;
use sluicegate_core::store::Store;
use sluicegate_core::{Decision, Limit};
use sluicegate_governor::{Around, Check, limit};

use super::key;

type Informed<K, S> = RateLimiter<K, S, FakeRelativeClock, StateInformationMiddleware>;

fn quota() -> Quota {
    Quota::per_second(50.try_into().unwrap()).allow_burst(2.try_into().unwrap())
}

fn direct() -> (Around<Informed<NotKeyed, InMemoryState>>, FakeRelativeClock) {
    let clock = FakeRelativeClock::default();
    let limiter = RateLimiter::direct_with_clock(quota(), clock.clone()).with_middleware();
    (Around::new(Arc::new(limiter), quota()), clock)
}

fn keyed() -> Around<Informed<KeyBuf, HashMapStateStore<KeyBuf>>> {
    let limiter = RateLimiter::hashmap_with_clock(quota(), FakeRelativeClock::default());
    Around::new(Arc::new(limiter.with_middleware()), quota())
}

fn charge(name: &str, cost: u64) -> Charge {
    Charge::of(limit(quota()).unwrap(), key(name), cost)
}

fn told<L: Check>(store: &Around<L>, charge: &Charge) -> Decision {
    store.take(charge).now().unwrap().decision(charge)
}

#[test]
fn who_waits_exactly_retry_after_is_admitted_and_a_tick_earlier_refused() {
    let (store, clock) = direct();
    let spend = || told(&store, &charge("", 1));
    assert_eq!(spend().remaining(), Some(1));
    assert_eq!(spend().remaining(), Some(0));
    let refused = spend();
    assert_eq!(refused.retry_after(), Some(Duration::from_millis(20)));
    assert!(refused.statuses().all(|status| status.refused && status.charged == 0));
    clock.advance(Duration::from_micros(19_999));
    assert_eq!(spend().retry_after(), Some(Duration::from_micros(1)));
    clock.advance(Duration::from_micros(1));
    assert!(spend().is_admitted());
}

#[test]
fn what_other_code_spends_counts() {
    let clock = FakeRelativeClock::default();
    let limiter: Arc<Informed<_, _>> =
        Arc::new(RateLimiter::direct_with_clock(quota(), clock).with_middleware());
    let store = Around::new(Arc::clone(&limiter), quota());
    assert!(limiter.check().is_ok());
    assert!(store.take(&charge("", 1)).now().unwrap().is_admitted());
    assert!(!store.take(&charge("", 1)).now().unwrap().is_admitted());
    assert!(limiter.check().is_err());
}

#[test]
fn two_keys_are_two_budgets_where_the_limiter_has_keys() {
    let store = keyed();
    for name in ["alice", "bob"] {
        assert!(store.take(&charge(name, 2)).now().unwrap().is_admitted());
        assert!(!store.take(&charge(name, 1)).now().unwrap().is_admitted());
    }
}

#[test]
fn an_impossible_request_is_refused_for_good() {
    let (store, _clock) = direct();
    for cost in [3, u64::from(u32::MAX) + 1, u64::MAX] {
        let refused = store.take(&charge("", cost)).now().unwrap();
        assert!(!refused.is_admitted());
        assert_eq!(refused.retry_after(), None);
    }
    assert_eq!(told(&store, &charge("", 0)).remaining(), Some(2));
}

#[test]
fn what_the_limiter_cannot_do_is_said() {
    let (store, _clock) = direct();
    assert!(store.check(&limit(quota()).unwrap().named("mine").soft(1)).is_ok());
    let other = store.check(&Limit::per_second(50)).unwrap_err();
    assert!(other.to_string().contains("another quota"), "{other}");
    assert!(store.check(&Limit::concurrent(2)).is_err());

    let mut several = charge("alice", 1);
    several.add(limit(quota()).unwrap().named("two"), KeyBuf::new(), 1).unwrap();
    assert!(store.take(&several).now().unwrap_err().is_unsupported());
    assert!(store.peek(&charge("", 1)).now().unwrap_err().is_unsupported());
    assert!(store.reset(&charge("", 1)).now().unwrap_err().is_unsupported());
    assert_eq!(told(&store, &charge("", 1)).remaining(), Some(1), "nothing was spent");
}
