//! Limits on trial (shadow limits).

use super::super::testing::{decide, preview};
use super::super::{Attempt, Decision, Keys, Limit, State};
use super::{MINUTE, NOW, admits, micros, secs};

fn shapes() -> [Limit; 9] {
    [
        Limit::per_minute(2),
        Limit::per_minute(2).refill(2, secs(60)),
        Limit::leaky_bucket(2, secs(60)).queue(1).delay_after(1),
        Limit::fixed_window(2, secs(60)),
        Limit::fixed_window(2, secs(60)).from_first(),
        Limit::sliding_log(2, secs(60)),
        Limit::sliding_window(2, secs(60)),
        Limit::concurrent(2),
        Limit::per_minute(2).named("a").carried(),
    ]
}

fn shadowed(decision: &Decision) -> Vec<bool> {
    decision.statuses().map(|status| status.shadowed).collect()
}

/// Two limits on one key, charged together.
struct Both {
    limits: [Limit; 2],
    states: [State; 2],
}

impl Both {
    fn new(limits: [Limit; 2]) -> Self {
        Self { limits, states: limits.map(|limit| limit.fresh()) }
    }

    fn attempts(&mut self) -> Vec<Attempt<'_>> {
        let attempts = self.limits.iter().zip(&mut self.states);
        attempts.map(|(limit, state)| Attempt { limit, state, cost: 1 }).collect()
    }

    fn take(&mut self, now: u64) -> Decision {
        decide(&mut self.attempts(), now, None, Keys::One)
    }
}

#[test]
fn a_shadow_admits_everything_and_reports_what_it_would_refuse() {
    for limit in shapes().map(Limit::shadow) {
        let mut state = limit.fresh();
        let told = [(); 4].map(|()| limit.take(&mut state, NOW, 1));
        assert!(told.iter().all(|decision| decision.is_admitted()), "{limit}");
        assert!(told.iter().all(|decision| decision.wait().is_zero()), "{limit}");
        let told: Vec<_> = told.iter().flat_map(shadowed).collect();
        assert_eq!(told, [false, false, true, true], "{limit}");
        let peeked = limit.peek(&state, NOW, 1);
        assert_eq!((peeked.is_admitted(), peeked.is_shadowed()), (true, true), "{limit}");
    }
}

#[test]
fn the_status_of_a_shadow_says_when_it_would_admit() {
    for limit in shapes() {
        let shadow = limit.shadow();
        let (mut state, mut beside) = (limit.fresh(), shadow.fresh());
        for _ in 0..2 {
            limit.take(&mut state, NOW, 1);
            shadow.take(&mut beside, NOW, 1);
        }
        let refused = limit.take(&mut state, NOW, 1);
        let told = shadow.take(&mut beside, NOW, 1);
        let (real, told) = (refused.statuses().next().unwrap(), told.statuses().next().unwrap());
        assert_eq!((told.retry, told.window, told.reset), (real.retry, real.window, real.reset));
        assert_eq!((told.refused, told.charged, told.remaining), (false, 0, 0), "{limit}");
        assert!(told.receipt.is_void(), "{limit}");
    }
}

#[test]
fn no_request_waits_for_a_shadow() {
    let leaky = Limit::leaky_bucket(1, secs(1)).queue(5).shadow();
    let mut state = leaky.fresh();
    let told = [(); 3].map(|()| leaky.take_within(&mut state, NOW, 1, secs(60)));
    assert!(told.iter().all(|decision| decision.is_admitted() && decision.wait().is_zero()));
    let told: Vec<_> = told.iter().flat_map(shadowed).collect();
    assert_eq!(told, [false, true, true]);
}

#[test]
fn the_others_are_decided_as_if_it_were_not_there() {
    for shadow in shapes().map(Limit::shadow) {
        let alone = Limit::per_minute(3).named("real");
        let (mut state, mut both) = (alone.fresh(), Both::new([shadow, alone]));
        for second in 0..90 {
            let now = NOW + second * 1_000_000;
            let (told, real) = (both.take(now), alone.take(&mut state, now, 1));
            assert_eq!(told.verdict(), real.verdict(), "{shadow}");
            let of_real = told.statuses().nth(1).map(|status| status.remaining);
            assert_eq!(of_real, real.remaining());
            assert_eq!(told.remaining(), real.remaining());
        }
    }
}

#[test]
fn a_shadow_is_not_charged_for_what_another_refuses() {
    let mut both = Both::new([Limit::per_minute(5).shadow(), Limit::per_minute(1).named("real")]);
    assert!(both.take(NOW).is_admitted());
    for _ in 0..9 {
        let refused = both.take(NOW);
        assert_eq!(refused.statuses().next().map(|status| status.remaining), Some(4));
        assert_eq!(shadowed(&refused), [false, false]);
    }
}

#[test]
fn a_shadow_bans_and_counts_as_it_would() {
    let ban = Limit::per_second(1).ban(secs(60)).shadow();
    let mut state = ban.fresh();
    assert!(!ban.take(&mut state, NOW, 1).is_shadowed());
    assert!(ban.take(&mut state, NOW, 1).is_shadowed());
    let told = ban.take(&mut state, NOW + 30_000_000, 1);
    assert!(told.is_shadowed() && told.is_admitted() && !told.is_banned());
    assert!(told.statuses().all(|status| status.banned));

    let log = Limit::sliding_log(1, secs(60)).count_refused().shadow();
    let mut state = log.fresh();
    let told = [0, 50, 100].map(|second| log.take(&mut state, NOW + second * 1_000_000, 1));
    assert_eq!(told.map(|decision| decision.is_shadowed()), [false, true, true]);
}

#[test]
fn what_was_not_charged_settles_nothing() {
    for limit in shapes().map(Limit::shadow) {
        let mut state = limit.fresh();
        limit.take(&mut state, NOW, 2);
        let over = limit.take(&mut state, NOW, 1);
        let receipt = over.statuses().next().unwrap().receipt;
        let before = state.clone();
        limit.settle(&mut state, NOW, &receipt, 1, 0);
        limit.settle(&mut state, NOW, &receipt, 1, 9);
        assert_eq!(state, before, "{limit}");
    }
}

#[test]
fn a_state_is_the_same_when_a_shadow_becomes_a_limit_that_refuses() {
    for limit in shapes() {
        assert_eq!(limit.id(), limit.shadow().id());
        let mut state = limit.fresh();
        limit.shadow().take(&mut state, NOW, 2);
        assert!(!admits(limit, &mut state, NOW), "{limit}");
    }
}

#[test]
fn a_preview_of_several_leaves_a_shadow_out() {
    let mut both = Both::new([Limit::per_minute(1).shadow(), Limit::per_minute(2).named("real")]);
    both.take(NOW);
    let told = preview(&mut both.attempts(), NOW, Keys::One);
    assert!(told.is_admitted());
    assert_eq!(shadowed(&told), [true, false]);
    both.take(NOW);
    let told = preview(&mut both.attempts(), NOW + MINUTE / 4, Keys::One);
    assert_eq!(told.retry_after(), Some(micros(15_000_000)));
    assert_eq!(shadowed(&told), [true, false]);
}

#[test]
fn an_outcome_is_no_larger() {
    assert_eq!(size_of::<super::super::Outcome>(), 56);
}
