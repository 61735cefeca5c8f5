//! What the layer answers, and what it leaves alone.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{app, get, header, secs, send, store};
use http::{Request, Response};
use sluicegate::adapter::{Peer, Refusal, key_of};
use sluicegate::key::Optional;
use sluicegate::limit::Limits;
use sluicegate::store::{Blocks, OnStoreError};
use sluicegate::{Decision, Fields, Header, Ip, Limit, Memory, RateLimitLayer, Rejection, Route};
use tower::ServiceExt;

const CLIENT: Header = Header("x-client");

#[tokio::test]
async fn what_exceeds_the_limit_is_answered_with_429_and_when_to_come_back() {
    let (store, clock) = store();
    let app = app(RateLimitLayer::new(Limit::per_minute(2).by(CLIENT)).store(store));

    let first = send(&app, "/", "alice").await;
    assert_eq!(first.status(), 200);
    assert_eq!(header(&first, "ratelimit-policy"), r#""2/minute";q=2;w=60"#);
    assert_eq!(header(&first, "ratelimit"), r#""2/minute";r=1;t=30"#);
    assert_eq!(send(&app, "/", "alice").await.status(), 200);

    let refused = send(&app, "/", "alice").await;
    assert_eq!(refused.status(), 429);
    assert_eq!(header(&refused, "retry-after"), "30");
    assert_eq!(header(&refused, "ratelimit"), r#""2/minute";r=0;t=30"#);
    assert_eq!(header(&refused, "cache-control"), "no-store");
    assert_eq!(header(&refused, "content-type"), "application/problem+json");
    assert!(refused.body().contains("quota-exceeded"), "{}", refused.body());

    assert_eq!(send(&app, "/", "bob").await.status(), 200);
    clock.advance(secs(30));
    assert_eq!(send(&app, "/", "alice").await.status(), 200);
    assert_eq!(send(&app, "/", "alice").await.status(), 429);
}

#[tokio::test]
async fn retry_after_rounded_up_admits_who_waits_so_long() {
    let (store, clock) = store();
    let app = app(RateLimitLayer::new(Limit::per_second(3).by(CLIENT)).store(store));
    for _ in 0..3 {
        assert_eq!(send(&app, "/", "alice").await.status(), 200);
    }
    let refused = send(&app, "/", "alice").await;
    let seconds: u64 = header(&refused, "retry-after").parse().unwrap();
    assert!(seconds >= 1);
    clock.advance(secs(seconds));
    assert_eq!(send(&app, "/", "alice").await.status(), 200);
}

#[tokio::test]
async fn several_limits_are_charged_all_or_none() {
    let (store, clock) = store();
    let limits = Limits::from([Limit::fixed_window(2, secs(1)), Limit::fixed_window(3, secs(60))]);
    let app = app(RateLimitLayer::new(limits.by(CLIENT)).store(store));
    let mut served = 0;
    for _ in 0..10 {
        for _ in 0..5 {
            served += usize::from(send(&app, "/", "alice").await.status() == 200);
        }
        clock.advance(secs(1));
    }
    assert_eq!(served, 3, "refusals by the short limit were charged to the long one");
}

#[tokio::test]
async fn fields_can_be_chosen() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::per_minute(2).soft(1).by(CLIENT)).store(store);
    let off = app(layer.clone().fields(Fields::NONE));
    let both = app(layer.fields(Fields::DRAFT.and(Fields::X_RATE_LIMIT)));

    let first = send(&off, "/", "alice").await;
    assert!(first.headers().is_empty(), "{:?}", first.headers());

    let second = send(&both, "/", "alice").await;
    assert_eq!(header(&second, "x-ratelimit-limit"), "2");
    assert_eq!(header(&second, "x-ratelimit-remaining"), "0");
    assert_eq!(header(&second, "x-ratelimit-reset"), "30");
    assert!(!header(&second, "x-ratelimit-warning").is_empty());
    assert_eq!(header(&second, "ratelimit"), r#""2/minute";r=0;t=30;sluicegate-soft"#);

    let refused = send(&off, "/", "alice").await;
    assert_eq!(header(&refused, "retry-after"), "30");
    assert_eq!(header(&refused, "ratelimit"), "");
}

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
async fn the_operator_can_replace_the_whole_response() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::per_minute(1).by(CLIENT)).store(store).respond_with(
        |refusal: &Refusal, request: &Request<String>| {
            let body = format!("{} at {}", refusal.status(), request.uri().path());
            Response::builder().status(420).header("retry-after", "99").body(body).unwrap()
        },
    );
    let app = app(layer);
    send(&app, "/tea", "alice").await;
    let refused = send(&app, "/tea", "alice").await;
    assert_eq!(refused.status(), 420);
    assert_eq!(refused.body(), "429 at /tea");
    assert_eq!(header(&refused, "retry-after"), "99", "what the operator said was overwritten");
}

