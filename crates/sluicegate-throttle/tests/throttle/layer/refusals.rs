use http::header::{LOCATION, RETRY_AFTER};

use super::*;

/// A throttle of one request a second, with one that runs and three that wait.
fn full(clock: &ManualClock, handlers: &Handlers) -> (Throttle, Vec<Answering>) {
    let builder = Throttle::builder().requests_per_second(1).queue_cost(3).clock(clock);
    let throttle = builder.build().unwrap();
    let requests = (0..4).map(|_| send(&throttle, handlers, "/")).collect();
    (throttle, requests)
}

#[tokio::test]
async fn the_operator_makes_the_response() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let (throttle, _requests) = full(&clock, &handlers);
    let layer = throttle.layer().respond_with(|_, request| {
        assert_eq!(request.uri.path(), "/shop");
        let response = Response::builder().status(303).header(LOCATION, "/waiting-room");
        response.body(Bytes::new()).unwrap()
    });
    let mut shed: Answering = Box::pin(layer.layer(handlers).call(get("/shop")));
    let response = answered(&mut shed);
    assert_eq!(response.status(), 303);
    assert_eq!(response.headers()[LOCATION], "/waiting-room");
    assert!(!response.headers().contains_key(RETRY_AFTER), "a redirect is followed at once");
}

#[test]
fn what_cannot_work_is_told_in_a_sentence() {
    let error = |builder: ThrottleBuilder| builder.build().unwrap_err().to_string();
    let second = Duration::from_secs(1);
    assert_eq!(error(Throttle::builder().queue(second)), "a throttle needs a capacity above zero");
    assert_eq!(
        error(Throttle::builder().in_flight(1)),
        "the queue has to hold a cost of at least 1"
    );
    assert!(
        error(Throttle::builder().in_flight(1).cpu(0.8).queue(second)).contains("one capacity")
    );
    assert_eq!(
        error(Throttle::builder().cpu(1.5).queue(second)),
        "a share of the processors is above 0 and at most 1"
    );
    assert!(Throttle::builder().cpu(0.8).queue(second).build().is_ok());
}

#[test]
fn nobody_is_told_to_come_back_after_more_than_an_hour() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let throttle = one_at_a_time(&clock).queue_cost(1).build().unwrap();
    let mut slow = send(&throttle, &handlers, "/slow");
    assert_waits(&mut slow);
    clock.advance(Duration::from_secs(1_000_000));
    handlers.answer_empty();
    drop(answered(&mut slow));
    let _requests = [(); 2].map(|()| send(&throttle, &handlers, "/"));
    let response = answered(&mut send(&throttle, &handlers, "/"));
    assert_eq!(response.headers()[RETRY_AFTER], "3600");
}
