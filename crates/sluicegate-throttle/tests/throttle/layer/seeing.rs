use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use sluicegate::Header;
use sluicegate::key::Path;
use sluicegate::observe::ShowKeys;
use sluicegate_throttle::Class;
use sluicegate_throttle::layer::ClassHeader;

use super::*;

fn from(customer: &str) -> Request<String> {
    let mut request = get("/search");
    request.headers_mut().insert("x-customer", customer.parse().unwrap());
    request
}

/// A request of ann runs; two of hers and one of bob's wait.
fn busy(builder: ThrottleBuilder, handlers: &Handlers) -> (Throttle, Vec<Answering>) {
    let throttle = builder.named("shop").build().unwrap();
    let layer = throttle.layer().predict_by(Path).fair_by(Header("x-customer"));
    let mut service = layer.layer(handlers.clone());
    let requests = ["ann", "ann", "bob", "ann"].map(|customer| {
        let mut answering: Answering = Box::pin(service.call(from(customer)));
        assert_waits(&mut answering);
        answering
    });
    (throttle, requests.into())
}

#[test]
fn no_secret_of_a_throttle_is_shown() {
    let shown = || {
        let throttle = Throttle::builder().in_flight(1).queue_cost(1).build().unwrap();
        let layer = throttle.layer().predict_by(Path).fair_by(Header("x-customer"));
        format!("{layer:?} {:?} {throttle:?}", layer.clone().layer(()))
    };
    let one = shown();
    assert_eq!(one, shown(), "each has a secret of its own");
    assert!(one.contains("KeyHash { .. }"), "{one}");
}

#[test]
fn the_largest_flows_are_shown_by_class_with_their_keys_if_asked_for() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let shown = one_at_a_time(&clock).show_keys(ShowKeys::Shown);
    let (throttle, _requests) = busy(shown, &handlers);
    let snapshot = throttle.snapshot();
    assert_eq!(snapshot.name, "shop");
    let flows: Vec<_> = snapshot.classes[3]
        .flows
        .iter()
        .map(|flow| (flow.flow.as_deref(), flow.requests))
        .collect();
    assert_eq!(flows, [(Some("header:x-customer=ann"), 2), (Some("header:x-customer=bob"), 1)]);
    assert!(snapshot.classes[0].flows.is_empty());

    let (throttle, _requests) = busy(one_at_a_time(&clock), &handlers);
    let snapshot = throttle.snapshot();
    let flows: Vec<_> =
        snapshot.classes[3].flows.iter().map(|flow| (flow.flow.as_deref(), flow.cost)).collect();
    assert_eq!(flows, [(None, 2_000), (None, 1_000)], "keys are hidden unless asked for");
}

#[test]
fn predicted_and_measured_costs_are_shown_by_key() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let shown = one_at_a_time(&clock).show_keys(ShowKeys::Shown);
    let (throttle, mut requests) = busy(shown, &handlers);
    for (request, cost) in requests.iter_mut().zip([3_000, 1_000]) {
        let _ = poll(request);
        clock.advance(Duration::from_micros(cost));
        handlers.answer_empty();
        assert_eq!(answered(request).status(), 200);
    }
    let snapshot = throttle.snapshot();
    // 1,000 were predicted of each, since the second was queued before the first had ended.
    assert_eq!((snapshot.predicted_cost, snapshot.actual_cost), (2_000, 4_000));
    assert_eq!(snapshot.prediction_error, 2_000);
    let key = &snapshot.keys[0];
    assert_eq!((key.key.as_deref(), key.requests), (Some("path:/search"), 2));
    assert_eq!((key.predicted_cost, key.actual_cost, key.error), (2_000, 4_000, 2_000));
    assert_eq!(snapshot.counts.cost, 4_000);
}

/// All that was recorded, as `name{labels} value`, sorted.
fn recorded(run: impl FnOnce()) -> Vec<String> {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, run);
    let recorded = snapshotter.snapshot().into_vec().into_iter();
    let mut lines: Vec<_> = recorded
        .map(|(key, _, description, value)| {
            assert!(description.is_some(), "{key:?} is described");
            let key = key.key();
            let labels = key.labels().map(|label| format!("{}={}", label.key(), label.value()));
            let labels = labels.collect::<Vec<_>>().join(",");
            let value = match value {
                DebugValue::Counter(count) => count.to_string(),
                DebugValue::Gauge(value) => value.to_string(),
                DebugValue::Histogram(values) => format!("{values:?}"),
            };
            format!("{}{{{labels}}} {value}", key.name())
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn metrics_tell_what_became_of_requests_by_class_and_reason() {
    let lines = recorded(|| {
        let (clock, handlers) = (ManualClock::new(), Handlers::default());
        let (throttle, mut requests) = busy(one_at_a_time(&clock), &handlers);
        let class = ClassHeader::new("x-class", Class::SHEDDABLE);
        let service = throttle.layer().criticality(class).layer(handlers.clone());
        let mut call: Vec<Answering> = Vec::new();
        for _ in 0..3 {
            call.push(Box::pin(service.clone().call(get("/"))));
        }
        assert_eq!(answered(&mut call.pop().unwrap()).status(), 503);
        drop(call);
        clock.advance(Duration::from_millis(20));
        handlers.answer_empty();
        answered(&mut requests[0]);
        requests.iter_mut().skip(1).for_each(|request| drop(poll(request)));
        throttle.record_metrics();
    });
    let has = |line: &str| {
        let line = format!("sluicegate_throttle_{line}");
        assert!(lines.contains(&line), "{line} is not in {lines:#?}");
    };
    has("offered_total{throttle=shop,class=SHEDDABLE} 7");
    has("offered_total{throttle=shop,class=CRITICAL} 0");
    has("started_total{throttle=shop,class=SHEDDABLE,how=at_once} 1");
    has("started_total{throttle=shop,class=SHEDDABLE,how=waited} 1");
    has("shed_total{throttle=shop,class=SHEDDABLE,reason=share} 2");
    has("left_total{throttle=shop,class=SHEDDABLE} 1");
    has("queue_requests{throttle=shop,class=SHEDDABLE} 2");
    has("queue_bound{throttle=shop} 4000");
    has("running{throttle=shop} 1");
    has("capacity{throttle=shop} 1");
    has("admitted_classes{throttle=shop} 4");
    has("unreadable_total{throttle=shop,what=class} 0");
    has("wait_seconds{throttle=shop,class=SHEDDABLE} [0.02]");
}