/// A request that has no key.
fn keyless() -> Request<String> {
    Request::new(String::new())
}

#[tokio::test]
async fn a_response_of_ones_own_for_too_many_leaves_other_refusals_alone() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::per_minute(1).by(CLIENT))
        .store(store)
        .respond_to_too_many(|refusal: &Refusal, _: &Request<String>| {
            Response::builder().status(420).body(format!("was {}", refusal.status())).unwrap()
        });
    let app = app(layer);
    send(&app, "/", "alice").await;
    let refused = send(&app, "/", "alice").await;
    assert_eq!((refused.status().as_u16(), refused.body().as_str()), (420, "was 429"));
    assert_eq!(header(&refused, "retry-after"), "60");
    assert_ne!(header(&refused, "ratelimit"), "");
    let missing = app.oneshot(keyless()).await.unwrap();
    assert_eq!(missing.status(), 400);
    assert_eq!(header(&missing, "content-type"), "application/problem+json");
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

/// In a process of its own, since no other test may have said it before.
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
async fn redirects_go_where_the_operator_said_without_retry_after() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::per_minute(1).by(CLIENT))
        .store(store)
        .rejection(Rejection::redirect("https://busy.example.com/"));
    let counts = layer.clone();
    let app = app(layer);
    send(&app, "/", "alice").await;
    let sent = send(&app, "/", "alice").await;
    assert_eq!(sent.status(), 307);
    assert_eq!(header(&sent, "location"), "https://busy.example.com/");
    assert_eq!(header(&sent, "retry-after"), "");
    assert_eq!(counts.counts().redirected, 1);
}

#[tokio::test]
async fn degraded_requests_are_served_less() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::per_minute(1).by(CLIENT))
        .store(store)
        .rejection(Rejection::degrade());
    let app = app(layer);
    assert_eq!(send(&app, "/", "alice").await.body(), "all");
    let degraded = send(&app, "/", "alice").await;
    assert_eq!((degraded.status().as_u16(), degraded.body().as_str()), (200, "less"));
    assert!(!degraded.extensions().get::<Decision>().unwrap().is_admitted());
}

#[tokio::test]
async fn shadow_mode_refuses_nothing_and_reports_all() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::per_minute(1).by(CLIENT))
        .store(store)
        .rejection(Rejection::shadow());
    let counts = layer.clone();
    let app = app(layer);
    for _ in 0..5 {
        let served = send(&app, "/", "alice").await;
        assert_eq!((served.status().as_u16(), served.body().as_str()), (200, "all"));
    }
    assert_eq!(counts.counts().shadowed, 4);
    assert_eq!(counts.counts().refused, 0);
}

#[tokio::test]
async fn a_limit_on_trial_refuses_nothing_and_is_reported_beside_one_that_does() {
    let (store, _clock) = store();
    let limits = [Limit::per_minute(1).named("trial").shadow(), Limit::per_minute(3).named("real")];
    let layer = RateLimitLayer::new(Limits::from(limits).by(CLIENT)).store(store);
    let counts = layer.clone();
    let app = app(layer);
    for status in [200, 200, 200, 429, 429] {
        let served = send(&app, "/", "alice").await;
        assert_eq!(served.status().as_u16(), status);
        assert_eq!(served.headers()["ratelimit-policy"], "\"real\";q=3;w=60");
        assert!(!served.headers()["ratelimit"].to_str().unwrap().contains("trial"));
    }
    assert_eq!((counts.counts().shadowed, counts.counts().refused), (2, 2));
}

#[tokio::test]
async fn of_a_limit_on_trial_alone_clients_are_told_nothing() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::per_minute(1).shadow().by(CLIENT)).store(store);
    let counts = layer.clone();
    let app = app(layer);
    for _ in 0..5 {
        let served = send(&app, "/", "alice").await;
        assert_eq!(served.status().as_u16(), 200);
        assert!(!served.headers().contains_key("ratelimit-policy"));
        assert!(!served.headers().contains_key("ratelimit"));
    }
    assert_eq!(counts.counts().shadowed, 4);
}

