use std::time::Duration;

use bytes::Bytes;
use http::Response;
use sluicegate::ManualClock;
use sluicegate_throttle::Throttle;
use sluicegate_throttle::layer::WhenShed;
use sluicegate_throttle::scheduler::ShedReason;

use crate::parity::client::{Client, Sent, get};
use crate::parity::handlers::{Handlers, Reply};
use crate::parity::servers::Server;

/// One request a second, and a queue for three.
fn one_a_second(clock: &ManualClock) -> Throttle {
    Throttle::builder().requests_per_second(1).queue_cost(3).clock(clock).build().unwrap()
}

/// Requests of which one runs and three wait.
fn fill(client: &Client) -> [Sent; 4] {
    ["/running", "/1", "/2", "/3"].map(|path| client.send(get(path)))
}

pub(crate) async fn a_full_queue_is_503_with_the_time_of_the_backlog_and_a_problem(
    server: &impl Server,
) {
    let clock = ManualClock::new();
    let (handlers, throttle) = (Handlers::new(&clock), one_a_second(&clock));
    let client = server.serve(throttle.layer(), &handlers).await;
    let _requests = fill(&client);
    let refused = client.ask(get("/shop"));
    assert_eq!((refused.status, refused.is_refused), (503, true));
    assert_eq!(refused.header("retry-after"), Some("4"));
    assert_eq!(refused.header("cache-control"), Some("no-store"));
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    assert_eq!(
        refused.read(),
        "{\"type\":\"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity\",\
         \"title\":\"Temporarily reduced capacity\",\"status\":503,\"detail\":\"try again in 4 s\"}\n"
    );
}

pub(crate) async fn a_call_of_grpc_is_unavailable_and_told_when_to_retry(server: &impl Server) {
    let clock = ManualClock::new();
    let (handlers, throttle) = (Handlers::new(&clock), one_a_second(&clock));
    // A client of gRPC does not follow redirects.
    let layer = throttle.layer().when_shed(WhenShed::redirect("https://busy.example.com/"));
    let client = server.serve(layer, &handlers).await;
    let _requests = fill(&client);
    for (asked, answered) in [
        ("application/grpc", "application/grpc"),
        ("application/grpc+json", "application/grpc"),
        ("application/grpc-web-text", "application/grpc-web-text+proto"),
    ] {
        let refused = client.ask(get("/shop").header("content-type", asked));
        assert_eq!((refused.status, refused.is_refused), (200, true));
        assert_eq!(refused.header("content-type"), Some(answered));
        assert_eq!(refused.header("grpc-status"), Some("14"));
        assert_eq!(refused.header("grpc-retry-pushback-ms"), Some("4000"));
        let text = "temporarily reduced capacity; try again in 4 s";
        assert_eq!(refused.header("grpc-message"), Some(text));
        assert_eq!(refused.header("location"), None);
        assert_eq!(refused.read(), "");
    }
    let refused = client.ask(get("/shop").header("content-type", "application/grpcfoo"));
    assert_eq!((refused.status, refused.header("grpc-status")), (307, None));
}

pub(crate) async fn a_redirect_for_what_is_shed(server: &impl Server) {
    let clock = ManualClock::new();
    let (handlers, throttle) = (Handlers::new(&clock), one_a_second(&clock));
    let when_shed = WhenShed::redirect("https://busy.example.com/");
    let client = server.serve(throttle.layer().when_shed(when_shed), &handlers).await;
    let _requests = fill(&client);
    let refused = client.ask(get("/shop"));
    assert_eq!((refused.status, refused.is_refused), (307, true));
    assert_eq!(refused.header("location"), Some("https://busy.example.com/"));
    assert_eq!(refused.header("retry-after"), None, "a redirect is followed at once");
    assert_eq!(refused.header("cache-control"), Some("no-store"));
}

pub(crate) async fn the_operator_s_own_response_sees_the_request(server: &impl Server) {
    let clock = ManualClock::new();
    let (handlers, throttle) = (Handlers::new(&clock), one_a_second(&clock));
    let layer = throttle.layer().respond_with(|shed, request| {
        assert_eq!(shed.reason, ShedReason::Full);
        let language = request.headers["accept-language"].to_str().unwrap();
        let page = format!("{} {} {language}", request.method, request.uri.path());
        Response::builder().status(529).header("x-page", "busy").body(Bytes::from(page)).unwrap()
    });
    let client = server.serve(layer, &handlers).await;
    let _requests = fill(&client);
    let refused = client.ask(get("/shop").header("accept-language", "eo"));
    assert_eq!((refused.status, refused.is_refused), (529, true));
    assert_eq!(refused.header("x-page"), Some("busy"));
    assert_eq!(refused.header("retry-after"), Some("4"));
    assert_eq!(refused.read(), "GET /shop eo");
}

pub(crate) async fn a_degraded_request_is_served_less_up_to_a_bound(server: &impl Server) {
    let clock = ManualClock::new();
    let (handlers, throttle) = (Handlers::new(&clock), one_a_second(&clock));
    let client = server.serve(throttle.layer().when_shed(WhenShed::degrade(1)), &handlers).await;
    let requests = fill(&client);
    let less = client.send(get("/shop"));
    assert_eq!(handlers.started(), ["/running", "/shop less"]);
    assert_eq!(throttle.snapshot().running, 1, "it takes up no capacity");
    assert_eq!(client.ask(get("/more")).status, 503);
    // The first handler answers, and then the one that serves less.
    handlers.answer(Reply::default());
    handlers.answer(Reply::of(1));
    let less = less.answer();
    assert_eq!((less.status, less.is_refused), (200, false));
    assert_eq!(client.ask(get("/more")).status, 503, "its body has not ended");
    assert_eq!(less.read(), "frame");
    let _less = client.send(get("/again"));
    assert_eq!(handlers.started().last().unwrap(), "/again less");
    drop(requests);
}

pub(crate) async fn a_request_that_waited_in_vain_is_degraded(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let (target, interval) = (Duration::from_millis(5), Duration::from_millis(100));
    let throttle = Throttle::builder()
        .in_flight(1)
        .queue_cost(100_000)
        .codel(target, interval)
        .clock(&clock)
        .build()
        .unwrap();
    let layer = throttle.layer().when_shed(WhenShed::degrade(10));
    let client = server.serve(layer, &handlers).await;
    let mut sent: Vec<_> = (0..20).map(|_| client.send(get("/shop"))).collect();
    while handlers.started().iter().all(|path| path == "/shop") {
        clock.advance(Duration::from_millis(60));
        handlers.answer(Reply::default());
        sent.iter_mut().for_each(|sent| sent.poll());
    }
    assert_eq!(handlers.started().last().unwrap(), "/shop less");
}
