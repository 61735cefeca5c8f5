//! A cost that a limit can never admit is distinguished from one that it admits later.

use proptest::prelude::*;

use super::super::{Attempt, Keys, Limit, State, Verdict, decide};
use super::strategies::{limit, small_limit, turn};
use super::{NOW, secs};
use crate::remote;

fn shapes() -> [Limit; 8] {
    [
        Limit::per_minute(5),
        Limit::per_minute(60).refill(1, secs(1)).burst(5),
        Limit::leaky_bucket(5, secs(60)).queue(4),
        Limit::fixed_window(5, secs(60)),
        Limit::fixed_window(5, secs(60)).from_first(),
        Limit::sliding_log(5, secs(60)),
        Limit::sliding_window(5, secs(60)),
        Limit::concurrent(5),
    ]
}

#[test]
fn a_cost_beyond_the_capacity_is_told_that_it_never_fits() {
    for limit in shapes() {
        let refused = limit.take(&mut limit.fresh(), NOW, 9);
        assert_eq!(refused.verdict(), Verdict::Never, "{limit}");
        assert_eq!((refused.never_fits(), refused.retry_after()), (true, None), "{limit}");
        assert!(refused.statuses().all(|status| status.refused), "{limit}");
        assert_eq!(refused.remaining(), Some(5), "{limit}: what remains is told as it is");
        let mut state = limit.fresh();
        assert!(limit.take(&mut state, NOW, 5).is_admitted());
        assert!(!limit.take(&mut state, NOW, 1).never_fits(), "{limit}");
    }
}

/// No patience is long enough, so the request does not wait.
#[test]
fn what_never_fits_does_not_wait_in_a_queue() {
    for limit in shapes() {
        let refused = limit.take_within(&mut limit.fresh(), NOW, 9, secs(1 << 40));
        assert_eq!(refused.verdict(), Verdict::Never, "{limit}");
    }
    // It would have to stay in the bucket's own queue for longer than it may.
    let leaky = Limit::leaky_bucket(1, secs(1)).queue(10);
    assert!(leaky.take_within(&mut leaky.fresh(), NOW, 5, secs(3)).never_fits());
    assert!(leaky.take_within(&mut leaky.fresh(), NOW, 5, secs(4)).is_admitted());
}

/// The cost is not a matter of speed: a slower client would be refused as well.
#[test]
fn what_never_fits_counts_towards_no_ban_and_as_no_refused_attempt() {
    for limit in shapes().map(|limit| limit.ban(secs(600))) {
        let mut state = limit.fresh();
        for _ in 0..3 {
            assert!(limit.take(&mut state, NOW, 9).never_fits());
        }
        assert_eq!(state, limit.fresh(), "{limit}");
        assert!(limit.take(&mut state, NOW, 5).is_admitted(), "{limit}");
    }
    for limit in shapes().into_iter().filter_map(|limit| limit.try_count_refused().ok()) {
        let mut state = limit.fresh();
        assert!(limit.take(&mut state, NOW, 9).never_fits());
        assert!(limit.take(&mut state, NOW, 5).is_admitted(), "{limit}");
    }
    // A shadow limit for which the cost is too large reports that, and does not record it either.
    let shadow = Limit::per_minute(5).ban(secs(600)).shadow();
    let mut state = shadow.fresh();
    assert!(shadow.take(&mut state, NOW, 9).is_shadowed());
    assert!(!shadow.take(&mut state, NOW, 1).is_shadowed());
}

fn take_all(limits: &[Limit], states: &mut [State], cost: u64) -> Verdict {
    let attempts = limits.iter().zip(states).map(|(limit, state)| Attempt { limit, state, cost });
    decide(&mut attempts.collect::<Vec<_>>(), NOW, None, Keys::One).verdict()
}

#[test]
fn where_one_of_several_limits_can_never_admit_that_is_the_answer() {
    let limits = [Limit::per_minute(9).ban(secs(60)), Limit::per_hour(5), Limit::concurrent(9)];
    let mut states = limits.each_ref().map(Limit::fresh);
    assert!(take_all(&limits[..1], &mut states[..1], 9).is_admitted());
    let before = states.clone();
    assert_eq!(take_all(&limits, &mut states, 6), Verdict::Never);
    assert_eq!(states, before, "the first limit is exhausted, and records nothing");
    // A shadow limit refuses nothing.
    let limits = [Limit::per_minute(9), Limit::per_hour(5).shadow()];
    let mut states = limits.each_ref().map(Limit::fresh);
    assert!(take_all(&limits, &mut states, 6).is_admitted());
}

proptest! {
    #![proptest_config(crate::tests::cases(100))]

    /// Whatever the state: the limit alone decides it, so a remote store may check it before a call.
    #[test]
    fn a_limit_says_beforehand_whether_a_cost_never_fits(
        limit in prop_oneof![limit(), small_limit()],
        turns in prop::collection::vec(
            (turn(), 0_u64..40, prop::option::of(0_u64..100_000)), 1..20,
        ),
    ) {
        let mut state = limit.fresh();
        let (mut now, mut retry) = (NOW, None);
        for (turn, cost, patience) in turns {
            now += turn.micros(&limit, retry);
            let patience = patience.map(super::micros);
            let mut attempts = [Attempt { limit: &limit, state: &mut state, cost }];
            let outcome = decide(&mut attempts, now, patience, Keys::One);
            prop_assert_eq!(outcome.never_fits(), remote::never_fits(&limit, cost, patience));
            retry = outcome.retry_after();
            if !outcome.is_admitted() && !outcome.never_fits() {
                prop_assert!(retry.is_some(), "{}: what may fit is told when", limit);
            }
        }
    }
}
