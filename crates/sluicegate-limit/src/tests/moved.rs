//! Customers who are moved to other numbers after they have spent more than these allow.

use std::time::Duration;

use proptest::prelude::*;

use super::super::testing::decide;
use super::super::{Attempt, Keys, Limit, State};
use super::strategies::{changes, turn};
use super::{DAY, HOUR, MINUTE, NOW, SECOND, micros, secs};
use crate::limit::AlgorithmSpec;

fn plans(texts: [&str; 2]) -> [Limit; 2] {
    texts.map(|text| format!("{text} named plan carried").parse().unwrap())
}

fn retry(limit: Limit, state: &State, now: u64, cost: u64) -> Option<u64> {
    let refused = limit.take(&mut state.clone(), now, cost);
    refused.retry_after().map(|retry| retry.as_micros() as u64)
}

fn admits(limit: Limit, state: &State, now: u64, cost: u64) -> bool {
    limit.take(&mut state.clone(), now, cost).is_admitted()
}

/// A million a day and ten a day, and when one more request is admitted after half a million at an hour after
/// midnight.
fn moved_down() -> [([Limit; 2], u64); 5] {
    [
        // All ten of the day are spent, and none is available before.
        (["1000000/day", "10/day"], DAY / 10),
        (["1000000/day stepped", "10/day stepped"], DAY),
        (["fixed 1000000/day", "fixed 10/day"], 23 * HOUR),
        (["fixed 1000000/day from-first", "fixed 10/day from-first"], DAY),
        // Less than ten of ten overlap: from the first tick of the next day on.
        (["sliding 1000000/day", "sliding 10/day"], 23 * HOUR + 1),
    ]
    .map(|(texts, then)| (plans(texts), then))
}

fn half_a_million(paid: Limit) -> State {
    let mut state = paid.fresh();
    assert!(paid.take(&mut state, NOW + HOUR, 500_000).is_admitted());
    state
}

#[test]
fn a_customer_moved_to_ten_a_day_after_half_a_million_waits_as_long_as_ten_a_day_take() {
    for ([paid, free], then) in moved_down() {
        let mut state = half_a_million(paid);
        let now = NOW + HOUR;
        let refused = free.take(&mut state, now, 1);
        assert_eq!(refused.retry_after(), Some(micros(then)), "{free}");
        let status = refused.statuses().next().expect("one limit");
        assert_eq!((status.remaining, status.retry), (0, Some(micros(then))), "{free}");
        assert_eq!(status.window, Some(micros(then)), "{free}");
        assert!(status.reset <= Some(micros(2 * DAY)), "{free}");
        assert!(!admits(free, &state, now + then - 1, 1), "{free}");
        assert!(admits(free, &state, now + then, 1), "{free}");
        assert_eq!(retry(free, &state, now, 11), None, "{free} never allows as much");
    }
}

#[test]
fn asking_meanwhile_delays_nothing() {
    for ([paid, free], then) in moved_down() {
        let mut state = half_a_million(paid);
        for part in [0, then / 3, then / 2, then - SECOND, then - 1] {
            let left = Some(micros(then - part));
            let now = NOW + HOUR + part;
            assert_eq!(free.peek(&state, now, 1).retry_after(), left, "{free}");
            assert_eq!(free.take(&mut state, now, 1).retry_after(), left, "{free}");
        }
        assert!(free.take(&mut state, NOW + HOUR + then, 1).is_admitted(), "{free}");
    }
}

#[test]
fn a_patient_request_books_a_place_by_the_new_numbers() {
    for ([paid, free], then) in moved_down() {
        let mut state = half_a_million(paid);
        let booked = free.take_within(&mut state, NOW + HOUR, 1, secs(30 * 86_400));
        assert_eq!((booked.is_admitted(), booked.wait()), (true, micros(then)), "{free}");
    }
}

#[test]
fn moved_down_and_up_again_nothing_is_minted_and_nothing_forgotten() {
    for ([paid, free], _) in moved_down() {
        let before = half_a_million(paid);
        let mut state = before.clone();
        for minute in 0..60 {
            assert!(
                !free.take(&mut state, NOW + HOUR + minute * MINUTE, 1).is_admitted(),
                "{free}"
            );
        }
        let now = NOW + 2 * HOUR;
        assert_eq!(paid.peek(&state, now, 1), paid.peek(&before, now, 1));
        let left = paid.peek(&state, now, 0).remaining().expect("one limit");
        assert!(paid.take(&mut state, now, left).is_admitted());
        assert!(!paid.take(&mut state, now, 1).is_admitted());
    }
}

