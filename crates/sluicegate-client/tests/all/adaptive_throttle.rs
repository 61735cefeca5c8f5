//! The layer that does not send what its server would reject.

use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use http::{Request, Response};
use sluicegate::key::Path;
use sluicegate::{Limit, ManualClock, Memory};
use sluicegate_client::adaptive_throttle::AdaptiveThrottleBuilder;
use sluicegate_client::outgoing::Context;
use sluicegate_client::pace::{Pacer, Patience};
use sluicegate_client::{AdaptiveThrottleLayer, BoxError, PaceLayer, Refused};
use tower::{Layer, Service, ServiceExt, service_fn};

#[derive(Clone, Default)]
struct Server {
    status: Arc<AtomicU16>,
    level: Arc<Mutex<Option<&'static str>>>,
    seen: Arc<AtomicUsize>,
}

impl Server {
    fn set(&self, status: u16, level: Option<&'static str>) {
        self.status.store(status, Relaxed);
        *self.level.lock().unwrap() = level;
    }

    fn answer(&self) -> Response<()> {
        self.seen.fetch_add(1, Relaxed);
        let mut response = Response::builder().status(self.status.load(Relaxed));
        if let Some(level) = *self.level.lock().unwrap() {
            response = response.header("sluicegate-admission", level);
        }
        response.body(()).unwrap()
    }
}

async fn send(
    layer: &AdaptiveThrottleLayer,
    server: &Server,
    uri: &str,
    class: Option<&'static str>,
) -> Result<Response<()>, BoxError> {
    let server = server.clone();
    let mut service = layer.layer(service_fn(move |_: Request<()>| {
        let response = server.answer();
        async move { Ok::<_, BoxError>(response) }
    }));
    let mut request = Request::get(uri).body(()).unwrap();
    if let Some(class) = class {
        request.extensions_mut().insert(Context::new().criticality(class));
    }
    service.ready().await?.call(request).await
}

fn new(
    settings: impl FnOnce(AdaptiveThrottleBuilder) -> AdaptiveThrottleBuilder,
) -> (AdaptiveThrottleLayer, Server, ManualClock) {
    let clock = ManualClock::new();
    let layer = settings(AdaptiveThrottleLayer::builder().clock(&clock)).build().unwrap();
    (layer, Server::default(), clock)
}

#[tokio::test]
async fn one_server_that_rejects_does_not_slow_the_others() {
    let (layer, server, _) = new(|builder| builder.at_most(1.0));
    server.set(503, None);
    for _ in 0..500 {
        let _ = send(&layer, &server, "http://a/", None).await;
    }
    let sent = server.seen.swap(0, Relaxed);
    assert!(sent < 60, "{sent}");
    server.set(200, None);
    for _ in 0..500 {
        send(&layer, &server, "http://b/", None).await.unwrap();
    }
    assert_eq!(layer.servers(), 2);
}

#[tokio::test]
async fn a_few_failures_in_the_beginning_reject_nothing() {
    let (layer, server, _) = new(|builder| builder);
    server.set(503, None);
    for _ in 0..20 {
        assert!(send(&layer, &server, "http://a/", None).await.is_ok());
    }
}

#[tokio::test]
async fn requests_of_a_class_that_is_shed_are_not_sent_while_that_is_to_be_believed() {
    let (layer, server, clock) = new(|builder| builder);
    server.set(200, Some("2;of=4;t=2"));
    send(&layer, &server, "http://a/", None).await.unwrap();
    let error = send(&layer, &server, "http://a/", Some("SHEDDABLE")).await.unwrap_err();
    assert_eq!(Refused::find(&*error).unwrap().retry_after(), Some(Duration::from_secs(2)));
    assert!(send(&layer, &server, "http://b/", Some("SHEDDABLE")).await.is_ok());
    clock.advance(Duration::from_secs(2));
    assert!(send(&layer, &server, "http://a/", Some("SHEDDABLE")).await.is_ok());
    // The first response without the field takes the level back.
    server.set(200, None);
    assert!(send(&layer, &server, "http://a/", Some("CRITICAL")).await.is_ok());
    assert!(send(&layer, &server, "http://a/", Some("SHEDDABLE")).await.is_ok());
}

