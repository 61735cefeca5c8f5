use sluicegate_throttle::Classes;

use super::*;

#[test]
fn more_places_wake_what_waits_and_nothing_learnt_is_lost() {
    let (_clock, handlers, throttle) = scene();
    let mut requests = ["/1", "/2", "/3", "/4"].map(|path| send(&throttle, &handlers, path));
    requests.iter_mut().for_each(assert_waits);
    let wide = Throttle::builder().in_flight(3).queue(Duration::from_millis(1));
    throttle.reconfigure(wide).unwrap();
    requests.iter_mut().for_each(assert_waits);
    assert_eq!(handlers.started(), ["/1", "/2", "/3"]);
    let snapshot = throttle.snapshot();
    assert_eq!((snapshot.limit, snapshot.queued, snapshot.queue_bound), (Some(3), 1, 3_000));
}

#[test]
fn a_rate_that_is_raised_starts_what_waits_for_it() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let builder = || Throttle::builder().queue_cost(9);
    let throttle = builder().requests_per_second(1).clock(&clock).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut requests = ["/1", "/2", "/3"].map(|path| send(&throttle, &handlers, path));
        requests.iter_mut().for_each(assert_waits);
        tokio::task::yield_now().await;
        clock.advance(Duration::from_millis(10));
        throttle.reconfigure(builder().requests_per_second(1_000)).unwrap();
        // The task that waited for the old rate would start the next one after a second.
        for _ in 0..3 {
            tokio::task::yield_now().await;
            clock.advance(Duration::from_millis(1));
        }
        tokio::task::yield_now().await;
        requests.iter_mut().for_each(assert_waits);
        assert_eq!(handlers.started(), ["/1", "/2", "/3"]);
    });
}

#[test]
fn what_is_fixed_is_told_and_stays() {
    let builder = || Throttle::builder().in_flight(2).queue_cost(9);
    let throttle = builder().partition("a", 0.5).build().unwrap();
    let error = |builder: ThrottleBuilder| throttle.reconfigure(builder).unwrap_err().to_string();
    let fixed = |part| format!("the {part} cannot change while the throttle runs: start it anew");
    assert_eq!(error(builder().partition("b", 0.5)), fixed("list of partitions"));
    assert_eq!(error(builder().classes(Classes::two())), fixed("list of classes"));
    let rate = Throttle::builder().requests_per_second(5).queue_cost(9);
    assert_eq!(error(rate), fixed("kind of capacity"));
    let cpu = Throttle::builder().cpu(0.5).queue_cost(9).partition("a", 0.5);
    assert_eq!(error(cpu), fixed("kind of capacity"));
    assert_eq!(
        throttle.check(builder().partition("b", 0.5)).unwrap_err().to_string(),
        fixed("list of partitions")
    );
    let wide = || builder().partition("a", 0.9);
    assert!(throttle.check(wide()).is_ok());
    assert_eq!(throttle.snapshot().partitions[0].guaranteed, 1, "a check changes nothing");
    assert!(throttle.reconfigure(wide()).is_ok());
    assert_eq!(throttle.snapshot().partitions[0].guaranteed, 2);
}