/// The account of ten a day began after the charge, so it gets nothing back.
#[test]
fn a_charge_is_given_back_after_moving_down_and_up_again() {
    for ([paid, free], _) in moved_down() {
        let mut state = paid.fresh();
        let now = NOW + HOUR;
        let charged = paid.take(&mut state, now, 500_000);
        let receipt = charged.statuses().next().expect("one limit").receipt;
        assert!(!free.take(&mut state, now, 1).is_admitted());
        paid.settle(&mut state, now, &receipt, 500_000, 3);
        assert_eq!(paid.peek(&state, now, 0).remaining(), Some(999_997), "{paid}");
    }
}

/// As with a rule that counts only failures, under changing load.
#[test]
fn what_is_given_back_is_given_back_to_all_numbers_that_took_it() {
    for texts in [
        ["600/minute", "10/minute"],
        ["600/minute stepped", "10/minute stepped"],
        ["fixed 600/minute", "fixed 10/minute"],
        ["fixed 600/minute", "fixed 10/hour"],
        ["sliding 600/minute", "sliding 10/hour"],
    ] {
        let [paid, free] = plans(texts);
        let mut state = paid.fresh();
        assert!(free.take(&mut state, NOW, 1).is_admitted());
        for _ in 0..500 {
            let charged = paid.take(&mut state, NOW + 1, 1);
            let receipt = charged.statuses().next().expect("one limit").receipt;
            paid.settle(&mut state, NOW + 2, &receipt, 1, 0);
        }
        assert_eq!(free.peek(&state, NOW + 2, 0).remaining(), Some(9), "{free}");
        // If ten a day had no room for all of it, it is unknown how much it took, so it gets nothing back.
        let charged = paid.take(&mut state, NOW + 3, 100);
        let receipt = charged.statuses().next().expect("one limit").receipt;
        paid.settle(&mut state, NOW + 3, &receipt, 100, 0);
        let left = if texts[1].starts_with("sliding") { 9 } else { 0 };
        assert_eq!(free.peek(&state, NOW + 3, 0).remaining(), Some(left), "{free}");
        assert_eq!(paid.peek(&state, NOW + 3, 0).remaining(), Some(599), "{paid}");
    }
}

#[test]
fn what_turns_out_to_have_cost_more_is_owed_to_all_numbers() {
    let [paid, free] = plans(["600/minute", "10/minute"]);
    let mut state = free.fresh();
    let charged = free.take(&mut state, NOW, 1);
    let receipt = charged.statuses().next().expect("one limit").receipt;
    assert!(paid.take(&mut state, NOW, 500).is_admitted());
    free.settle(&mut state, NOW, &receipt, 1, 100);
    assert_eq!(paid.peek(&state, NOW, 0).remaining(), Some(0));
    // One of ten was spent, and 99 more are spent now: at ten a minute.
    assert_eq!(retry(free, &state, NOW, 1), Some(10 * MINUTE));
}

#[test]
fn a_ban_lasts_from_when_one_would_have_been_admitted() {
    let [paid, free] = plans(["600/minute", "10/minute ban 1 hour"]);
    let mut state = paid.fresh();
    assert!(paid.take(&mut state, NOW, 600).is_admitted());
    let refused = free.take(&mut state, NOW, 1);
    assert_eq!(refused.retry_after(), Some(micros(6 * SECOND + HOUR)));
    assert!(free.peek(&state, NOW, 0).statuses().all(|status| status.banned));
}

#[test]
fn a_customer_moved_to_a_quicker_rate_waits_by_that_rate() {
    let [slow, quick] = plans(["10/day", "10/hour"]);
    let mut state = slow.fresh();
    assert!(slow.take(&mut state, NOW, 10).is_admitted());
    assert_eq!(quick.take(&mut state, NOW, 1).retry_after(), Some(secs(360)));
    assert!(admits(quick, &state, NOW + 6 * MINUTE, 1));
}