#[tokio::test]
async fn callers_that_leave_do_not_count_as_rejected() {
    let (layer, server, _) = new(|builder| builder.at_most(1.0));
    let mut stalled = layer.layer(service_fn(|_: Request<()>| {
        std::future::pending::<Result<Response<()>, BoxError>>()
    }));
    for _ in 0..500 {
        let request = Request::get("http://a/").body(()).unwrap();
        drop(stalled.ready().await.unwrap().call(request));
    }
    server.set(200, None);
    for _ in 0..100 {
        send(&layer, &server, "http://a/", None).await.unwrap();
    }
}

/// Requests to a server that does not answer, each of which its caller gives up after `patience`: how many were sent.
async fn given_up(layer: &AdaptiveThrottleLayer, clock: &ManualClock, patience: Duration) -> usize {
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = seen.clone();
    let mut hung = layer.layer(service_fn(move |_: Request<()>| {
        counted.fetch_add(1, Relaxed);
        std::future::pending::<Result<Response<()>, BoxError>>()
    }));
    for _ in 0..500 {
        let request = Request::get("http://a/").body(()).unwrap();
        let call = hung.ready().await.unwrap().call(request);
        clock.advance(patience);
        drop(call);
    }
    seen.load(Relaxed)
}

#[tokio::test]
async fn a_timeout_of_the_caller_counts_as_rejected() {
    let (layer, _, clock) = new(|builder| builder);
    let sent = given_up(&layer, &clock, Duration::from_millis(100)).await;
    // One in twenty, one in each of 50 seconds, and the first ones.
    assert!(sent < 150, "{sent}");
}

#[tokio::test]
async fn callers_that_hang_up_before_a_slow_server_answers_are_not_rejected() {
    let (layer, server, clock) = new(|builder| builder);
    server.set(200, None);
    // It takes a second.
    let taking = clock.clone();
    let mut slow = layer.layer(service_fn(move |_: Request<()>| {
        taking.advance(Duration::from_secs(1));
        let response = server.answer();
        async move { Ok::<_, BoxError>(response) }
    }));
    for _ in 0..20 {
        let request = Request::get("http://a/").body(()).unwrap();
        let _ = slow.ready().await.unwrap().call(request).await;
    }
    assert_eq!(given_up(&layer, &clock, Duration::from_micros(10)).await, 500);
}

