//! The keys that are refused most, and clients that are blocked by hand.

use super::common::{CLIENT, app, secs, statuses, store};
use actix_web::test::TestRequest;
use sluicegate_actix::adapter::key_of;
use sluicegate_actix::observe::Watch;
use sluicegate_actix::store::Blocks;
use sluicegate_actix::{Limit, RateLimit};

#[actix_web::test]
async fn a_watch_is_told_who_is_refused() {
    let watch = Watch::new(8).redacted(b"secret");
    let (store, _clock) = store();
    let limit = RateLimit::new(Limit::per_hour(1).named("strict").by(CLIENT));
    let app = app(limit.store(store).watch(&watch)).await;
    assert_eq!(statuses(&app, "/", 3).await, [200, 429, 429]);
    let shown = watch.snapshot().remove(0);
    assert_eq!((shown.policy.as_str(), shown.refusals), ("strict", 2));
    assert!(shown.keys[0].who.starts_with('$'), "{shown:?}");
}

#[actix_web::test]
async fn a_client_of_a_middleware_is_blocked_by_hand_through_its_key() {
    let store = Blocks::new(store().0);
    let app = app(RateLimit::new(Limit::per_hour(5).by(CLIENT)).store(store.clone())).await;
    assert_eq!(statuses(&app, "/", 1).await, [200]);
    let request = TestRequest::get().insert_header(("x-client", "alice")).to_http_request();
    let alice = key_of(&CLIENT, &request).unwrap();
    store.block_key(alice, secs(60)).now().unwrap();
    assert_eq!(statuses(&app, "/", 1).await, [429]);
    store.unblock_key(alice).now().unwrap();
    assert_eq!(statuses(&app, "/", 1).await, [200]);
}
