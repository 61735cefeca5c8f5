//! Keys that are missing, shared, or blocked.

use super::common::{CLIENT, keyless};
use super::common::{app, get, header, secs, send, store};
use http::Request;
use sluicegate::adapter::{Peer, key_of};
use sluicegate::key::Optional;
use sluicegate::store::Blocks;
use sluicegate::{Header, Ip, Limit, RateLimitLayer, Route};
use tower::ServiceExt;

#[tokio::test]
async fn a_missing_key_is_the_clients_400_or_the_servers_500_and_never_unlimited() {
    let (store, _clock) = store();
    let layer = || RateLimitLayer::new(Limit::per_minute(1).by(CLIENT)).store(store.clone());
    let keyless = || Request::get("/").body(String::new()).unwrap();

    let missing = app(layer()).oneshot(keyless()).await.unwrap();
    assert_eq!(missing.status(), 400);
    assert!(missing.body().contains("x-client"), "{}", missing.body());

    let unwired = RateLimitLayer::new(Limit::per_minute(1).by(Ip::peer()));
    let counts = unwired.clone();
    let missing = app(unwired).oneshot(keyless()).await.unwrap();
    assert_eq!(missing.status(), 500);
    assert_eq!(counts.counts().keyless, 1);

    let unwired = RateLimitLayer::new(Limit::per_minute(1).by(Route));
    assert_eq!(app(unwired).oneshot(keyless()).await.unwrap().status(), 500);

    let optional = app(RateLimitLayer::new(Limit::per_minute(1).by(Optional(CLIENT))));
    for _ in 0..3 {
        let served = optional.clone().oneshot(keyless()).await.unwrap();
        assert_eq!(served.status(), 200);
        assert_eq!(header(&served, "ratelimit"), "");
    }
}

#[tokio::test]
async fn what_the_server_lacks_stands_in_the_body_in_debug_builds_alone() {
    let unwired = RateLimitLayer::new(Limit::per_minute(1).by(sluicegate::Ip::peer()));
    let refused = app(unwired).oneshot(keyless()).await.unwrap();
    assert_eq!(refused.status(), 500);
    assert_eq!(
        refused.body().contains("debug assertions"),
        cfg!(debug_assertions),
        "{}",
        refused.body()
    );
    assert_eq!(
        refused.body().contains("see its log"),
        !cfg!(debug_assertions),
        "{}",
        refused.body()
    );
}

/// In a process of its own, because another test may have logged it before.
#[tokio::test]
async fn without_a_subscriber_what_the_server_lacks_is_said_once_on_standard_error() {
    const CHILD: &str = "SLUICEGATE_TEST_UNHEARD";
    if std::env::var_os(CHILD).is_some() {
        let unwired = app(RateLimitLayer::new(Limit::per_minute(1).by(sluicegate::Ip::peer())));
        for _ in 0..3 {
            assert_eq!(unwired.clone().oneshot(keyless()).await.unwrap().status(), 500);
        }
        // Another layer that lacks the same.
        let unwired = app(RateLimitLayer::new(Limit::per_hour(1).by(sluicegate::Ip::peer())));
        assert_eq!(unwired.oneshot(keyless()).await.unwrap().status(), 500);
        return;
    }
    let name = "without_a_subscriber_what_the_server_lacks_is_said_once_on_standard_error";
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(child.status.success());
    let told = String::from_utf8(child.stderr).unwrap();
    let lines: Vec<_> = told.lines().filter(|line| line.starts_with("sluicegate: ")).collect();
    let [line] = lines[..] else { panic!("{told}") };
    assert!(line.contains("requests are answered with 500: "), "{line}");
}

#[tokio::test]
async fn leaving_out_a_key_does_not_switch_off_the_limit_further_out() {
    let (store, _clock) = store();
    let all = RateLimitLayer::new(Limit::per_hour(3).by(sluicegate::Global)).store(store.clone());
    let own = RateLimitLayer::new(Limit::per_hour(9).by(Header("x-api-key"))).store(store);
    let app = app(tower::ServiceBuilder::new().layer(all).layer(own).into_inner());
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(send(&app, "/", "alice").await.status().as_u16());
    }
    assert_eq!(statuses, [400, 400, 400, 429, 429]);
}

#[tokio::test]
async fn a_client_of_a_layer_is_blocked_by_hand_through_its_key() {
    let (store, clock) = store();
    let store = Blocks::new(store);
    let app = app(RateLimitLayer::new(Limit::per_hour(10).by(CLIENT)).store(store.clone()));
    assert_eq!(send(&app, "/", "alice").await.status(), 200);

    let alice = key_of(&CLIENT, &get("/", "alice")).unwrap();
    store.block_key(alice, secs(60)).now().unwrap();
    let refused = send(&app, "/", "alice").await;
    assert_eq!((refused.status().as_u16(), header(&refused, "retry-after")), (429, "60"));
    assert_eq!(send(&app, "/", "bob").await.status(), 200);
    clock.advance(secs(60));
    let served = send(&app, "/", "alice").await;
    assert_eq!(header(&served, "ratelimit"), r#""10/hour";r=8;t=300"#, "nothing was charged");

    store.block_key(alice, secs(60)).now().unwrap();
    store.unblock_key(alice).now().unwrap();
    assert_eq!(send(&app, "/", "alice").await.status(), 200);
}

#[test]
fn the_key_of_a_request_is_the_one_that_a_rule_writes() {
    let mut request = get("/a", "alice");
    assert!(key_of(&Ip::peer(), &request).unwrap_err().is_server());
    request.extensions_mut().insert(Peer("192.0.2.7".parse().unwrap()));
    let address = key_of(&Ip::peer(), &request).unwrap();
    assert_ne!(address, key_of(&(Ip::peer(), CLIENT), &request).unwrap());
    assert_eq!(address, super::common::key(&Ip::peer(), &request));
}