#[tokio::test]
async fn a_request_that_waits_in_this_program_when_its_caller_leaves_says_nothing_of_the_server() {
    let (layer, server, clock) = new(|builder| builder.at_most(1.0));
    let obey = sluicegate_client::ObeyLayer::builder().clock(&clock).build().unwrap();
    server.set(429, None);
    let service = {
        let server = server.clone();
        service_fn(move |_: Request<()>| {
            let response = Response::builder().status(429).header("retry-after", "20");
            server.seen.fetch_add(1, Relaxed);
            async move { Ok::<_, BoxError>(response.body(()).unwrap()) }
        })
    };
    let mut waiting = layer.layer(obey.layer(service));
    let request = || Request::get("http://a/").body(()).unwrap();
    waiting.ready().await.unwrap().call(request()).await.unwrap();
    for _ in 0..100 {
        let call = waiting.ready().await.unwrap().call(request());
        clock.advance(Duration::from_millis(100));
        drop(call);
    }
    assert_eq!(server.seen.load(Relaxed), 1);
    server.set(200, None);
    for _ in 0..100 {
        send(&layer, &server, "http://a/", None).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_is_not_silent_while_requests_to_it_wait_in_this_program() {
    for patience in [Patience::UntilAdmitted, Patience::Not] {
        let (layer, server, clock) = new(|builder| builder.at_most(1.0));
        let memory = Memory::builder().capacity(10_000).clock(&clock).build();
        let pacer = Pacer::counted_in(memory, Limit::per_hour(1)).patience(patience);
        let seen = server.seen.clone();
        server.set(200, None);
        // It does not answer `/slow` in time.
        let mut client = layer.layer(PaceLayer::new(Path, pacer).layer(service_fn(
            move |request: Request<()>| {
                let response = server.answer();
                async move {
                    if request.uri().path().starts_with("/slow") {
                        std::future::pending::<()>().await;
                    }
                    Ok::<_, BoxError>(response)
                }
            },
        )));
        let mut call =
            |path: &str| client.call(Request::get(format!("http://a{path}")).body(()).unwrap());
        call("/paced").await.unwrap();
        for turn in 0..100 {
            let mut held = std::pin::pin!(call("/paced"));
            let is_held = goes_on(held.as_mut()).await;
            assert_eq!(is_held, patience == Patience::UntilAdmitted);
            clock.advance(Duration::from_secs(10));
            for number in 0..4 {
                let mut slow = Box::pin(call(&format!("/slow/{turn}/{number}")));
                goes_on(slow.as_mut()).await;
                clock.advance(Duration::from_millis(2));
            }
            call(&format!("/{turn}")).await.unwrap();
        }
        assert_eq!(seen.load(Relaxed), 501, "callers that hang up have changed their minds");
    }
}

/// Polls once. Returns whether it goes on.
async fn goes_on<F: Future>(mut future: std::pin::Pin<&mut F>) -> bool {
    std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

#[tokio::test]
async fn what_is_shed_by_class_says_nothing_of_other_classes() {
    let (layer, server, clock) = new(|builder| builder);
    server.set(200, Some("2;of=4;t=60"));
    for _ in 0..50 {
        send(&layer, &server, "http://a/", None).await.unwrap();
        for _ in 0..9 {
            send(&layer, &server, "http://a/", Some("SHEDDABLE")).await.unwrap_err();
        }
        clock.advance(Duration::from_millis(10));
    }
}

#[tokio::test]
async fn what_a_layer_further_in_holds_back_says_nothing_of_the_server() {
    let (layer, server, _) = new(|builder| builder.at_most(1.0));
    let mut refusing = layer.layer(service_fn(|_: Request<()>| async {
        Err::<Response<()>, _>(Refused::new("enough", None))
    }));
    for _ in 0..500 {
        let request = Request::get("http://a/").body(()).unwrap();
        refusing.ready().await.unwrap().call(request).await.unwrap_err();
    }
    server.set(200, None);
    for _ in 0..100 {
        send(&layer, &server, "http://a/", None).await.unwrap();
    }
}

#[test]
fn no_secret_of_a_table_is_shown() {
    let shown = || {
        let clock = ManualClock::new();
        let obey = sluicegate_client::ObeyLayer::builder().clock(&clock).build().unwrap();
        let throttle = AdaptiveThrottleLayer::builder().clock(&clock).build().unwrap();
        format!("{obey:?} {throttle:?}")
    };
    assert_eq!(shown(), shown(), "each has a secret of its own");
}

#[test]
fn settings_that_make_no_sense_fail_when_the_layer_is_made() {
    let builder = AdaptiveThrottleLayer::builder;
    for (builder, named) in [
        (builder().k(0.5), "k is"),
        (builder().k(f64::NAN), "k is"),
        (builder().k(1e-320), "k is from 1 to 1000; 1e-320 was given"),
        (builder().at_most(1.5), "share"),
        (builder().at_most(-1e-320), "from 0 to 1; -1e-320 was given"),
        (builder().at_most(f64::NAN), "share"),
        (builder().window(Duration::ZERO), "window"),
        (builder().window(Duration::MAX), "window"),
        (builder().servers(0), "servers"),
    ] {
        let sentence = builder.build().unwrap_err().to_string();
        assert!(sentence.contains(named), "{sentence}");
    }
}
