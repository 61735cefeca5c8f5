use std::time::Duration;

use sluicegate::key::Path;
use sluicegate::{ManualClock, Route};
use sluicegate_throttle::layer::{
    ClassHeader, DeadlineHeader, HoldUntil, ThrottleBuilder, class_when,
};
use sluicegate_throttle::{Class, Throttle};

use crate::parity::client::get;
use crate::parity::handlers::{Handlers, Reply};
use crate::parity::servers::Server;

/// One request at a time, and a queue for four requests, in which they wait for any time.
pub(crate) fn one_at_a_time(clock: &ManualClock) -> ThrottleBuilder {
    Throttle::builder().in_flight(1).queue_cost(4_000).clock(clock)
}

pub(crate) async fn a_request_is_admitted_and_runs_until_its_body_has_ended(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).build().unwrap();
    let client = server.serve(throttle.layer(), &handlers).await;
    let mut sent = client.send(get("/shop"));
    assert!(sent.waits());
    handlers.answer(Reply::of(2));
    let answer = sent.answer();
    assert_eq!((answer.status, throttle.snapshot().running), (200, 1));
    assert_eq!(answer.read(), "frameframe");
    let snapshot = throttle.snapshot();
    assert_eq!((snapshot.running, snapshot.counts.started, snapshot.unreadable.all()), (0, 1, 0));
}

pub(crate) async fn a_request_waits_until_another_has_ended(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).build().unwrap();
    let client = server.serve(throttle.layer(), &handlers).await;
    let (first, mut second) = (client.send(get("/1")), client.send(get("/2")));
    assert_eq!(handlers.started(), ["/1"]);
    assert_eq!(throttle.snapshot().queued, 1);
    handlers.answer(Reply::of(1));
    let answer = first.answer();
    assert!(second.waits());
    assert_eq!(handlers.started(), ["/1"]);
    answer.read();
    assert!(second.waits());
    assert_eq!(handlers.started(), ["/1", "/2"]);
    handlers.answer(Reply::default());
    assert_eq!(second.answer().status, 200);
}

pub(crate) async fn a_more_critical_request_evicts(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).queue_cost(1_000).build().unwrap();
    let class = class_when(Path.matches("/checkout"), Class::CRITICAL_PLUS);
    let client = server.serve(throttle.layer().criticality(class), &handlers).await;
    let _running = client.send(get("/running"));
    let mut queued = client.send(get("/prefetch"));
    assert!(queued.waits());
    let mut critical = client.send(get("/checkout"));
    assert!(critical.waits());
    let evicted = queued.answer();
    assert_eq!((evicted.status, evicted.is_refused), (503, true));
    assert_eq!(evicted.header("retry-after"), Some("1"));
    // An equal class is never evicted.
    assert_eq!(client.ask(get("/checkout")).status, 503);
    assert!(critical.waits());
}

pub(crate) async fn the_most_critical_request_is_started_first(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).build().unwrap();
    let page = class_when(Route.is("/{page}"), Class::CRITICAL);
    let class = class_when(Path.matches("/checkout"), Class::CRITICAL_PLUS).otherwise(page);
    let client = server.serve(throttle.layer().criticality(class), &handlers).await;
    let mut sent = ["/running", "/search", "/checkout"].map(|path| client.send(get(path)));
    assert_eq!(throttle.snapshot().classes[Class::CRITICAL.rank()].requests, 1);
    handlers.answer(Reply::default());
    sent.iter_mut().for_each(|sent| sent.poll());
    assert_eq!(handlers.started(), ["/running", "/checkout"]);
}

pub(crate) async fn a_stated_criticality_is_believed_from_named_peers_only(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).build().unwrap();
    let class = ClassHeader::new("X-Criticality", Class::SHEDDABLE_PLUS);
    let class = class.from_peers(["10.0.0.0/8"]).unwrap();
    let client = server.serve(throttle.layer().criticality(class), &handlers).await;
    let stated = |peer, class| get("/shop").from(peer).header("x-criticality", class);
    let _sent = [
        client.send(get("/running")),
        client.send(stated("192.0.2.1", "CRITICAL_PLUS")),
        client.send(stated("10.0.0.1", "critical")),
        client.send(stated("10.0.0.1", "SHEDDABLE")),
    ];
    let snapshot = throttle.snapshot();
    let queued: Vec<_> = snapshot.classes.iter().map(|class| class.requests).collect();
    assert_eq!((queued, snapshot.unreadable.all()), (vec![0, 1, 1, 1], 0));
}

