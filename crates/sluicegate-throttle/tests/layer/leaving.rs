use sluicegate::key::Const;
use sluicegate::{Limit, Memory, RateLimitLayer};
use tower::ServiceBuilder;

use super::*;

#[test]
fn a_client_that_leaves_the_queue_frees_its_place_and_cost() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let throttle = one_at_a_time(&clock).build().unwrap();
    let mut running = send(&throttle, &handlers, "/running");
    assert_waits(&mut running);
    let mut queued: Vec<_> = (0..4).map(|_| send(&throttle, &handlers, "/queued")).collect();
    queued.iter_mut().for_each(assert_waits);
    assert_eq!(answered(&mut send(&throttle, &handlers, "/full")).status(), 503);

    queued.pop();
    assert_eq!(throttle.snapshot().queued_cost, 3_000);
    let mut late = send(&throttle, &handlers, "/late");
    assert_waits(&mut late);
    drop((queued, late, running));
    let snapshot = throttle.snapshot();
    assert_eq!((snapshot.queued, snapshot.queued_cost, snapshot.running), (0, 0, 0));
    assert_eq!(snapshot.counts.cancelled, 5);
}

#[test]
fn one_that_leaves_after_it_was_told_to_start_lets_the_next_one_start() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let throttle = one_at_a_time(&clock).build().unwrap();
    let mut first = send(&throttle, &handlers, "/1");
    assert_waits(&mut first);
    let mut second = send(&throttle, &handlers, "/2");
    let mut third = send(&throttle, &handlers, "/3");
    assert_waits(&mut second);
    assert_waits(&mut third);
    handlers.answer_empty();
    answered(&mut first);
    // The second has been told, and is never polled again.
    drop(second);
    assert_waits(&mut third);
    assert_eq!(handlers.started(), ["/1", "/3"]);
    assert_eq!(throttle.snapshot().counts.cancelled, 1);
}

#[test]
fn nothing_is_held_after_a_client_leaves_at_any_point() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let throttle = one_at_a_time(&clock).build().unwrap();
    for steps in 0..4 {
        let mut first = send(&throttle, &handlers, "/1");
        let mut second = send(&throttle, &handlers, "/2");
        if steps > 0 {
            assert_waits(&mut first);
            assert_waits(&mut second);
        }
        if steps > 1 {
            handlers.answer(Response::new(Full::from("text")));
            let response = answered(&mut first);
            if steps > 2 {
                drop(response);
                assert_waits(&mut second);
            }
        }
        drop((first, second));
        let snapshot = throttle.snapshot();
        assert_eq!((snapshot.queued, snapshot.queued_cost, snapshot.running), (0, 0, 0), "{steps}");
        handlers.0.borrow_mut().answers.clear();
    }
}

#[test]
fn a_handler_that_panics_frees_its_place() {
    let clock = ManualClock::new();
    let throttle = one_at_a_time(&clock).build().unwrap();
    let mut service = throttle.layer().layer(tower::service_fn(
        |_: Request<String>| -> std::future::Ready<Result<Response<Full<Bytes>>, Infallible>> {
            panic!("the handler failed")
        },
    ));
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut request: Answering = Box::pin(service.call(get("/")));
        let _ = poll(&mut request);
    }));
    assert!(unwound.is_err());
    assert_eq!(throttle.snapshot().running, 0);
}

/// A limit of two a minute around a throttle with room for one request and a queue for one.
#[test]
fn a_shed_request_and_one_that_leaves_the_queue_give_their_rate_limit_back() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let throttle = one_at_a_time(&clock).queue_cost(1_000).build().unwrap();
    let store = Memory::builder().clock(&clock).build();
    let limits = RateLimitLayer::new(Limit::per_minute(2).by(Const("all"))).store(store);
    let service =
        ServiceBuilder::new().layer(limits).layer(throttle.layer()).service(handlers.clone());
    let send = |path| {
        let request: Answering<_> = Box::pin(service.clone().call(get(path)));
        request
    };
    let mut running = send("/running");
    assert_waits(&mut running);
    for _ in 0..5 {
        let mut queued = send("/queued");
        assert_waits(&mut queued);
        // The queue is full: what comes now is charged by the limit only if that has room.
        assert_eq!(answered(&mut send("/limited")).status(), 429);
        drop(queued);
    }
    throttle.snapshot();
    let blocking = super::send(&throttle, &handlers, "/blocking");
    for _ in 0..5 {
        assert_eq!(answered(&mut send("/shed")).status(), 503);
    }
    drop(blocking);
    assert_waits(&mut send("/queued"));
}