/// A refusal by the generous numbers does not change what is spent under the tight ones, nor does a refusal by the
/// tight ones.
#[test]
fn a_refusal_takes_no_account_of_third_numbers_away() {
    let limit = |text: &str| format!("{text} named plan carried").parse::<Limit>().unwrap();
    let (fast, slow, third) = (limit("20/second"), limit("5/hour"), limit("2/second"));
    let mut state = fast.fresh();
    assert!(fast.take(&mut state, NOW, 1).is_admitted());
    assert!(slow.take(&mut state, NOW, 4).is_admitted());
    // By the fast numbers all of it has drained, by the slow ones hardly any.
    let now = NOW + SECOND;
    assert_eq!(fast.peek(&state, now, 1).remaining(), Some(20));
    assert!(!third.take(&mut state, now, 1).is_admitted());
    assert_eq!(fast.peek(&state, now, 1).remaining(), Some(20));
    assert_eq!(slow.peek(&state, now, 1).remaining(), Some(0));
}

#[test]
fn a_refusal_changes_nothing_for_other_numbers() {
    for texts in [
        ["600/minute", "10/minute"],
        ["20/second", "100/day"],
        ["600/minute stepped", "10/minute stepped"],
        ["fixed 20/second", "fixed 100/day"],
        ["sliding 20/second", "sliding 100/day"],
    ] {
        let [generous, tight] = plans(texts);
        let mut state = tight.fresh();
        let all = tight.capacity();
        assert!(tight.take(&mut state, NOW, all).is_admitted());
        let when = retry(tight, &state, NOW, 1).expect("a moment");
        for part in 0..50 {
            let now = NOW + when / 50 * part;
            let most = generous.capacity();
            assert!(!generous.take(&mut state, now, most + 1).is_admitted());
            assert!(!tight.take(&mut state, now, 1).is_admitted());
            assert_eq!(retry(tight, &state, now, 1), Some(when - when / 50 * part), "{tight}");
        }
    }
}

/// Two sets of numbers in turn, as often as possible, for an hour or a day.
#[test]
fn numbers_in_turn_each_admit_what_they_allow_and_no_more() {
    // Ten searches a minute beside six hundred requests of any kind, in turn each twentieth of a second, for an hour.
    let [generous, tight] = plans(["600/minute", "10/minute"]);
    let mut state = tight.fresh();
    let (mut by_tight, mut by_generous) = (0, 0);
    for turn in 0..36_000 * 2 {
        let now = NOW + turn * SECOND / 20;
        match turn % 2 {
            0 => by_tight += u64::from(tight.take(&mut state, now, 1).is_admitted()),
            _ => by_generous += u64::from(generous.take(&mut state, now, 1).is_admitted()),
        }
    }
    assert!(by_tight <= 10 + 600, "{by_tight}");
    assert!(by_tight + by_generous <= 600 + 36_000, "{by_tight} and {by_generous}");
    // The generous numbers do not miss what the tight ones refuse.
    assert!(by_generous >= 35_000, "{by_generous}");

    // A hundred a day beside twenty a second, for a day.
    let [generous, tight] = plans(["20/second", "100/day"]);
    let mut state = tight.fresh();
    let (mut by_tight, mut by_generous) = (0, 0);
    for turn in 0..86_400 * 2 {
        let now = NOW + turn * SECOND / 2;
        by_tight += u64::from(tight.take(&mut state, now, 1).is_admitted());
        by_generous += u64::from(generous.take(&mut state, now, 1).is_admitted());
    }
    assert!(by_tight <= 200, "{by_tight}");
    assert_eq!(by_generous, 172_800);
}

/// More sets of numbers than a row has accounts for: too strict then, but never too generous.
#[test]
fn more_numbers_than_a_row_has_room_for_mint_nothing() {
    let limits: Vec<Limit> = (1..=12_u64)
        .map(|n| {
            format!("{} per {} seconds named plan carried", 5 * n, 100 * n * n).parse().unwrap()
        })
        .collect();
    let mut state = limits[0].fresh();
    let mut admitted = [0; 12];
    for turn in 0..86_400 {
        let at = (turn * turn + turn / 7) as usize % 12;
        let now = NOW + turn * SECOND;
        admitted[at] += u64::from(limits[at].take(&mut state, now, 1).is_admitted());
        assert!(state.others.as_ref().is_none_or(|others| others.accounts.len() <= 7));
    }
    for (n, admitted) in (1..).zip(admitted) {
        assert!(admitted <= 5 * n + 86_400 * 5 * n / (100 * n * n), "{admitted} by the {n}th");
    }
    // Once all accounts have recovered, everything is as at first.
    let later = NOW + 3 * DAY;
    assert_eq!(limits[0].fresh_in(&state, later), Some(Duration::ZERO));
    assert!(admits(limits[0], &state, later, 5));
}

