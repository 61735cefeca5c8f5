use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use metrics_util::{CompositeKey, MetricKind};

use crate::admission::enforcer::Enforcer;
use crate::clock::ManualClock;
use crate::key::Missing;
use crate::key::{Global, KeyBuf};
use crate::limit::Limits;
use crate::rule::By;
use crate::store::charge::Charge;
use crate::store::{Store, StoreError};
use crate::{Limit, Memory, Rejection};

const FIVE: Limit = Limit::fixed_window(5, Duration::from_secs(60)).named("five");
const TWO: Limit = Limit::fixed_window(2, Duration::from_secs(60)).named("two");

/// A layer without a framework.
struct Layer {
    enforcer: Enforcer<Memory>,
}

impl Layer {
    fn new(rejection: Rejection) -> Self {
        let clock = ManualClock::new();
        let store = Memory::builder().capacity(1_000).clock(&clock).build();
        let rule: By<_, Limits> = Limits::from(FIVE).by(Global);
        let mut enforcer = Enforcer::new(store, &rule);
        enforcer.gate = enforcer.gate.with(rejection);
        Self { enforcer }
    }

    /// Decides about that many requests at one time. A request that waits keeps its place until the last one has come.
    fn ask(&self, limits: &[Limit], times: usize) {
        let mut admissions = Vec::new();
        for _ in 0..times {
            let mut charge = Charge::new();
            for limit in limits {
                charge.add(*limit, KeyBuf::of("alice"), 1).expect("there is room");
            }
            let permit = self.enforcer.queue(&mut charge);
            let outcome = self.enforcer.store.take(&charge).now();
            admissions.push(Enforcer::judge(self.enforcer.clone(), outcome, &mut charge, permit));
        }
    }
}

/// All that was counted, as `name{labels} value`, sorted; zeros left out.
fn counted(run: impl FnOnce()) -> Vec<String> {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, run);
    let mut lines = Vec::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        match value {
            DebugValue::Counter(0) => {}
            DebugValue::Counter(count) => lines.push(format!("{} {count}", shown(&key))),
            DebugValue::Gauge(value) => lines.push(format!("{} {value}", shown(&key))),
            DebugValue::Histogram(values) if values.is_empty() => {}
            DebugValue::Histogram(values) => {
                let values = values.iter().map(|value| format!("{value:.2}"));
                lines.push(format!("{} {}", shown(&key), values.collect::<Vec<_>>().join(" ")));
            }
        }
    }
    lines.sort();
    lines
}

fn shown(key: &CompositeKey) -> String {
    let labels = key.key().labels().map(|label| format!("{}={}", label.key(), label.value()));
    let labels = labels.collect::<Vec<_>>().join(",");
    format!("{}{{{labels}}}", key.key().name().trim_start_matches("sluicegate_"))
}

#[test]
fn decisions_are_counted_by_policy_and_verdict() {
    let counted = counted(|| Layer::new(Rejection::block()).ask(&[FIVE], 7));
    let expected = [
        "decisions_total{policy=five,verdict=admitted} 5",
        "decisions_total{policy=five,verdict=refused} 2",
        "remaining_share{policy=five} 0.80 0.60 0.40 0.20 0.00 0.00 0.00",
    ];
    assert_eq!(counted, expected);
}

#[test]
fn a_limit_on_trial_counts_what_it_would_have_refused() {
    let counted = counted(|| Layer::new(Rejection::block()).ask(&[FIVE, TWO.shadow()], 3));
    let expected = [
        "decisions_total{policy=five,verdict=admitted} 3",
        "decisions_total{policy=two,verdict=admitted} 2",
        "decisions_total{policy=two,verdict=shadowed} 1",
        "remaining_share{policy=five} 0.40",
        "remaining_share{policy=two} 0.50 0.00",
    ];
    assert_eq!(counted, expected);
}

