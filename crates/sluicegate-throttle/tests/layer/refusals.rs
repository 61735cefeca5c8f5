use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http_body_util::BodyExt;
use sluicegate::adapter::Refused;
use sluicegate::key::Path;

use super::*;

/// A throttle of one request a second, with one that runs and three that wait.
fn full(clock: &ManualClock, handlers: &Handlers) -> (Throttle, Vec<Answering>) {
    let builder = Throttle::builder().requests_per_second(1).queue_cost(3).clock(clock);
    let throttle = builder.build().unwrap();
    let requests = (0..4).map(|_| send(&throttle, handlers, "/")).collect();
    (throttle, requests)
}

#[tokio::test]
async fn a_shed_request_is_answered_with_503_and_the_time_of_the_backlog() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let (throttle, _requests) = full(&clock, &handlers);
    let response = answered(&mut send(&throttle, &handlers, "/"));
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()[RETRY_AFTER], "4");
    assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
    assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
    assert!(response.extensions().get::<Refused>().is_some());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let problem = "{\"type\":\"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity\",\
                   \"title\":\"Temporarily reduced capacity\",\"status\":503,\"detail\":\"try again in 4 s\"}\n";
    assert_eq!(body, problem);
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

#[tokio::test]
async fn health_checks_pass_a_full_queue_and_other_spellings_do_not() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let (throttle, _requests) = full(&clock, &handlers);
    let layer = throttle.layer().exempt(Path.matches("/health"));
    let request = |path: &str| {
        let request: Answering = Box::pin(layer.layer(handlers.clone()).call(get(path)));
        request
    };
    let running = throttle.snapshot().running;
    let before = handlers.started().len();
    assert_waits(&mut request("/health"));
    assert_eq!(handlers.started()[before..], ["/health"]);
    assert_eq!(throttle.snapshot().running, running);
    assert_eq!(answered(&mut request("/health/../shop")).status(), 503);
    assert_eq!(answered(&mut request("/shop")).status(), 503);
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
