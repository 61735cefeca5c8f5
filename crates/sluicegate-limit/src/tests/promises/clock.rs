//! A clock that steps back neither grants nor bans.

use proptest::prelude::*;

use super::super::super::Limit;
use super::super::strategies::{limit, small_limit, turn};
use super::super::{HOUR, NOW, SECOND, admits, secs};
use super::Used;
use crate::limit::AlgorithmSpec;

/// How much longer than before a refusal may last. Windows and steps begin at the clock's time; the others keep the
/// rest of the wait.
fn at_most_longer(limit: &Limit) -> u64 {
    match limit.spec {
        AlgorithmSpec::TokenBucket { .. } | AlgorithmSpec::LeakyBucket { .. } => 0,
        AlgorithmSpec::SlidingLog { resolution } => resolution - 1,
        AlgorithmSpec::SteppedBucket { .. } | AlgorithmSpec::FixedWindow { .. } => limit.period,
        AlgorithmSpec::SlidingWindow | AlgorithmSpec::Concurrent => 2 * limit.period,
    }
}

proptest! {
    #![proptest_config(crate::tests::cases(150))]

    #[test]
    fn stepping_back_never_grants_and_never_bans(
        limit in prop_oneof![limit(), small_limit()],
        turns in prop::collection::vec((turn(), 1_u64..9), 1..40),
        back in prop_oneof![turn().prop_map(Some), Just(None)],
        cost in 1_u64..9,
    ) {
        let mut used = Used::new(limit);
        let mut written = used.now;
        for (turn, cost) in turns {
            used.turn(turn);
            if used.take(cost).is_admitted() || limit.count_refused {
                written = used.now;
            }
        }
        let cost = cost.min(limit.capacity());
        let before = limit.peek(&used.state, used.now, cost);
        let back = back.map_or(HOUR, |turn| turn.micros(&limit, used.retry));
        used.now -= back;

        let after = limit.peek(&used.state, used.now, cost);
        prop_assert!(after.remaining() <= before.remaining());
        prop_assert!(before.is_admitted() || !after.is_admitted(), "granted");
        let (Some(was), Some(is)) = (before.retry_after(), after.retry_after()) else {
            return Ok(());
        };
        // A state stores when it was written, not when it was last read.
        if limit.ban > 0 || limit.gap > 0 {
            written = NOW;
        }
        let unseen = back.min(used.now + back - written);
        let most = was.as_micros() as u64 + unseen + at_most_longer(&limit);
        // A coarse tick does not tell where in it the state was written.
        let most = most + if limit.period % SECOND == 0 { SECOND - 1 } else { 0 };
        prop_assert!(is.as_micros() as u64 <= most, "{}: {:?}, was {:?}", limit, is, was);
    }

    /// The wait that is announced then is kept: the clock need not first reach the old time again.
    #[test]
    fn a_request_refused_after_the_step_is_admitted_after_retry_after(
        limit in prop_oneof![limit(), small_limit()],
        turns in prop::collection::vec((turn(), 1_u64..9), 1..40),
        back in 0_u64..2 * HOUR,
        cost in 1_u64..9,
    ) {
        let mut used = Used::by(limit, &turns);
        used.now -= back;
        let cost = cost.min(limit.capacity());
        if let Some(retry) = used.take(cost).retry_after() {
            let retry = retry.as_micros() as u64;
            prop_assert!(!limit.peek(&used.state, used.now + retry - 1, cost).is_admitted());
            used.now += retry;
            prop_assert!(used.take(cost).is_admitted(), "{}", limit);
        }
    }

    #[test]
    fn a_clock_that_jumps_about_never_leaves_a_key_shut_for_good(
        limit in small_limit(),
        turns in prop::collection::vec((turn(), 0_u64..2_000_000, 1_u64..5), 1..60),
    ) {
        let mut used = Used::new(limit);
        for (turn, back, cost) in turns {
            used.turn(turn);
            used.now -= back;
            used.take(cost);
        }
        for _ in 0..3 {
            if let Some(retry) = used.take(1).retry_after() {
                used.now += retry.as_micros() as u64;
                prop_assert!(used.take(1).is_admitted(), "{}", limit);
            }
        }
    }
}

#[test]
fn an_hour_back_a_ban_lasts_no_longer_than_it_was_to() {
    let limit = Limit::per_minute(1).ban(secs(600));
    let mut state = limit.fresh();
    assert!(admits(limit, &mut state, NOW + HOUR));
    assert!(!admits(limit, &mut state, NOW + HOUR));
    assert!(!admits(limit, &mut state, NOW));
    assert!(!admits(limit, &mut state, NOW + 660 * SECOND - 1));
    assert!(admits(limit, &mut state, NOW + 660 * SECOND));
}

/// Late in the window that the clock steps into, the previous count would hardly weigh.
#[test]
fn two_counts_grant_nothing_to_a_clock_that_steps_back_over_a_border() {
    let limit = Limit::sliding_window(10, secs(60));
    let mut state = limit.fresh();
    assert!(limit.take(&mut state, NOW + 30 * SECOND, 10).is_admitted());
    assert!(!admits(limit, &mut state, NOW + 60 * SECOND));
    assert!(limit.take(&mut state, NOW + 67 * SECOND, 1).is_admitted());
    assert!(!admits(limit, &mut state, NOW + 59 * SECOND));
}