#[test]
fn a_row_that_has_recovered_by_all_numbers_is_as_good_as_one_that_was_forgotten() {
    let [slow, fast] = plans(["4/second", "9/second burst 3"]);
    let (mut kept, mut forgotten) = (slow.fresh(), fast.fresh());
    assert!(slow.take(&mut kept, NOW, 2).is_admitted());
    assert!(fast.take(&mut kept, NOW, 1).is_admitted());
    let later = NOW + 5 * SECOND;
    for state in [&mut kept, &mut forgotten] {
        assert!(fast.take(state, later, 1).is_admitted());
    }
    for then in [later, later + SECOND / 8] {
        assert_eq!(slow.peek(&kept, then, 1), slow.peek(&forgotten, then, 1));
    }
}

/// Two limits with one algorithm. The first allows at least as much as the second in every way.
fn larger_and_smaller() -> impl Strategy<Value = [Limit; 2]> {
    let kinds =
        prop::sample::select(vec!["", "leaky", "fixed", "from-first", "sliding", "stepped", "log"]);
    let counts = (1_u64..9, 0_u64..9);
    let period = prop::sample::select(vec![1_u64, 3, 10, 100, 1_000, 86_400 * SECOND]);
    (kinds, counts, period, 1_u64..4).prop_map(|(spec, (count, more), period, slower)| {
        let of = |count: u64, slower: u64| {
            let period = micros(period * slower);
            let limit = match spec {
                "leaky" => Limit::leaky_bucket(count, period).queue(count),
                "fixed" => Limit::fixed_window(count, period),
                "from-first" => Limit::fixed_window(count, period).from_first(),
                "sliding" => Limit::sliding_window(count, period),
                "log" => Limit::sliding_log(count, period),
                "stepped" => Limit::per(count, period).refill(count, period),
                _ => Limit::per(count, period),
            };
            limit.named("a").carried()
        };
        // Windows and steps that begin at other moments cannot be compared by size.
        let slower = if matches!(spec, "" | "leaky") { slower } else { 1 };
        [of(count + more, 1), of(count, slower)]
    })
}

