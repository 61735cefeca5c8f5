//! Whole decisions, in a process.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use super::admit::Admission;
use super::enforcer::Enforcer;
use super::gate::{Gate, Rejection};
use super::refusal::Refusal;
use crate::clock::ManualClock;
use crate::clock::sleep::Timer;
use crate::http::fields;
use crate::key::Global;
use crate::key::testing::Request;
use crate::limit::{Limit, Limits};
use crate::store::memory::Memory;

/// The clock is turned by hand, so that no timer is started.
#[derive(Debug)]
struct NoTimer;

impl Timer for NoTimer {
    type Sleep = Ready<()>;

    fn sleep(_: Duration) -> Ready<()> {
        ready(())
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// The refusal of the last of `requests` to these limits, whose queue at the gate is full.
fn refused_with_a_full_queue(limits: impl Into<Limits>, requests: usize) -> Refusal {
    let rule = limits.into().by(Global);
    let store = Memory::builder().capacity(10).clock(ManualClock::new()).build();
    let mut enforcer = Enforcer::new(store, &rule);
    enforcer.gate = Gate::new(Rejection::queue(SECOND).at_most(1));
    let _permit = enforcer.gate.permit().expect("room for one");
    let enforcer = Arc::new(enforcer);
    let decide =
        || enforcer.admit::<_, _, NoTimer>(&rule, &Request::default(), || Arc::clone(&enforcer));
    for _ in 1..requests {
        assert!(matches!(decide(), Admission::Proceed(_)));
    }
    match decide() {
        Admission::Refuse(refusal) => refusal,
        admission => panic!("not refused: {admission:?}"),
    }
}

#[test]
fn while_the_queue_is_full_refusals_say_when_to_come_back() {
    let bucket = Limit::leaky_bucket(2, SECOND).queue(5);
    // It could be admitted if there were room in the queue: this is not "never".
    let refusal = refused_with_a_full_queue(bucket, 2);
    assert!(matches!(refusal, Refusal::TooMany(_)), "{refusal:?}");
    assert_eq!((refusal.status(), refusal.retry_after()), (429, Some(1)));
    let announced = fields::rate_limit(refusal.decision().expect("a decision"));
    assert_eq!(announced, r#""2/second";r=0;t=1"#);

    // Another limit knows when.
    let window = Limit::fixed_window(1, Duration::from_secs(60));
    let refusal = refused_with_a_full_queue([bucket, window], 2);
    assert!(matches!(refusal, Refusal::TooMany(_)), "{refusal:?}");
    assert_eq!((refusal.status(), refusal.retry_after()), (429, Some(60)));
}

#[test]
fn while_the_queue_is_full_what_never_fits_is_told_so() {
    let window = Limit::fixed_window(1, Duration::from_secs(60));
    let rule = Limits::from([Limit::leaky_bucket(2, SECOND).queue(5), window]).by(Global).cost(9);
    let mut enforcer = Enforcer::in_memory(&rule);
    enforcer.gate = Gate::new(Rejection::queue(SECOND).at_most(1));
    let _permit = enforcer.gate.permit().expect("room for one");
    let enforcer = Arc::new(enforcer);
    let handle = || Arc::clone(&enforcer);
    match enforcer.admit::<_, _, NoTimer>(&rule, &Request::default(), handle) {
        Admission::Refuse(Refusal::NeverFits(_, 422)) => {}
        admission => panic!("{admission:?}"),
    }
}
