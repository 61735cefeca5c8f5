use std::panic::{AssertUnwindSafe, catch_unwind};

use sluicegate::ManualClock;
use sluicegate_throttle::Throttle;

use crate::parity::client::get;
use crate::parity::handlers::{Handlers, Reply};
use crate::parity::servers::Server;
use crate::parity::waiting::one_at_a_time;

fn held(throttle: &Throttle) -> (usize, u64, usize) {
    let snapshot = throttle.snapshot();
    (snapshot.queued, snapshot.queued_cost, snapshot.running)
}

pub(crate) async fn nothing_is_held_after_a_client_leaves_at_any_point(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).build().unwrap();
    let client = server.serve(throttle.layer(), &handlers).await;
    for steps in 0..5 {
        let first = client.send(get("/1"));
        let mut second = client.send(get("/2"));
        if steps == 0 {
            drop((second, first));
        } else {
            handlers.answer(Reply::of(2));
            let mut answer = first.answer();
            if steps > 1 {
                (answer.body)();
            }
            if steps > 2 {
                drop(answer);
            }
            if steps > 3 {
                // It has been told to start, and starts.
                assert!(second.waits());
            }
            drop(second);
        }
        assert_eq!(held(&throttle), (0, 0, 0), "{steps}");
    }
    let counts = throttle.snapshot().counts;
    assert_eq!(counts.offered, counts.started + counts.cancelled + counts.all_shed());
}

pub(crate) async fn one_that_leaves_after_it_was_told_to_start_lets_the_next_one_start(
    server: &impl Server,
) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).build().unwrap();
    let client = server.serve(throttle.layer(), &handlers).await;
    let (first, second) = (client.send(get("/1")), client.send(get("/2")));
    let mut third = client.send(get("/3"));
    handlers.answer(Reply::default());
    first.answer();
    // The second has been told, and is never polled again.
    drop(second);
    assert!(third.waits());
    assert_eq!(handlers.started(), ["/1", "/3"]);
    assert_eq!(throttle.snapshot().counts.cancelled, 1);
}

pub(crate) async fn a_handler_that_panics_gives_its_place_back(server: &impl Server) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).build().unwrap();
    let client = server.serve(throttle.layer(), &handlers).await;
    for _ in 0..3 {
        let mut sent = client.send(get("/panic"));
        let mut next = client.send(get("/next"));
        handlers.answer(Reply { panics: true, ..Reply::default() });
        assert!(catch_unwind(AssertUnwindSafe(|| sent.poll())).is_err());
        // As servers do with a connection whose task has panicked.
        drop(sent);
        assert!(next.waits());
        assert_eq!(handlers.started().last().unwrap(), "/next");
        drop(next);
        assert_eq!(held(&throttle), (0, 0, 0));
    }
}

pub(crate) async fn a_handler_that_never_ends_gives_its_place_back_when_its_client_leaves(
    server: &impl Server,
) {
    let clock = ManualClock::new();
    let handlers = Handlers::new(&clock);
    let throttle = one_at_a_time(&clock).build().unwrap();
    let client = server.serve(throttle.layer(), &handlers).await;
    let mut endless = client.send(get("/endless"));
    let mut next = client.send(get("/next"));
    for _ in 0..10 {
        clock.advance(std::time::Duration::from_secs(3_600));
        assert!(endless.waits() && next.waits());
    }
    assert_eq!(handlers.started(), ["/endless"]);
    drop(endless);
    assert!(next.waits());
    assert_eq!(handlers.started(), ["/endless", "/next"]);
}