pub(crate) async fn garbage_in_header_fields_is_the_default_and_counted(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).queue_cost(100_000).build().unwrap();
    let class = ClassHeader::new("x-criticality", Class::CRITICAL);
    let class = class.from_peers(["192.0.2.1"]).unwrap();
    let layer = throttle.layer().criticality(class).deadline(DeadlineHeader::new("x-deadline-ms"));
    let client = server.serve(layer, &handlers).await;
    let _running = client.send(get("/running"));
    let garbage: [&[u8]; 7] =
        [b"", b"TOP", b"\xff\xfe", b"0; drop", b"-1", b"99999999999999999999999", b"1e3"];
    let mut queued = Vec::new();
    for (count, value) in garbage.into_iter().enumerate() {
        let asked = get("/shop").header("x-criticality", value);
        queued.push(client.send(asked.header("x-deadline-ms", value)));
        let unread = throttle.snapshot().unreadable;
        let count = count as u64 + 1;
        assert_eq!((unread.classes, unread.deadlines, unread.keys), (count, count, 0), "{value:?}");
    }
    // Two lines say nothing, whatever each of them says.
    let twice = get("/shop").header("x-criticality", "SHEDDABLE");
    queued.push(client.send(twice.header("x-criticality", "CRITICAL_PLUS")));
    let snapshot = throttle.snapshot();
    assert_eq!((snapshot.classes[1].requests, snapshot.unreadable.classes), (8, 8));
    assert!(queued.iter_mut().all(|queued| queued.waits()));
}

pub(crate) async fn a_deadline_that_cannot_be_met_is_refused_at_once(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).build().unwrap();
    let layer = throttle.layer().deadline(DeadlineHeader::new("x-deadline-ms"));
    let client = server.serve(layer, &handlers).await;
    // One request that takes ten milliseconds.
    let first = client.send(get("/shop"));
    handlers.answer(Reply { work: Duration::from_millis(10), ..Reply::default() });
    first.answer();
    handlers.rest();
    let _running = client.send(get("/shop"));
    let within = |millis: &str| get("/shop").header("x-deadline-ms", millis);
    let refused = client.ask(within("5"));
    assert_eq!((refused.status, refused.is_refused), (503, true));
    assert!(client.send(within("1000")).waits());
}

pub(crate) async fn a_queued_request_is_answered_at_its_deadline(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).build().unwrap();
    let layer = throttle.layer().deadline(DeadlineHeader::new("x-deadline-ms"));
    let client = server.serve(layer, &handlers).await;
    let within = |millis: &str| get("/shop").header("x-deadline-ms", millis);
    let mut endless = client.send(get("/endless"));
    // The later deadline comes first: what sleeps until then is woken for the earlier one.
    let mut patient = client.send(within("1000"));
    tokio::task::yield_now().await;
    let mut hasty = client.send(within("50"));
    tokio::task::yield_now().await;
    clock.advance(Duration::from_millis(49));
    tokio::task::yield_now().await;
    assert!(hasty.waits());
    clock.advance(Duration::from_millis(1));
    tokio::task::yield_now().await;
    let refused = hasty.answer();
    assert_eq!((refused.status, refused.is_refused), (503, true));
    assert!(patient.waits() && endless.waits());
    clock.advance(Duration::from_millis(950));
    tokio::task::yield_now().await;
    assert_eq!(patient.answer().status, 503);
    assert_eq!((throttle.snapshot().queued, throttle.snapshot().running), (0, 1));
}

pub(crate) async fn exempt_requests_pass_a_full_queue_uncounted(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).queue_cost(1_000).build().unwrap();
    let layer = throttle.layer().exempt(Path.matches("/health"));
    let client = server.serve(layer, &handlers).await;
    let _sent = [client.send(get("/running")), client.send(get("/queued"))];
    let mut health = client.send(get("/health"));
    assert!(health.waits());
    assert_eq!(handlers.started(), ["/running", "/health"]);
    assert_eq!(throttle.snapshot().running, 1);
    // What some server could take for another path is not exempt.
    assert_eq!(client.ask(get("/health%2F..%2Fshop")).status, 503);
}

pub(crate) async fn a_handler_can_say_that_its_response_counts_until_its_head(
    server: &impl Server,
) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).build().unwrap();
    let client = server.serve(throttle.layer(), &handlers).await;
    let stream = client.send(get("/events"));
    handlers.answer(Reply { hold_until: Some(HoldUntil::Head), ..Reply::of(2) });
    let stream = stream.answer();
    assert_eq!(throttle.snapshot().running, 0);
    assert_eq!(stream.read(), "frameframe");
}
