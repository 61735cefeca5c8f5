use std::time::Duration;

use sluicegate::{Cost, ManualClock};
use sluicegate_throttle::adaptive::{Algorithm, Sample};
use sluicegate_throttle::layer::{Reported, ThrottleBuilder};
use sluicegate_throttle::{Throttle, ThrottleLayer};

use crate::parity::client::{Client, get};
use crate::parity::handlers::{Handlers, Reply};
use crate::parity::servers::Server;

/// Handlers keep the processor busy, and a queue holds what they do in 100 ms.
fn measured(clock: &ManualClock) -> ThrottleBuilder {
    Throttle::builder().cpu(1.0).queue_cost(100_000).clock(clock)
}

/// Sends a request to a handler that works for 2 ms until its head is there, and for each of three frames.
fn cost_of(client: &Client, handlers: &Handlers, throttle: &Throttle, cost: Option<Cost>) -> u64 {
    let before = throttle.snapshot().actual_cost;
    let sent = client.send(get("/shop"));
    handlers.answer(Reply { cost, work: Duration::from_millis(2), ..Reply::of(3) });
    assert_eq!(sent.answer().read(), "frameframeframe");
    assert_eq!(throttle.snapshot().running, 0);
    handlers.rest();
    throttle.snapshot().actual_cost - before
}

pub(crate) async fn a_request_costs_the_time_that_its_handler_and_its_body_are_polled(
    server: &impl Server,
) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = measured(&clock).build().unwrap();
    let client = server.serve(throttle.layer(), &handlers).await;
    assert_eq!(cost_of(&client, &handlers, &throttle, None), 8_000);
    clock.advance(Duration::from_secs(1));
    // What similar requests cost is what the next one takes up in the queue.
    let _sent = [client.send(get("/shop")), client.send(get("/shop"))];
    assert_eq!(throttle.snapshot().queued_cost, 8_000);
    // Time in which nobody polls is not the request's.
    clock.advance(Duration::from_secs(1));
    handlers.answer(Reply::default());
    assert_eq!(throttle.snapshot().actual_cost, 8_000);
}

pub(crate) async fn a_reported_cost_goes_instead_or_on_top(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    for (reported, cost) in [(Reported::Instead, 70), (Reported::OnTop, 8_070)] {
        let throttle = measured(&clock).reported_cost(reported).build().unwrap();
        let client = server.serve(throttle.layer(), &handlers).await;
        assert_eq!(cost_of(&client, &handlers, &throttle, Some(Cost(70))), cost);
    }
    let throttle =
        Throttle::builder().cost_per_second(1_000).queue_cost(10_000).clock(&clock).build();
    let throttle = throttle.unwrap();
    let client = server.serve(throttle.layer(), &handlers).await;
    assert_eq!(cost_of(&client, &handlers, &throttle, Some(Cost(70))), 70);
}

/// Half as much after each overload.
#[derive(Debug)]
struct Halving(usize);

impl Algorithm for Halving {
    fn limit(&self) -> usize {
        self.0
    }

    fn update(&mut self, sample: Sample) {
        if sample.is_overload {
            self.0 /= 2;
        }
    }
}

pub(crate) async fn overload_lowers_the_limit_and_other_errors_do_not(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let is_lower_after = async |reply: Reply| {
        let builder = Throttle::builder().adaptive(Halving(20)).queue_cost(100_000);
        let throttle = builder.clock(&clock).build().unwrap();
        let layer: ThrottleLayer = throttle.layer();
        let client = server.serve(layer, &handlers).await;
        let before = throttle.snapshot().limit.unwrap();
        let sent = client.send(get("/shop"));
        handlers.answer(reply);
        let _ = sent.answer();
        throttle.snapshot().limit.unwrap() < before
    };
    for status in [503, 504] {
        assert!(is_lower_after(Reply { status, ..Reply::default() }).await, "{status}");
    }
    // 429 is the quota of one client, which any client can use up.
    for status in [200, 404, 429, 500] {
        assert!(!is_lower_after(Reply { status, ..Reply::default() }).await, "{status}");
    }
    // A call of gRPC that fails at once.
    for (grpc_status, is_overload) in [("0", false), ("4", true), ("8", false), ("14", true)] {
        let reply = Reply { grpc_status: Some(grpc_status), ..Reply::default() };
        assert_eq!(is_lower_after(reply).await, is_overload, "{grpc_status}");
    }
}

/// One less for each client that leaves before its response begins.
#[derive(Debug)]
struct Leaving(usize);

impl Algorithm for Leaving {
    fn limit(&self) -> usize {
        self.0
    }

    fn update(&mut self, _: Sample) {}

    fn update_unmeasured(&mut self, sample: Sample) {
        self.0 -= usize::from(sample.answered.is_none());
    }
}

pub(crate) async fn an_adaptive_limit_hears_of_clients_that_leave_unanswered(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let builder = Throttle::builder().adaptive(Leaving(20)).queue_cost(100_000);
    let throttle = builder.clock(&clock).build().unwrap();
    let client = server.serve(throttle.layer(), &handlers).await;
    let limit = || throttle.snapshot().limit.unwrap();
    drop(client.send(get("/shop")));
    assert_eq!(limit(), 19);
    // The response has begun, so the server was in time.
    let sent = client.send(get("/shop"));
    handlers.answer(Reply::of(3));
    drop(sent.answer());
    assert_eq!((limit(), throttle.snapshot().running), (19, 0));
}

pub(crate) async fn routes_are_predicted_apart(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = measured(&clock).build().unwrap();
    let client = server.serve(throttle.layer(), &handlers).await;
    // All paths are of one route: a client that makes up paths makes up no keys.
    assert_eq!(cost_of(&client, &handlers, &throttle, Some(Cost(70))), 70);
    let _sent = [client.send(get("/running")), client.send(get("/never-seen"))];
    let snapshot = throttle.snapshot();
    assert_eq!((snapshot.queued_cost, snapshot.unreadable.all()), (70, 0));
}
