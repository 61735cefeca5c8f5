use std::sync::Barrier;
use std::thread;

use super::*;
use crate::limit::{Limit, Outcome, Verdict};
use crate::store::charge::Charge;

fn decision(verdict: Verdict) -> Decision {
    Outcome::from_parts(verdict, []).decision(&Charge::new())
}

impl Gate {
    /// How long an admitted request waits, if it waits; or what to do with a refused one.
    fn judge(&self, decision: &Decision) -> Result<Option<Duration>, Treatment> {
        match decision.verdict() {
            Verdict::Admit { wait } => Ok(self.admit(wait)),
            Verdict::Refuse { .. } | Verdict::Never => Err(self.treat(decision)),
        }
    }
}

const FORWARD: Result<Option<Duration>, Treatment> = Ok(None);

fn refused() -> Decision {
    decision(Verdict::Refuse { retry_after: Some(Duration::from_secs(1)) })
}

fn admitted() -> Decision {
    decision(Verdict::Admit { wait: Duration::ZERO })
}

const WAIT: Duration = Duration::from_millis(20);

fn booked() -> Decision {
    decision(Verdict::Admit { wait: WAIT })
}

fn elsewhere(status: u16) -> Treatment {
    Treatment::Redirect(Redirect { status, location: "/busy".into() })
}

#[test]
fn every_rejection_has_its_step() {
    let away = Rejection::redirect("/busy");
    for (rejection, step) in [
        (Rejection::default(), Treatment::Reject),
        (Rejection::block(), Treatment::Reject),
        (Rejection::queue(WAIT), Treatment::Reject),
        (away.clone(), elsewhere(307)),
        (away.clone().status(303), elsewhere(303)),
        (Rejection::queue(WAIT).at_most(2).then(away.clone()), elsewhere(307)),
        (Rejection::queue(WAIT).then(Rejection::degrade()), Treatment::Degrade),
        (Rejection::degrade(), Treatment::Degrade),
        (Rejection::shadow(), Treatment::Shadow),
        (Rejection::from_fn(move |_| away.clone()), elsewhere(307)),
    ] {
        let shown = format!("{rejection:?}");
        let gate = Gate::new(rejection);
        assert_eq!(gate.judge(&refused()), Err(step), "{shown}");
        assert_eq!(gate.judge(&admitted()), FORWARD, "{shown}");
    }
}

#[test]
fn who_booked_a_place_waits_for_it() {
    for rejection in [
        Rejection::block(),
        Rejection::queue(WAIT),
        Rejection::degrade(),
        Rejection::queue(WAIT).then(Rejection::shadow()),
    ] {
        assert_eq!(Gate::new(rejection).judge(&booked()), Ok(Some(WAIT)));
    }
    assert_eq!(Gate::new(Rejection::shadow()).judge(&booked()), FORWARD);
}

#[test]
fn a_choice_sees_the_decision() {
    let limit = Limit::per_second(1).ban(Duration::from_secs(60));
    let gate = Gate::new(Rejection::from_fn(|decision| match decision.is_banned() {
        true => Rejection::block(),
        false => Rejection::degrade(),
    }));
    let mut state = limit.fresh();
    limit.take(&mut state, 0, 1);
    assert_eq!(gate.judge(&limit.take(&mut state, 0, 1)), Err(Treatment::Reject));
    assert_eq!(gate.judge(&refused()), Err(Treatment::Degrade));
}

#[test]
fn a_choice_of_choices_ends_in_a_refusal() {
    let endless = Rejection::from_fn(|_| Rejection::from_fn(|_| Rejection::shadow()));
    assert_eq!(Gate::new(endless).judge(&refused()), Err(Treatment::Reject));
}

#[test]
fn without_a_queue_there_is_no_place() {
    for rejection in [Rejection::block(), Rejection::shadow(), Rejection::degrade()] {
        assert!(Gate::new(rejection).permit().is_none());
    }
    let chosen = Rejection::from_fn(|_| Rejection::queue(WAIT));
    assert!(Gate::new(chosen).permit().is_none());
}

#[test]
fn a_place_is_free_again_when_it_is_dropped() {
    let gate = Gate::new(Rejection::queue(WAIT).at_most(2));
    let clone = gate.clone();
    let (first, patience) = gate.permit().expect("a place");
    assert_eq!(patience, WAIT);
    let second = clone.permit().expect("another");
    assert!(gate.permit().is_none());
    assert_eq!(gate.waiting(), 2);
    drop(first);
    assert_eq!(clone.waiting(), 1);
    let third = gate.permit().expect("the place of the first");
    assert!(clone.permit().is_none());
    drop((second, third));
    assert_eq!(gate.waiting(), 0);
}

/// Never more than the bound, nor fewer because others try in vain.
#[test]
fn as_many_wait_as_there_are_places_and_no_more() {
    const PLACES: usize = 4;
    let gate = Gate::new(Rejection::queue(WAIT).at_most(PLACES));
    let most = AtomicUsize::new(0);
    let barrier = Barrier::new(8);
    thread::scope(|scope| {
        for thread in 0..8 {
            let (gate, most, barrier) = (&gate, &most, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for _ in 0..2_000 {
                    // Four threads never find the queue full. The others only try while it is.
                    let place = if thread < PLACES { gate.permit() } else { None };
                    most.fetch_max(gate.waiting(), Ordering::SeqCst);
                    if thread >= PLACES {
                        drop(gate.permit());
                    }
                    drop(place);
                }
            });
        }
    });
    assert!(most.into_inner() <= PLACES);
    assert_eq!(gate.waiting(), 0);
}

fn panic_of(make: impl FnOnce() -> Rejection + std::panic::UnwindSafe) -> String {
    let panic = std::panic::catch_unwind(make).expect_err("it panics");
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => (*panic.downcast::<&str>().expect("a text")).to_owned(),
    }
}

#[test]
fn nonsense_is_told_in_sentences() {
    let queue = || Rejection::queue(WAIT);
    assert_eq!(
        panic_of(move || queue().at_most(0)),
        "a queue of at most 0 requests lets nobody wait: leave it out"
    );
    assert_eq!(
        panic_of(|| Rejection::block().at_most(1)),
        "`at_most` belongs to `Rejection::queue`"
    );
    assert_eq!(
        panic_of(|| Rejection::shadow().then(Rejection::block())),
        "`then` belongs to `Rejection::queue`"
    );
    assert_eq!(
        panic_of(move || queue().then(queue())),
        "one queue behind another: make the first one longer"
    );
    for location in ["", "/a b", "/a\r\nset-cookie: a=b", "/ü"] {
        assert_eq!(
            panic_of(move || Rejection::redirect(location)),
            format!(
                "the redirect's location {location:?} is not a URI of visible ASCII characters"
            )
        );
    }
    assert_eq!(
        panic_of(|| Rejection::redirect("/").status(200)),
        "200 does not redirect to a location: use 302, 303, 307 or 308"
    );
    assert_eq!(
        panic_of(|| Rejection::block().status(302)),
        "`status` belongs to `Rejection::redirect`"
    );
}
