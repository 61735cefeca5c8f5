use sluicegate::key::Path;
use sluicegate_throttle::layer::partition_when;

use super::*;

#[test]
fn a_partition_s_requests_start_although_others_have_taken_every_place() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let builder = Throttle::builder().in_flight(4).queue(Duration::from_millis(4)).clock(&clock);
    let throttle = builder.partition("checkout", 0.5).build().unwrap();
    let checkout = throttle.partition("checkout").unwrap();
    let layer = throttle.layer().partition_by(partition_when(Path.matches("/checkout"), checkout));
    let mut service = layer.layer(handlers.clone());
    let mut send = |path: &str| {
        let mut answering: Answering = Box::pin(service.call(get(path)));
        assert_waits(&mut answering);
        answering
    };
    let _requests: Vec<_> = ["/1", "/2", "/3", "/4", "/5", "/checkout", "/checkout", "/checkout"]
        .into_iter()
        .map(&mut send)
        .collect();
    assert_eq!(handlers.started(), ["/1", "/2", "/3", "/4", "/checkout", "/checkout"]);
    let snapshot = throttle.snapshot();
    let partition = &snapshot.partitions[0];
    assert_eq!((partition.running, partition.waiting, partition.guaranteed), (2, 1, 2));
    assert_eq!(partition.name, "checkout");
}

#[test]
fn partitions_have_unique_names_that_are_known() {
    let builder = || Throttle::builder().in_flight(4).queue_cost(9).partition("a", 0.1);
    let twice = builder().partition("a", 0.2).build().unwrap_err();
    assert_eq!(twice.to_string(), "the partition `a` is named twice");
    let tiny = builder().partition("b", -1e-320).build().unwrap_err().to_string();
    assert!(tiny.ends_with("at most 1, not -1e-320"), "{tiny}");
    let unknown = builder().build().unwrap().partition("b").unwrap_err();
    assert_eq!(unknown.to_string(), "the throttle has no partition `b`");
}