proptest! {
    #![proptest_config(crate::tests::cases(75))]

    /// What some numbers admit, they would also have admitted alone, whatever came in between.
    #[test]
    fn no_numbers_ever_admit_more_than_they_allow(
        limits in changes(),
        steps in prop::collection::vec((turn(), 0_usize..4, 1_u64..4), 1..150),
    ) {
        // If refused attempts count, there are fewer of them when only admitted requests come.
        prop_assume!(limits.iter().all(|limit| !limit.count_refused));
        // When a step or a window begins that is counted from first use depends on which request came first.
        prop_assume!(limits.iter().all(|limit| {
            !matches!(limit.spec, AlgorithmSpec::SteppedBucket { .. } | AlgorithmSpec::FixedWindow { from_first: true })
        }));
        let mut state = limits[0].fresh();
        let mut alone: Vec<_> = limits.iter().map(|limit| {
            let alone = Limit { gap: 0, ban: 0, after: 0, within: 0, ..*limit };
            (alone, alone.fresh())
        }).collect();
        let (mut now, mut told) = (NOW, None);
        for (turned, which, cost) in steps {
            let at = which % limits.len();
            now += turned.micros(&limits[at], told);
            let decision = limits[at].take(&mut state, now, cost);
            told = decision.retry_after();
            if decision.is_admitted() {
                let (limit, own) = &mut alone[at];
                prop_assert!(limit.take(own, now, cost).is_admitted(), "{}", limit);
            }
        }
    }

    #[test]
    fn numbers_in_turn_never_admit_more_than_the_larger_alone(
        limits in larger_and_smaller(),
        steps in prop::collection::vec((turn(), any::<bool>()), 1..150),
    ) {
        let [larger, smaller] = limits;
        let (mut state, mut alone) = (larger.fresh(), larger.fresh());
        let (mut now, mut told) = (NOW, None);
        let (mut admitted, mut most) = (0, 0);
        for (i, (turned, turns)) in steps.into_iter().enumerate() {
            now += turned.micros(&larger, told);
            let limit = if turns && i % 2 == 1 { smaller } else { larger };
            let decision = limit.take(&mut state, now, 1);
            told = decision.retry_after();
            admitted += u64::from(decision.is_admitted());
            most += u64::from(larger.take(&mut alone, now, 1).is_admitted());
            // A full bucket has no phase, and any other has one, so a step can come that much sooner.
            let sooner = if matches!(larger.spec, AlgorithmSpec::SteppedBucket { .. }) { larger.count } else { 0 };
            prop_assert!(admitted <= most + sooner, "{} and {}: {} of {}", larger, smaller, admitted, most);
        }
    }

    #[test]
    fn who_waits_as_long_as_told_is_admitted_whoever_wrote_the_row_and_one_tick_earlier_is_not(
        limits in changes(),
        steps in prop::collection::vec((turn(), 0_usize..4, 1_u64..9), 1..60),
    ) {
        let mut state = limits[0].fresh();
        let (mut now, mut told) = (NOW, None);
        for (turned, which, cost) in steps {
            let limit = limits[which % limits.len()];
            now += turned.micros(&limit, told);
            let peeked = limit.peek(&state, now, cost).verdict();
            let decision = limit.take(&mut state, now, cost);
            told = decision.retry_after();
            prop_assert_eq!(decision.is_admitted(), peeked.is_admitted());
            if decision.is_admitted() {
                continue;
            }
            // A refusal begins a ban, or counts. A peek does not include that.
            if limit.ban == 0 && !limit.count_refused {
                prop_assert_eq!(peeked.retry_after(), told);
            }
            prop_assert_eq!(told.is_none(), cost > limit.capacity());
            let Some(retry) = told.map(|told: Duration| told.as_micros() as u64) else { continue };
            prop_assert!(retry > 0 && !admits(limit, &state, now + retry - 1, cost), "{}", limit);
            prop_assert!(admits(limit, &state, now + retry, cost), "{}: {}", limit, retry);
            // Asking meanwhile delays nothing.
            if limit.ban == 0 && !limit.count_refused {
                let mut asked = state.clone();
                for part in [retry / 3, retry / 2, retry - 1] {
                    if limit.take(&mut asked, now + part, cost).is_admitted() {
                        break;
                    }
                    prop_assert!(admits(limit, &asked, now + retry, cost), "{}: {}", limit, retry);
                }
            }
        }
    }

    #[test]
    fn the_same_holds_for_several_limits_at_once_whoever_wrote_their_rows(
        limits in (changes(), changes()),
        steps in prop::collection::vec((turn(), 0_usize..4, 0_usize..4, 1_u64..5), 1..40),
    ) {
        let mut states = [limits.0[0].fresh(), limits.1[0].fresh()];
        let (mut now, mut told) = (NOW, None);
        for (turned, one, other, cost) in steps {
            let pair = [limits.0[one % limits.0.len()], limits.1[other % limits.1.len()]];
            now += turned.micros(&pair[0], told);
            let cost = cost.min(pair[0].capacity()).min(pair[1].capacity());
            let take = |states: &mut [State; 2], now: u64| {
                let attempts = pair.iter().zip(states);
                let mut attempts: Vec<_> =
                    attempts.map(|(limit, state)| Attempt { limit, state, cost }).collect();
                decide(&mut attempts, now, None, Keys::One)
            };
            let decision = take(&mut states, now);
            told = decision.retry_after();
            // If a queue always reaches beyond what another limit can book, the moment is unknown.
            let Some(retry) = told.map(|told| told.as_micros() as u64) else { continue };
            prop_assert!(retry > 0);
            let is_early = take(&mut states.clone(), now + retry - 1).is_admitted();
            prop_assert!(!is_early, "{:?}", pair);
            prop_assert!(take(&mut states.clone(), now + retry).is_admitted(), "{:?}", pair);
        }
    }
}