#[test]
fn every_way_to_treat_a_refusal_has_its_verdict() {
    for (rejection, verdict) in [
        (Rejection::degrade(), "degraded"),
        (Rejection::shadow(), "shadowed"),
        (Rejection::redirect("https://busy.example.com/"), "redirected"),
    ] {
        let counted = counted(|| Layer::new(rejection).ask(&[FIVE], 6));
        let line = format!("decisions_total{{policy=five,verdict={verdict}}} 1");
        assert!(counted.contains(&line), "{line} is not in {counted:?}");
    }
}

#[test]
fn one_who_is_banned_is_counted_apart() {
    let counted = counted(|| {
        let limit = FIVE.ban(Duration::from_secs(600));
        Layer::new(Rejection::block()).ask(&[limit], 8);
    });
    assert!(counted.contains(&"decisions_total{policy=five,verdict=banned} 3".to_owned()));
}

#[test]
fn of_several_limits_those_count_that_admit_or_that_refuse() {
    let counted = counted(|| Layer::new(Rejection::block()).ask(&[FIVE, TWO], 3));
    let expected = [
        "decisions_total{policy=five,verdict=admitted} 2",
        "decisions_total{policy=two,verdict=admitted} 2",
        "decisions_total{policy=two,verdict=refused} 1",
        "remaining_share{policy=two} 0.50 0.00 0.00",
    ];
    assert_eq!(counted, expected);
}

#[test]
fn waits_are_measured_in_seconds() {
    let counted = counted(|| {
        let layer = Layer::new(Rejection::queue(Duration::from_secs(10)));
        layer.ask(&[Limit::per_second(2).burst(1).named("slow")], 3);
    });
    assert!(counted.contains(&"wait_seconds{policy=slow} 0.50 1.00".to_owned()), "{counted:?}");
    let waited = "decisions_total{policy=slow,verdict=waited} 2".to_owned();
    assert!(counted.contains(&waited), "{counted:?}");
}

#[test]
fn store_errors_are_counted_by_kind_and_the_keyless_by_whose_doing_it_is() {
    let counted = counted(|| {
        let Layer { enforcer } = Layer::new(Rejection::block());
        let mut charge = Charge::of(FIVE, KeyBuf::new(), 1);
        let errors = [
            StoreError::full(),
            StoreError::too_slow(),
            StoreError::full(),
            StoreError::unavailable("gone"),
        ];
        for error in errors {
            drop(Enforcer::judge(enforcer.clone(), Err(error), &mut charge, None));
        }
        enforcer.incomplete(Missing::client("a key"));
        enforcer.incomplete(Missing::server("a key", "add one"));
    });
    let expected = [
        "keyless_total{whose=client} 1",
        "keyless_total{whose=server} 1",
        "store_errors_total{kind=full} 2",
        "store_errors_total{kind=too_slow} 1",
        "store_errors_total{kind=unavailable} 1",
    ];
    assert_eq!(counted, expected);
}

#[test]
fn a_store_shows_itself_when_it_is_asked_to() {
    let counted = counted(|| {
        let layer = Layer::new(Rejection::block());
        layer.ask(&[TWO], 1);
        layer.enforcer.store.record_metrics("api");
    });
    assert_eq!(counted[1..3], ["memory_capacity{store=api} 1000", "memory_keys{store=api} 1"]);
}

#[test]
fn all_that_is_measured_has_a_description_and_what_has_a_unit_its_unit() {
    let recorder = DebuggingRecorder::new();
    let snapshotter: Snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        let layer = Layer::new(Rejection::queue(Duration::from_secs(1)));
        layer.ask(&[FIVE], 6);
        layer.enforcer.incomplete(Missing::client("a key"));
        let full = Err(StoreError::full());
        drop(Enforcer::judge(layer.enforcer.clone(), full, &mut Charge::new(), None));
        layer.enforcer.store.record_metrics("api");
    });
    for (key, unit, description, _) in snapshotter.snapshot().into_vec() {
        let name = key.key().name();
        assert!(description.is_some_and(|text| text.ends_with(['.', 'l'])), "{name}");
        assert!(unit.is_some() || name == "sluicegate_remaining_share", "{name}");
        assert!(key.kind() != MetricKind::Counter || name.ends_with("_total"), "{name}");
    }
}
