use sluicegate::adapter::Peer;
use sluicegate_throttle::Class;
use sluicegate_throttle::layer::{ClassHeader, DeadlineHeader};

use super::*;

fn header(path: &str, peer: &str, class: &str) -> Request<String> {
    let mut request = get(path);
    request.headers_mut().insert("x-criticality", class.parse().unwrap());
    request.extensions_mut().insert(Peer(peer.parse().unwrap()));
    request
}

#[test]
fn a_stated_criticality_is_believed_from_named_peers_only() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let throttle = one_at_a_time(&clock).build().unwrap();
    let class = ClassHeader::new("X-Criticality", Class::SHEDDABLE_PLUS);
    let class = class.from_peers(["10.0.0.0/8"]).unwrap();
    let service = throttle.layer().criticality(class).layer(handlers.clone());
    let mut requests: Vec<Answering> = [
        header("/running", "10.0.0.1", "SHEDDABLE"),
        header("/stranger", "192.0.2.1", "CRITICAL_PLUS"),
        header("/sheddable", "10.0.0.1", "sheddable"),
        header("/critical", "10.0.0.1", "critical"),
        header("/unreadable", "10.0.0.1", "top"),
    ]
    .map(|request| -> Answering { Box::pin(service.clone().call(request)) })
    .into();
    requests.iter_mut().for_each(assert_waits);
    assert_eq!(throttle.snapshot().queued, 4);
    let by_class: Vec<_> = throttle.snapshot().classes.iter().map(|class| class.requests).collect();
    assert_eq!(by_class, [0, 1, 2, 1]);
    while !requests.is_empty() {
        handlers.answer_empty();
        requests.retain_mut(|request| poll(request).is_pending());
        requests.iter_mut().for_each(|request| drop(poll(request)));
    }
    assert_eq!(
        handlers.started(),
        ["/running", "/critical", "/stranger", "/unreadable", "/sheddable"]
    );
}

#[test]
fn what_cannot_be_read_is_the_default_and_counted() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let throttle = Throttle::builder().in_flight(10).queue_cost(10).clock(&clock).build().unwrap();
    let class =
        ClassHeader::new("x-criticality", Class::CRITICAL).from_peers(["10.0.0.1"]).unwrap();
    let layer = throttle.layer().predict_by(sluicegate::Global).criticality(class);
    let mut service = layer.deadline(DeadlineHeader::new("x-deadline-ms")).layer(handlers);
    let mut send = |class: &str, deadline: &str| {
        let mut request = header("/", "10.0.0.1", class);
        request.headers_mut().insert("x-deadline-ms", deadline.parse().unwrap());
        drop(service.call(request));
        let unread = throttle.snapshot().unreadable;
        (unread.classes, unread.deadlines, unread.keys)
    };
    assert_eq!(send("CRITICAL", "250"), (0, 0, 0));
    assert_eq!(send("CRITICAL", "soon"), (0, 1, 0));
    assert_eq!(send("highest", "250"), (1, 1, 0));
}

#[test]
fn a_deadline_that_cannot_be_met_is_refused_at_once() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let throttle = one_at_a_time(&clock).build().unwrap();
    let layer = throttle.layer().deadline(DeadlineHeader::new("x-deadline-ms"));
    let mut service = layer.layer(handlers.clone());
    let mut send = |deadline: &str| -> Answering {
        let mut request = get("/");
        request.headers_mut().insert("x-deadline-ms", deadline.parse().unwrap());
        Box::pin(service.call(request))
    };
    // One request that takes ten milliseconds.
    let mut first = send("1000");
    assert_waits(&mut first);
    clock.advance(Duration::from_millis(10));
    handlers.answer_empty();
    answered(&mut first);

    let mut running = send("1000");
    assert_waits(&mut running);
    assert_eq!(answered(&mut send("5")).status(), 503);
    assert_waits(&mut send("1000"));
}

#[test]
fn a_flow_is_the_same_in_all_layers_of_a_throttle() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let throttle = one_at_a_time(&clock).build().unwrap();
    let send = |path| -> Answering {
        let layer = throttle.layer().fair_by(sluicegate::Header("x-customer"));
        let mut request = get(path);
        request.headers_mut().insert("x-customer", "alice".parse().unwrap());
        Box::pin(layer.layer(handlers.clone()).call(request))
    };
    let mut requests: Vec<_> = ["/running", "/1", "/2", "/3", "/4"].map(send).into();
    // One flow alone may fill the queue.
    requests.iter_mut().for_each(assert_waits);
    assert_eq!(throttle.snapshot().queued, 4);
}
