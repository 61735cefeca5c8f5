//! Conditions on the load, of limits in front of a throttle and of the throttle itself.

use http::StatusCode;
use sluicegate::condition::{Condition, InFlight};
use sluicegate::key::{Const, Path, Query};
use sluicegate::rule::Rule;
use sluicegate::service::InFlightLayer;
use sluicegate::{Limit, Memory, RateLimitLayer, when};
use sluicegate_throttle::layer::{Criticality, Unreadable, class_when};
use sluicegate_throttle::{Class, Classes};
use tower::{Service, ServiceBuilder};

use super::*;

type View<'a> = sluicegate::adapter::HttpView<'a, String, sluicegate::adapter::Plain>;

/// Sends a request to a path.
type Sending = Box<dyn FnMut(&str) -> Answering<StatusCode>>;

/// Limits, then the count of what is in flight, then the throttle. The count holds what waits and what runs.
fn service(
    rule: impl for<'a> Rule<View<'a>> + Clone + Send + Sync + 'static,
    load: &InFlight,
    throttle: &Throttle,
    handlers: &Handlers,
    clock: &ManualClock,
) -> Sending {
    let store = Memory::builder().capacity(100).clock(clock).build();
    let mut service = ServiceBuilder::new()
        .layer(RateLimitLayer::new(rule).store(store))
        .layer(InFlightLayer::new(load.clone()))
        .layer(throttle.layer())
        .service(handlers.clone());
    Box::new(move |path| {
        let answer = service.call(get(path));
        Box::pin(async { Ok(answer.await?.status()) })
    })
}

/// Asks, and drops the request if it is admitted.
fn is_admitted(send: &mut impl FnMut(&str) -> Answering<StatusCode>) -> bool {
    match poll(&mut send("/asks")) {
        Poll::Pending => true,
        Poll::Ready(status) => {
            assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
            false
        }
    }
}

#[test]
fn limits_step_down_as_work_piles_up_and_up_again_as_it_ends() {
    let (clock, handlers, throttle) = scene();
    let few = InFlight::below(3);
    // One budget: nobody waits; few are in flight; more.
    let limit = |admits| Limit::per_minute(admits).named("api");
    let rule = when(throttle.has_room(), limit(100))
        .or(few.clone(), limit(10))
        .otherwise(limit(2))
        .by(Const("all"));
    let mut send = service(rule, &few, &throttle, &handlers, &clock);

    let mut running = send("/1");
    assert_waits(&mut running);
    assert!(throttle.has_room().has_capacity(), "one runs and nobody waits");
    let mut second = send("/2");
    assert_waits(&mut second);
    assert!(!throttle.has_room().has_capacity());
    // Two in flight: ten a minute.
    let mut third = send("/3");
    assert_waits(&mut third);
    // Three in flight, and three of two a minute are used.
    assert!(!is_admitted(&mut send));
    assert_eq!((few.count(), throttle.snapshot().counts.offered), (3, 3), "it never came there");

    // One leaves the queue: two in flight, and ten a minute again.
    drop(third);
    assert_eq!(few.count(), 2);
    assert!(is_admitted(&mut send));
    // Nobody waits: a hundred.
    handlers.answer_empty();
    assert_eq!(answered(&mut running), StatusCode::OK);
    drop((running, second));
    assert!((0..20).all(|_| is_admitted(&mut send)));
    assert_eq!((few.count(), throttle.snapshot().queued, throttle.snapshot().running), (0, 0, 0));
}

/// A throttle that asks for its own headroom, as of who is exempt, does not wait for itself.
#[test]
fn a_throttle_s_own_headroom_decides_about_its_requests() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let throttle = one_at_a_time(&clock).classes(Classes::two()).build().unwrap();
    let class = class_when(throttle.has_room(), Class::at(0)).otherwise(Class::at(1));
    let mut service = throttle.layer().criticality(class).layer(handlers);
    let mut requests: Vec<Answering> =
        (0..4).map(|_| Box::pin(service.call(get("/"))) as _).collect();
    requests.iter_mut().for_each(assert_waits);
    let counts: Vec<_> =
        throttle.snapshot().classes.iter().map(|class| class.counts.offered).collect();
    assert_eq!(counts, [2, 2]);
}

/// Processor time cannot be set by a test, so this one uses some.
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[test]
fn a_limit_is_strict_while_the_processors_are_busy() {
    use sluicegate::condition::Cpu;

    let (clock, handlers, throttle) = scene();
    let idle = Cpu::below(0.0001).unwrap();
    let rule = when(idle, Limit::per_minute(100).named("api"))
        .otherwise(Limit::per_minute(1).named("api"))
        .by(Const("all"));
    let mut send = service(rule, &InFlight::below(1), &throttle, &handlers, &clock);
    while idle.has_capacity() {
        std::hint::spin_loop();
    }
    assert!(is_admitted(&mut send));
    assert!(!is_admitted(&mut send), "a hundred a minute on an idle machine");
    assert!(throttle.has_room().has_capacity());
}

#[test]
fn no_spelling_makes_a_request_more_critical_than_its_class() {
    let class = |lower: Class, other: Class, path: &str| {
        let request = http::Request::get(path).body(String::new()).unwrap();
        let class = class_when(Path.matches("/batch/*"), lower).otherwise(other);
        class.class(&View::new(&request), &Classes::four()).unwrap()
    };
    for path in ["/batch/export", "/batch%2Fexport", "/x/../batch/export"] {
        assert_eq!(class(Class::SHEDDABLE, Class::CRITICAL, path), Class::SHEDDABLE, "{path}");
    }
    assert_eq!(class(Class::SHEDDABLE, Class::CRITICAL, "/other"), Class::CRITICAL);
    // An uncertain match reaches no higher class.
    assert_eq!(class(Class::CRITICAL, Class::SHEDDABLE, "/batch/export"), Class::CRITICAL);
    assert_eq!(class(Class::CRITICAL, Class::SHEDDABLE, "/batch%2Fexport"), Class::SHEDDABLE);

    // What the client has made unreadable reaches no higher class either.
    let long = format!("/batch/{}", "x".repeat(8_000));
    let pairs = format!("/?{}", "a=b&".repeat(1_001));
    for classes in [[Class::SHEDDABLE, Class::CRITICAL], [Class::CRITICAL, Class::SHEDDABLE]] {
        assert_eq!(unreadable(Path.matches("/batch/*"), classes, &long), Class::SHEDDABLE);
        assert_eq!(unreadable(Query("batch").equals("1"), classes, &pairs), Class::SHEDDABLE);
    }
}

/// The class of a request whose class cannot be read.
fn unreadable(
    condition: impl for<'a> Condition<View<'a>>,
    [class, other]: [Class; 2],
    path: &str,
) -> Class {
    let request = http::Request::get(path).body(String::new()).unwrap();
    let class = class_when(condition, class).otherwise(other);
    let Unreadable(class) = class.class(&View::new(&request), &Classes::four()).unwrap_err();
    class
}