#[tokio::test]
async fn a_closure_can_choose_what_happens() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::per_minute(1).ban(secs(600)).by(CLIENT))
        .store(store)
        .rejection(Rejection::from_fn(|decision| match decision.is_banned() {
            true => Rejection::block(),
            false => Rejection::degrade(),
        }));
    let app = app(layer);
    send(&app, "/", "alice").await;
    let banned = send(&app, "/", "alice").await;
    assert_eq!(banned.status(), 429);
    assert_eq!(header(&banned, "retry-after"), "660");
    assert!(banned.body().contains("abnormal-usage-detected"), "{}", banned.body());
}

#[tokio::test]
async fn an_outer_layer_gives_its_charge_back_when_an_inner_one_refuses() {
    let (store, _clock) = store();
    let strict =
        RateLimitLayer::new(Limit::per_hour(1).named("strict").by(CLIENT)).store(store.clone());
    let wide = RateLimitLayer::new(Limit::per_hour(3).named("wide").by(CLIENT)).store(store);
    let wide_alone = app(wide.clone());
    let both = app(tower::ServiceBuilder::new().layer(wide).layer(strict).into_inner());

    let served = send(&both, "/", "alice").await;
    let items: Vec<_> = served.headers().get_all("ratelimit").iter().collect();
    assert_eq!(items, [r#""strict";r=0;t=3600"#, r#""wide";r=2;t=1200"#]);
    for _ in 0..5 {
        let refused = send(&both, "/", "alice").await;
        assert_eq!(refused.status(), 429);
        assert_eq!(header(&refused, "ratelimit"), r#""strict";r=0;t=3600"#);
    }
    assert_eq!(send(&wide_alone, "/", "alice").await.status(), 200);
    assert_eq!(send(&wide_alone, "/", "alice").await.status(), 200);
    assert_eq!(send(&wide_alone, "/", "alice").await.status(), 429);
}

#[tokio::test]
async fn only_failures_are_counted_if_told_so() {
    let (store, _clock) = store();
    let rule = Limit::per_hour(2).by(CLIENT).count_if(|status| status == 401);
    let app = app(RateLimitLayer::new(rule).store(store));
    for _ in 0..10 {
        assert_eq!(send(&app, "/200", "alice").await.status(), 200);
    }
    assert_eq!(send(&app, "/401", "alice").await.status(), 401);
    assert_eq!(send(&app, "/401", "alice").await.status(), 401);
    assert_eq!(send(&app, "/401", "alice").await.status(), 429);
    assert_eq!(send(&app, "/200", "alice").await.status(), 429);
}

#[tokio::test]
async fn parallel_guesses_cannot_slip_through() {
    let (store, _clock) = store();
    let rule = Limit::per_hour(3).by(CLIENT).count_if(|status| status == 401);
    let layer = RateLimitLayer::new(rule).store(store);
    // None is answered before all have come in.
    let reached = Arc::new(AtomicUsize::new(0));
    let guesses = {
        let reached = Arc::clone(&reached);
        app(tower::ServiceBuilder::new()
            .layer(layer)
            .map_request(move |request: Request<String>| {
                reached.fetch_add(1, Ordering::Relaxed);
                request
            })
            .into_inner())
    };
    let mut tasks: Vec<_> = (0..20)
        .map(|_| tokio_test::task::spawn(guesses.clone().oneshot(get("/401", "mallory"))))
        .collect();
    for task in &mut tasks {
        let _ = task.poll();
    }
    assert_eq!(reached.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_charge_is_settled_to_what_the_response_cost() {
    let (store, clock) = store();
    let rule = Limit::fixed_window(100, secs(60))
        .by(CLIENT)
        .cost(10)
        .settle_cost(|reply| std::str::from_utf8(reply.header("x-cost")?).ok()?.parse().ok());
    let layer = RateLimitLayer::new(rule).store(store).extensions(true);
    let handler = tower::service_fn(|request: Request<String>| async move {
        let cost = request.uri().path().trim_start_matches('/').to_owned();
        let response = Response::builder().header("x-cost", cost).body(String::new());
        Ok::<_, std::convert::Infallible>(response.unwrap())
    });
    let app = tower::ServiceBuilder::new().layer(layer).service(handler);
    let cost = |cost: u64| app.clone().oneshot(get(&format!("/{cost}"), "alice"));

    assert_eq!(cost(1).await.unwrap().status(), 200);
    assert_eq!(cost(0).await.unwrap().status(), 200);
    // 1 is spent; an estimate of 10 turns out as 150: beyond the limit.
    assert_eq!(cost(150).await.unwrap().status(), 200);
    assert_eq!(cost(1).await.unwrap().status(), 429);
    clock.advance(secs(60));
    // 51 were spent on this window's account.
    let served = cost(10).await.unwrap();
    assert_eq!(served.status(), 200);
    assert_eq!(served.extensions().get::<Decision>().unwrap().remaining(), Some(39));
}

#[tokio::test]
async fn a_full_store_is_never_too_many_requests() {
    let (_, clock) = store();
    let tiny = || Memory::builder().capacity(1).clock(&clock).build();
    let limit = Limit::per_hour(1).when_full(sluicegate::limit::WhenFull::Admit);
    let layer = RateLimitLayer::new(limit.by(CLIENT));

    let open = layer.clone().store(tiny());
    let counts = open.clone();
    let app_open = app(open);
    for client in 0..200 {
        assert_eq!(send(&app_open, "/", &client.to_string()).await.status(), 200);
    }
    assert!(counts.counts().store_failures > 0);

    let closed = app(layer.store(tiny()).on_store_error(OnStoreError::Refuse));
    let mut unavailable = 0;
    for client in 0..200 {
        let response = send(&closed, "/", &client.to_string()).await;
        assert_ne!(response.status(), 429);
        if response.status() == 503 {
            unavailable += 1;
            assert!(response.body().contains("temporary-reduced-capacity"));
        }
    }
    assert!(unavailable > 0);
}

#[tokio::test]
#[should_panic(expected = "the store cannot keep the limit `100/minute`")]
async fn a_store_says_at_the_start_what_it_cannot_keep() {
    use sluicegate::adapter::{Answer, Charge, Debit, Receipt};
    use sluicegate::limit::LimitError;
    use sluicegate::store::Store;

    #[derive(Clone)]
    struct Picky;

    impl Store for Picky {
        type Future = <Memory as Store>::Future;

        fn take(&self, _: &Charge) -> Answer<Self::Future> {
            unreachable!("it is not asked")
        }
        fn peek(&self, _: &Charge) -> Answer<Self::Future> {
            unreachable!("it is not asked")
        }
        fn reset(&self, _: &Charge) -> Answer<Self::Future> {
            unreachable!("it is not asked")
        }
        fn settle(&self, _: &Debit, _: &Receipt, _: u64) {}
        fn check(&self, _: &Limit) -> Result<(), LimitError> {
            Err("".parse::<Limit>().unwrap_err())
        }
    }

    let _ = RateLimitLayer::new(Limit::per_minute(100).by(CLIENT)).store(Picky);
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
async fn the_older_fields_speak_of_the_innermost_layer() {
    let (store, _clock) = store();
    let fields = Fields::X_RATE_LIMIT;
    let wide = RateLimitLayer::new(Limit::per_minute(1_000).by(CLIENT)).store(store.clone());
    let strict = RateLimitLayer::new(Limit::per_minute(2).by(CLIENT)).store(store);
    let layers =
        tower::ServiceBuilder::new().layer(wide.fields(fields)).layer(strict.fields(fields));
    let served = send(&app(layers.into_inner()), "/", "alice").await;
    assert_eq!(header(&served, "x-ratelimit-limit"), "2");
    assert_eq!(header(&served, "x-ratelimit-remaining"), "1");
    assert_eq!(served.headers().get_all("x-ratelimit-limit").iter().count(), 1);
}

/// Under a shadow nothing waits: a request that leaves keeps its charge all the same.
#[tokio::test]
async fn a_shadowed_queue_counts_those_who_leave() {
    let (store, _clock) = store();
    let limit = Limit::leaky_bucket(1, secs(3_600)).queue(5);
    let layer = RateLimitLayer::new(limit.by(CLIENT)).store(store).rejection(Rejection::shadow());
    let counts = layer.clone();
    let handler = tower::service_fn(|_: Request<String>| {
        std::future::pending::<Result<Response<String>, std::convert::Infallible>>()
    });
    let app = tower::ServiceBuilder::new().layer(layer).service(handler);
    for _ in 0..20 {
        let mut gone = tokio_test::task::spawn(app.clone().oneshot(get("/", "alice")));
        assert!(gone.poll().is_pending());
    }
    assert_eq!(counts.counts().shadowed, 14);
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
    assert_eq!(address, common::key(&Ip::peer(), &request));
}
