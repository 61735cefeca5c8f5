//! The keys that are refused most.

use sluicegate::observe::Watch;
use sluicegate::{Limit, Limiter, RateLimitLayer, Rejection};
use sluicegate_tests::stores::{Manner, TestStore};

use super::common::{CLIENT, app, secs, send, statuses, store};

#[tokio::test]
async fn a_watch_sees_what_a_limit_on_trial_would_refuse() {
    let watch = Watch::new(8);
    let (store, _clock) = store();
    let limits = [Limit::per_hour(1).named("trial").shadow(), Limit::per_hour(9).named("wide")];
    let app = app(RateLimitLayer::new(sluicegate::limit::Limits::from(limits).by(CLIENT))
        .store(store)
        .watch(&watch));
    assert_eq!(statuses(&app, "/", 3).await, [200, 200, 200]);
    let shown = watch.snapshot();
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert_eq!((shown[0].policy.as_str(), shown[0].refusals), ("trial", 2));
}

#[tokio::test]
async fn a_watch_is_told_of_whatever_a_limit_refuses() {
    for (rejection, status) in
        [(Rejection::block(), 429), (Rejection::degrade(), 200), (Rejection::shadow(), 200)]
    {
        let watch = Watch::new(8);
        let (store, _clock) = store();
        let layer = RateLimitLayer::new(Limit::per_hour(1).named("strict").by(CLIENT));
        let app = app(layer.store(store).rejection(rejection).watch(&watch));
        assert_eq!(statuses(&app, "/", 3).await, [200, status, status]);
        send(&app, "/", "bob").await;
        let shown = watch.snapshot().remove(0);
        assert_eq!((shown.policy.as_str(), shown.refusals, shown.keys.len()), ("strict", 2, 1));
        assert_eq!(shown.keys[0].who, "header:x-client=alice");
    }
}

#[tokio::test]
async fn a_limiter_tells_whom_it_refuses_but_for_what_is_only_spent() {
    let watch = Watch::new(8);
    let limiter = Limiter::new(Limit::per_hour(1).named("jobs")).watch(&watch);
    assert!(limiter.take("alice").now().unwrap().is_admitted());
    assert!(!limiter.peek("alice").now().unwrap().is_admitted());
    assert!(!limiter.spend("alice", 1).unwrap().is_admitted());
    assert!(watch.snapshot().is_empty());
    assert!(!limiter.take("alice").now().unwrap().is_admitted());
    assert!(limiter.acquire("alice", secs(1)).await.is_err());
    let (memory, _clock) = store();
    let remote = limiter.store(TestStore::new(memory, Manner::Later));
    assert!(remote.take("bob").await.unwrap().is_admitted());
    assert!(!remote.take("bob").await.unwrap().is_admitted());
    let keys = watch.snapshot().remove(0).keys;
    let keys: Vec<_> = keys.iter().map(|key| (key.who.as_str(), key.at_least)).collect();
    assert_eq!(keys, [("alice", 2), ("bob", 1)]);
}
