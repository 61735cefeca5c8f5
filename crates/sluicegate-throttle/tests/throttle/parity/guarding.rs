use std::panic::{AssertUnwindSafe, catch_unwind};

use sluicegate::adapter::LeaveDecision;
use sluicegate::key::{Const, Path};
use sluicegate::{Header, Limit, ManualClock, Memory, when};
use sluicegate_throttle::Class;
use sluicegate_throttle::layer::class_when;

use crate::parity::client::get;
use crate::parity::handlers::{Handlers, Reply};
use crate::parity::servers::Server;
use crate::parity::waiting::one_at_a_time;

fn store(clock: &ManualClock) -> Memory {
    Memory::builder().capacity(1_000).clock(clock).build()
}

pub(crate) async fn a_shed_request_gives_its_charges_and_places_back(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).queue_cost(1_000).build().unwrap();
    let rule =
        (Limit::per_minute(3).by(Header("x-client")), Limit::concurrent(1).by(Header("x-client")));
    let client = server
        .guard(rule, LeaveDecision::InRequests, store(&clock), throttle.layer(), &handlers)
        .await;
    let by = |name: &str| get("/shop").header("x-client", name);
    let mut others = [client.send(by("bob")), client.send(by("carol"))];
    for _ in 0..10 {
        let shed = client.ask(by("alice"));
        assert_eq!((shed.status, shed.is_refused), (503, true));
        assert_eq!(shed.header("ratelimit"), None, "what was given back is not announced");
    }
    for _ in 0..2 {
        handlers.answer(Reply::default());
        others.iter_mut().for_each(|other| other.poll());
    }
    drop(others);
    // All three of the minute, and the place, are there.
    for _ in 0..3 {
        let served = client.send(by("alice"));
        handlers.answer(Reply::default());
        assert_eq!(served.answer().status, 200);
    }
    assert_eq!(client.ask(by("alice")).status, 429);
}

pub(crate) async fn a_client_that_leaves_the_queue_gives_its_charges_back(server: &impl Server) {
    for leave in [LeaveDecision::InRequests, LeaveDecision::Nowhere] {
        let clock = ManualClock::new();
        let handlers = Handlers::new(&clock);
        let throttle = one_at_a_time(&clock).build().unwrap();
        let rule = Limit::per_minute(2).by(Const("all"));
        let client = server.guard(rule, leave, store(&clock), throttle.layer(), &handlers).await;
        let running = client.send(get("/running"));
        for _ in 0..5 {
            assert!(client.send(get("/queued")).waits());
        }
        // It was running: its charge stands.
        drop(running);
        assert!(client.send(get("/last")).waits());
        assert_eq!(handlers.started(), ["/running", "/last"]);
        assert_eq!(client.ask(get("/more")).status, 429);
    }
}

pub(crate) async fn a_refusal_that_panics_gives_its_charges_back(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).queue_cost(1_000).build().unwrap();
    let rule = Limit::per_minute(2).by(Header("x-client"));
    let critical = class_when(Path.matches("/critical"), Class::CRITICAL);
    let layer = throttle.layer().criticality(critical).respond_with(|_, _| panic!("their own"));
    let client =
        server.guard(rule, LeaveDecision::InRequests, store(&clock), layer, &handlers).await;
    let by = |path, name: &str| client.send(get(path).header("x-client", name));
    let _running = by("/running", "bob");
    for number in 0..5 {
        let mut waits = by("/waits", "alice");
        let evicts = by("/critical", &format!("carol {number}"));
        assert!(catch_unwind(AssertUnwindSafe(|| waits.poll())).is_err(), "it has waited");
        drop(waits);
        let at_once = catch_unwind(AssertUnwindSafe(|| by("/shed", "alice")));
        assert!(at_once.is_err(), "it is refused at once");
        drop(evicts);
    }
    assert_eq!(throttle.snapshot().counts.all_shed(), 10);
}

pub(crate) async fn a_limit_decides_before_anything_queues(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).build().unwrap();
    let rule = Limit::per_minute(2).by(Const("all"));
    let client = server
        .guard(rule, LeaveDecision::InRequests, store(&clock), throttle.layer(), &handlers)
        .await;
    let _sent = [client.send(get("/1")), client.send(get("/2"))];
    assert_eq!(client.ask(get("/3")).status, 429);
    assert_eq!(throttle.snapshot().counts.offered, 2);
}

pub(crate) async fn a_limit_is_generous_while_the_throttle_has_room(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).build().unwrap();
    let rule = when(throttle.has_room(), Limit::per_minute(100).named("api"))
        .otherwise(Limit::per_minute(2).named("api"))
        .by(Header("x-client"));
    let client = server
        .guard(rule, LeaveDecision::InRequests, store(&clock), throttle.layer(), &handlers)
        .await;
    let by = |name: &str| get("/shop").header("x-client", name);
    for _ in 0..10 {
        let served = client.send(by("alice"));
        handlers.answer(Reply::default());
        assert_eq!(served.answer().status, 200);
    }
    // While another client's request waits, two a minute have to do.
    let others = [client.send(by("bob")), client.send(by("carol"))];
    assert!(!throttle.has_room().has_capacity());
    assert_eq!(client.ask(by("alice")).status, 429);
    drop(others);
    assert!(client.send(by("alice")).waits());
}
