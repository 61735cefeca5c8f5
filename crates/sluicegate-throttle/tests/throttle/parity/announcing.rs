use sluicegate::ManualClock;
use sluicegate::key::Path;
use sluicegate_throttle::announce::{Announcement, FIELD};
use sluicegate_throttle::layer::class_when;
use sluicegate_throttle::{Class, Throttle};
use std::time::Duration;

use crate::parity::client::get;
use crate::parity::handlers::{Handlers, Reply};
use crate::parity::servers::Server;

pub(crate) async fn every_response_says_which_classes_are_admitted(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let builder = Throttle::builder().in_flight(1).queue_cost(3).clock(&clock);
    let throttle = builder.build().unwrap();
    let class = class_when(Path.matches("/checkout"), Class::CRITICAL_PLUS);
    let client = server.serve(throttle.layer().criticality(class).announce(), &handlers).await;

    let first = client.send(get("/search"));
    handlers.answer(Reply::default());
    let quiet = first.answer();
    assert_eq!(quiet.header(FIELD), Some("4;of=4;lowest=\"SHEDDABLE\";t=1"));
    drop(quiet);

    // One runs, three wait, and sixteen are shed.
    let mut waiting: Vec<_> = (0..4).map(|_| client.send(get("/search"))).collect();
    for _ in 0..16 {
        assert_eq!(client.ask(get("/search")).status, 503);
    }
    clock.advance(Duration::from_millis(1_100));
    let refused = client.ask(get("/search"));
    let level = Announcement::parse(refused.header(FIELD).unwrap()).unwrap();
    assert_eq!(
        (refused.status, level.admitted(), level.lowest()),
        (503, 3, Some("SHEDDABLE_PLUS"))
    );
    let checkout = client.send(get("/checkout"));
    handlers.answer(Reply { cache_control: Some("no-cache"), ..Reply::default() });
    let served = waiting.remove(0).answer();
    assert_eq!(served.header(FIELD), Some("3;of=4;lowest=\"SHEDDABLE_PLUS\";t=1"));
    drop(checkout);
}

pub(crate) async fn no_level_is_in_a_response_that_caches_may_store_for_others(
    server: &impl Server,
) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = Throttle::builder().in_flight(1).queue_cost(3).clock(&clock).build().unwrap();
    let client = server.serve(throttle.layer().announce(), &handlers).await;
    for (cache_control, is_announced) in [
        ("max-age=60", false),
        ("public", false),
        ("private, max-age=60", true),
        ("no-store", true),
    ] {
        let asked = client.send(get("/search"));
        handlers.answer(Reply { cache_control: Some(cache_control), ..Reply::default() });
        let answer = asked.answer();
        assert_eq!(answer.header(FIELD).is_some(), is_announced, "{cache_control}");
    }
}

pub(crate) async fn nothing_is_announced_unless_it_is_asked_for(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = Throttle::builder().in_flight(1).queue_cost(3).clock(&clock).build().unwrap();
    let client = server.serve(throttle.layer(), &handlers).await;
    let asked = client.send(get("/search"));
    handlers.answer(Reply::default());
    assert_eq!(asked.answer().header(FIELD), None);
}
