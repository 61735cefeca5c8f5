//! A request that passes several layers of one throttle: around a router, and around one of its routes.

use sluicegate::key::Const;
use tokio::time::timeout;
use tower::{ServiceBuilder, ServiceExt, service_fn};

use super::*;

#[test]
fn a_request_that_runs_does_not_wait_for_itself_in_a_second_layer() {
    let (_clock, handlers, throttle) = scene();
    let mut service = throttle.layer().layer(throttle.layer().layer(handlers.clone()));
    let mut first: Answering<Response<Body<Body<Full<Bytes>>>>> =
        Box::pin(service.call(get("/first")));
    let mut second: Answering<Response<Body<Body<Full<Bytes>>>>> =
        Box::pin(service.call(get("/second")));
    assert_waits(&mut first);
    assert_waits(&mut second);
    assert_eq!(handlers.started(), ["/first"]);
    handlers.answer_empty();
    assert_eq!(answered(&mut first).status(), 200);
    assert_waits(&mut second);
    assert_eq!(handlers.started(), ["/first", "/second"]);
    handlers.answer_empty();
    assert_eq!(answered(&mut second).status(), 200);
    let counts = throttle.snapshot().counts;
    assert_eq!((counts.offered, counts.started, throttle.snapshot().running), (2, 2, 0));
}

#[test]
fn another_throttle_further_in_has_its_own_queue() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let queue = Duration::from_millis(4);
    let outer = Throttle::builder().in_flight(2).queue(queue).clock(&clock).build().unwrap();
    let inner = one_at_a_time(&clock).build().unwrap();
    let mut service = outer.layer().layer(inner.layer().layer(handlers.clone()));
    let mut first: Answering<Response<Body<Body<Full<Bytes>>>>> = Box::pin(service.call(get("/1")));
    let mut second: Answering<Response<Body<Body<Full<Bytes>>>>> =
        Box::pin(service.call(get("/2")));
    assert_waits(&mut first);
    assert_waits(&mut second);
    assert_eq!((outer.snapshot().running, inner.snapshot().running), (2, 1));
    assert_eq!(handlers.started(), ["/1"]);
}

#[test]
fn a_handler_that_panics_inside_does_not_let_the_next_request_pass_uncounted() {
    let clock = ManualClock::new();
    let throttle = one_at_a_time(&clock).build().unwrap();
    let panics = tower::service_fn(
        async |_: Request<String>| -> Result<Response<Full<Bytes>>, Infallible> {
            panic!("a handler's own")
        },
    );
    let mut service = throttle.layer().layer(panics);
    let mut request = Box::pin(service.call(get("/panics")));
    let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = request.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }));
    assert!(polled.is_err());
    // The future that panicked is not dropped yet.
    let handlers = Handlers::default();
    let mut next = send(&throttle, &handlers, "/next");
    assert_waits(&mut next);
    assert_eq!(throttle.snapshot().queued, 1);
    drop(request);
    assert_waits(&mut next);
    assert_eq!(handlers.started(), ["/next"]);
}

type Plain = Request<String>;

async fn hello(_: Plain) -> Result<Response<Full<Bytes>>, Infallible> {
    tokio::task::yield_now().await;
    Ok(Response::new(Full::default()))
}

/// The status of a request of this path; panics if it waits for itself.
async fn ask<S, B>(service: S, path: &str) -> u16
where
    S: Service<Plain, Response = Response<B>, Error: std::fmt::Debug>,
{
    let answer = timeout(Duration::from_secs(20), service.oneshot(get(path))).await;
    answer.expect("it waits for itself").unwrap().status().as_u16()
}

#[tokio::test]
async fn a_request_does_not_wait_for_itself_in_another_task() {
    let clock = ManualClock::new();
    let throttle = one_at_a_time(&clock).build().unwrap();
    let other = one_at_a_time(&clock).build().unwrap();
    let inner = ServiceBuilder::new().layer(throttle.layer()).service_fn(hello);
    let spawned = service_fn(move |request| {
        let inner = inner.clone();
        async { tokio::spawn(inner.oneshot(request)).await.unwrap() }
    });
    let layers = ServiceBuilder::new().layer(throttle.layer()).layer(other.layer());
    let service = layers.service(spawned);
    for sent in 1..=100 {
        assert_eq!(ask(service.clone(), "/").await, 200);
        let counts = throttle.snapshot().counts;
        assert_eq!((counts.offered, counts.started, throttle.snapshot().running), (sent, sent, 0));
    }
}

#[tokio::test]
async fn a_request_does_not_wait_for_itself_behind_a_buffer() {
    let throttle = one_at_a_time(&ManualClock::new()).build().unwrap();
    let inner = ServiceBuilder::new().layer(throttle.layer()).service_fn(hello);
    let buffered = ServiceBuilder::new().layer(throttle.layer()).buffer(4).service(inner);
    for sent in 1..=100 {
        let (first, second) = (ask(buffered.clone(), "/"), ask(buffered.clone(), "/"));
        assert_eq!(tokio::join!(first, second), (200, 200));
        assert_eq!(throttle.snapshot().counts.offered, 2 * sent);
    }
}

/// All requests have one key, and nothing shows that some will meet a second layer.
#[tokio::test]
async fn a_throttle_is_never_full_of_requests_that_wait_for_themselves() {
    let builder = Throttle::builder().in_flight(3).queue(Duration::from_secs(1));
    let throttle = builder.clock(ManualClock::new()).build().unwrap();
    let inner = ServiceBuilder::new().layer(throttle.layer()).service_fn(hello);
    let dispatched = service_fn(move |request: Plain| {
        let inner = inner.clone();
        async move {
            if request.uri().path() == "/plain" {
                return Ok(Response::new(Full::<Bytes>::default()));
            }
            // All of them are started by then.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            let answer = tokio::spawn(inner.oneshot(request)).await.unwrap()?;
            Ok::<_, Infallible>(answer.map(|_| Full::default()))
        }
    });
    let layer = throttle.layer().predict_by(Const("all"));
    let service = ServiceBuilder::new().layer(layer).service(dispatched);
    assert_eq!(ask(service.clone(), "/plain").await, 200);
    let nested = (0..20).map(|_| tokio::spawn(ask(service.clone(), "/nested")));
    for answer in nested.collect::<Vec<_>>() {
        assert_eq!(answer.await.unwrap(), 200);
    }
    assert_eq!(throttle.snapshot().running, 0);
}
