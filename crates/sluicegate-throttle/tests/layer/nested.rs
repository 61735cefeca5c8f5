//! A request that passes several layers of one throttle: around a router, and around one of its routes.

use super::*;

#[test]
fn a_request_that_runs_does_not_wait_for_itself_in_a_second_layer() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let throttle = one_at_a_time(&clock).build().unwrap();
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
