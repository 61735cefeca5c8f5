//! Carrying over what was spent when a limit's numbers change.

use proptest::prelude::*;

use super::super::{Decision, Limit, LimitError, Receipt};
use super::strategies::{Turn, changes, small_limit, turn};
use super::{HOUR, MINUTE, NOW, SECOND, micros, secs};
use crate::internal::LimitInternals as _;

fn receipt(decision: &Decision) -> Receipt {
    decision.statuses().next().expect("one limit, one status").receipt
}

fn plans(texts: [&str; 2]) -> [Limit; 2] {
    texts.map(|text| format!("{text} named plan carried").parse().unwrap())
}

fn remaining(decision: &Decision) -> u64 {
    decision.remaining().expect("one limit")
}

#[test]
fn a_limit_is_carried_over_under_a_name() {
    let error = Limit::per_second(1).try_carried().unwrap_err();
    assert_eq!(
        error.to_string(),
        "what was spent is carried over under a name: name the limit before"
    );
    let error: LimitError = "1/s carried".parse::<Limit>().unwrap_err();
    assert!(error.to_string().contains("name the limit"), "{error}");
    let limit = Limit::per_second(1).named("a").carried();
    assert_eq!(limit.to_string(), "1/second named \"a\" carried");
    assert_eq!("1/second carried named a".parse(), Ok(limit));
    // A new name changes nothing about it.
    assert!(limit.named("b").is_carried());
}

#[test]
fn its_row_is_that_of_its_algorithm_and_name_whatever_its_numbers() {
    let alike = [
        ["100/minute burst 7", "3 per 2 hours"],
        ["10 per 10s stepped burst 60", "1/day stepped"],
        ["leaky 10/second queue 20", "leaky 7/minute"],
        ["fixed 5/day", "fixed 7/hour"],
        ["fixed 5/day", "fixed 5/day from-first"],
        ["log 5/minute resolution 1s", "log 7/minute resolution 1s"],
        ["sliding 5/hour", "sliding 7/minute"],
        ["concurrent 5", "concurrent 7"],
    ];
    let mut ids: Vec<u64> = Vec::new();
    for texts in alike {
        let [a, b] = plans(texts);
        assert_eq!(a.id(), b.id(), "{a} and {b}");
        assert_ne!(a.id(), a.named("other").id());
        ids.push(a.id());
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 7);
}

/// A log of a second would drop stamps that a log of an hour counts.
#[test]
fn logs_of_two_periods_have_two_rows() {
    let [hour, second] = plans(["log 5/hour", "log 5/second"]);
    assert_ne!(hour.id(), second.id());
}

#[test]
fn a_bucket_s_debt_drains_at_the_old_rate_until_the_change() {
    let [slow, quick] = plans(["6/minute burst 10", "60/minute burst 100"]);
    let mut state = slow.fresh();
    assert!(slow.take(&mut state, NOW, 10).is_admitted());
    // Three of ten have drained, and half of the next.
    let now = NOW + 35 * SECOND;
    let peeked = quick.peek(&state, now, 1);
    assert_eq!(remaining(&peeked), 93);
    // Half a token is left to drain: at one a second.
    let status = peeked.statuses().next().expect("one limit");
    assert_eq!(status.window, Some(micros(500_000)));
    // The peek has changed nothing.
    assert_eq!(remaining(&slow.peek(&state, now, 1)), 3);
}

#[test]
fn what_is_spent_beyond_the_new_numbers_is_over_by_these() {
    let changes = [
        (["600/minute", "10/minute"], 6 * SECOND),
        (["600/minute stepped", "10/minute stepped"], MINUTE),
        (["fixed 600/minute", "fixed 10/minute"], MINUTE),
    ];
    for (texts, then) in changes {
        let [paid, free] = plans(texts);
        let mut state = paid.fresh();
        assert!(paid.take(&mut state, NOW, 600).is_admitted());
        assert_eq!(free.take(&mut state, NOW, 1).retry_after(), Some(micros(then)), "{free}");
        // Changing back forgets nothing.
        assert_eq!(remaining(&paid.take(&mut state, NOW, 0)), 0, "{paid}");
    }
}

#[test]
fn windows_that_are_counted_otherwise_are_over_when_they_would_have_been() {
    let [day, night] = plans(["fixed 5/minute from-first", "fixed 3/minute from-first"]);
    let mut state = day.fresh();
    assert!(day.take(&mut state, NOW, 2).is_admitted());
    for second in 1..59 {
        // However often one replaces the other.
        let limit = if second % 2 == 0 { day } else { night };
        assert_eq!(remaining(&limit.take(&mut state, NOW + second * SECOND, 0)), limit.count() - 2);
    }
    assert_eq!(remaining(&night.take(&mut state, NOW + MINUTE, 1)), 2);

    let [day, night] = plans(["5/minute stepped", "3/minute stepped"]);
    let mut state = day.fresh();
    assert!(day.take(&mut state, NOW, 3).is_admitted());
    for second in 1..59 {
        let limit = if second % 2 == 0 { day } else { night };
        limit.take(&mut state, NOW + second * SECOND, 0);
    }
    assert_eq!(remaining(&night.take(&mut state, NOW + MINUTE, 0)), 3);
}

#[test]
fn logs_keep_their_stamps_and_what_is_held_stays_held() {
    let [hour, minute] = plans(["log 5/minute", "log 9/minute"]);
    let mut state = hour.fresh();
    assert!(hour.take(&mut state, NOW, 2).is_admitted());
    assert!(hour.take(&mut state, NOW + 30 * SECOND, 2).is_admitted());
    assert_eq!(remaining(&minute.take(&mut state, NOW + 59 * SECOND, 1)), 4);
    assert_eq!(remaining(&minute.take(&mut state, NOW + MINUTE, 1)), 5);

    let [many, few] = plans(["concurrent 9", "concurrent 2"]);
    let mut state = many.fresh();
    let held = receipt(&many.take(&mut state, NOW, 3));
    assert!(!few.take(&mut state, NOW, 1).is_admitted());
    many.settle(&mut state, NOW, &held, 3, 0);
    assert!(few.take(&mut state, NOW, 2).is_admitted());
}

/// In logs, concurrency limits, and windows of the same period, the charge can be identified.
#[test]
fn what_was_charged_before_is_given_back_where_that_can_be_told() {
    for texts in [
        ["log 5/minute", "log 9/minute"],
        ["sliding 5/minute", "sliding 9/minute"],
        ["fixed 5/minute", "fixed 9/minute"],
        ["fixed 5/minute from-first", "fixed 9/minute from-first"],
        ["concurrent 5", "concurrent 9"],
    ] {
        let [before, after] = plans(texts);
        let mut state = before.fresh();
        let charged = receipt(&before.take(&mut state, NOW, 3));
        assert_eq!(remaining(&after.take(&mut state, NOW + 1, 1)), 5, "{after}");
        before.settle(&mut state, NOW + 2, &charged, 3, 1);
        assert_eq!(remaining(&after.peek(&state, NOW + 2, 0)), 7, "{after}");
    }
}

/// The quick limit has drained the old charge, so what is spent now belongs to other requests.
#[test]
fn what_was_charged_before_is_not_given_back_out_of_what_others_spent() {
    for texts in [
        ["5/hour", "5/second"],
        ["5/hour stepped", "5/second stepped"],
        ["fixed 5/hour", "fixed 5/second"],
        ["fixed 5/hour from-first", "fixed 5/second from-first"],
        ["sliding 5/hour", "sliding 5/second"],
    ] {
        let [slow, quick] = plans(texts);
        let mut state = slow.fresh();
        let charged = receipt(&slow.take(&mut state, NOW, 3));
        assert!(quick.take(&mut state, NOW + SECOND / 2, 1).is_admitted());
        assert!(quick.take(&mut state, NOW + 3 * SECOND, 4).is_admitted(), "{quick}");
        slow.settle(&mut state, NOW + 3 * SECOND, &charged, 3, 0);
        assert_eq!(remaining(&quick.peek(&state, NOW + 3 * SECOND, 0)), 1, "{quick}");
    }
}

#[test]
fn a_ban_outlasts_a_change() {
    let [before, after] = plans(["2/minute ban 1 hour", "9/minute ban 5 minutes"]);
    let mut state = before.fresh();
    before.take(&mut state, NOW, 2);
    assert!(before.take(&mut state, NOW, 1).is_banned());
    assert!(after.take(&mut state, NOW + 50 * MINUTE, 1).is_banned());
    assert!(after.take(&mut state, NOW + 2 * HOUR, 1).is_admitted());
}

#[test]
fn a_state_is_kept_as_long_as_the_numbers_that_have_written_it_say() {
    let [minute, hour] = plans(["fixed 5/minute", "fixed 5/hour"]);
    let mut state = hour.fresh();
    hour.take(&mut state, NOW, 1);
    assert_eq!(minute.fresh_in(&state, NOW), Some(secs(3_600)));
}

/// The option as it is written in a file; and the same limit without it.
fn with_and_without(limit: Limit) -> [Limit; 2] {
    [limit.named("a"), limit.named("a").carried()]
}

/// An account that began in the same microsecond gives its charges a later moment than they had. Giving back uses the
/// moment of the charge.
#[test]
fn what_is_given_back_has_drained_since_the_moment_of_the_charge() {
    let [first, second] = plans(["5 per 2us burst 4", "2 per 1us burst 4"]);
    let mut state = first.fresh();
    first.take(&mut state, NOW, 3);
    let charged = receipt(&second.take(&mut state, NOW + 1, 2));
    first.take(&mut state, NOW + 2, 1);
    second.settle(&mut state, NOW + 2, &charged, 2, 0);
    assert_eq!(remaining(&first.peek(&state, NOW + 2, 0)), 3);
}

/// A file that is edited every day, with a limit of a month.
#[test]
fn what_is_left_of_a_month_survives_any_number_of_changes() {
    for form in [
        "COUNT per 30 days",
        "COUNT per 30 days stepped",
        "fixed COUNT per 30 days",
        "sliding COUNT per 30 days",
    ] {
        let limit = |count: u64| {
            let text = format!("{} named plan carried", form.replace("COUNT", &count.to_string()));
            text.parse::<Limit>().unwrap()
        };
        let mut state = limit(10_000).fresh();
        let start = NOW - NOW % (30 * 24 * HOUR);
        assert!(limit(10_000).take(&mut state, start, 300).is_admitted());
        for edit in 1..20 {
            let now = start + edit * HOUR;
            let limit = limit(10_000 + edit);
            let left = remaining(&limit.take(&mut state, now, 10));
            // Nothing is forgotten, and of what was spent no more is counted than was.
            let spent = 300 + 10 * edit;
            assert!(left >= limit.capacity() - spent, "{limit}: {left} after {edit}");
            assert!(left <= limit.capacity() - 10, "{limit}: {left} after {edit}");
        }
        // The first numbers come back after their account had to make room.
        let left = remaining(&limit(10_000).peek(&state, start + 20 * HOUR, 0));
        assert!((9_510..10_000).contains(&left), "{form}: {left}");
    }
}

#[test]
fn numbers_whose_account_made_room_admit_nothing_twice() {
    let limit = |text: &str| format!("{text} named plan carried").parse::<Limit>().unwrap();
    let ten = limit("10 per 100s");
    let mut state = ten.fresh();
    assert!(ten.take(&mut state, NOW, 10).is_admitted());
    // These recover later, and hold one each.
    for seconds in 1_001..1_011 {
        assert!(!limit(&format!("1 per {seconds}s")).take(&mut state, NOW, 1).is_admitted());
    }
    assert!(!ten.take(&mut state, NOW, 1).is_admitted());
}

/// Numbers of which more take turns than a row has accounts for. Steps and windows from the first request are left out:
/// alone, they would begin at other moments.
fn many_numbers() -> impl Strategy<Value = Vec<Limit>> {
    (0_usize..2, prop::collection::vec((1_u64..9, 1_u64..40), 9..14)).prop_map(|(form, numbers)| {
        let form = ["", "fixed"][form];
        let limits = numbers.into_iter().map(|(count, seconds)| {
            let text = match form {
                "fixed" => format!("fixed {count} per {seconds}s"),
                _ => format!("{count} per {seconds}s"),
            };
            format!("{text} named plan carried").parse().unwrap()
        });
        limits.collect()
    })
}

proptest! {
    #![proptest_config(crate::tests::cases(75))]

    /// However many numbers take turns, none of them admits more than it would alone.
    #[test]
    fn no_numbers_admit_more_than_they_would_alone(
        limits in many_numbers(),
        steps in prop::collection::vec((0_usize..13, 0_u64..12_000, 1_u64..4), 20..120),
    ) {
        let mut state = limits[0].fresh();
        let mut alone: Vec<_> = limits.iter().map(|limit| limit.fresh()).collect();
        let mut now = NOW;
        for (at, millis, cost) in steps {
            now += millis * 1_000;
            let at = at % limits.len();
            if limits[at].take(&mut state, now, cost).is_admitted() {
                let is_admitted = limits[at].take(&mut alone[at], now, cost).is_admitted();
                prop_assert!(is_admitted, "{} of {:?}", limits[at], limits);
            }
        }
    }

    #[test]
    fn while_its_numbers_stay_a_limit_decides_as_without(
        limit in small_limit(),
        steps in prop::collection::vec((turn(), 0_u64..5, turn(), prop::option::of(0_u64..4)), 1..60),
    ) {
        let limits = with_and_without(limit);
        let mut states = limits.map(|limit| limit.fresh());
        let (mut now, mut retry) = (NOW, None);
        for (turned, cost, patience, spent) in steps {
            now += turned.micros(&limit, retry);
            let patience = patience.micros(&limit, retry);
            let [a, b] = [0, 1].map(|i| {
                let decision = limits[i].take_within(&mut states[i], now, cost, micros(patience));
                if let (Some(spent), true) = (spent, decision.is_admitted()) {
                    limits[i].settle(&mut states[i], now, &receipt(&decision), cost, spent);
                }
                decision
            });
            prop_assert_eq!(a.verdict(), b.verdict());
            for (a, b) in a.statuses().zip(b.statuses()) {
                prop_assert_eq!((a.remaining, a.window, a.soft), (b.remaining, b.window, b.soft));
            }
            prop_assert_eq!(states[0].words, states[1].words);
            retry = a.retry_after();
        }
    }

    #[test]
    fn as_much_is_spent_after_a_change_as_before(
        limits in changes(),
        cost in 0_u64..9,
        turned in turn(),
        others in prop::collection::vec((turn(), 0_u64..9), 0..4),
    ) {
        // Logs have a window of their own.
        prop_assume!(!limits[0].to_string().starts_with("log"));
        let mut state = limits[0].fresh();
        let mut now = NOW;
        limits[0].take(&mut state, now, cost.min(limits[0].capacity()));
        for (turned, cost) in others {
            now += turned.micros(&limits[0], None);
            limits[0].take(&mut state, now, cost);
        }
        now += turned.micros(&limits[0], None);
        let options = |limit: Limit| limit.gap == 0 && limit.ban == 0;
        prop_assume!(options(limits[0]) && options(limits[1]));
        let spent = |limit: Limit, state: &_| limit.capacity() - remaining(&limit.peek(state, now, 0));
        let before = spent(limits[0], &state);
        let after = spent(limits[1], &state);
        if before < limits[0].capacity() {
            prop_assert_eq!(after, before.min(limits[1].capacity()));
        } else {
            prop_assert!(after >= before.min(limits[1].capacity()));
        }
    }

    #[test]
    fn nothing_is_minted_by_giving_back_after_changes(
        limits in changes(),
        costs in prop::collection::vec((0_usize..4, turn(), 1_u64..5), 2..12),
    ) {
        // A log keeps no refusals beyond its count. A higher count could notice them.
        let is_kept = |limit: &Limit| limit.most_entries() == 0 || !limit.count_refused;
        prop_assume!(limits.iter().all(is_kept));
        let mut state = limits[0].fresh();
        let (mut now, mut receipts) = (NOW, Vec::new());
        let mut last = (0, 0);
        for (at, turned, cost) in costs {
            let limit = limits[at % limits.len()];
            now += match turned { Turn::Retry | Turn::AlmostRetry => 1, turned => turned.micros(&limit, None) };
            let decision = limit.take(&mut state, now, cost);
            if decision.is_admitted() && decision.wait().is_zero() {
                if last.0 == now { last.1 += cost } else { last = (now, cost) }
                receipts.push((limit, receipt(&decision), cost, now));
            }
        }
        // Charges from before this moment are given back. Those of this moment are kept.
        for (limit, receipt, cost, at) in &receipts {
            if *at < now {
                limit.settle(&mut state, now, receipt, *cost, 0);
            }
        }
        let here = if last.0 == now { last.1 } else { 0 };
        let limit = limits[0];
        let left = remaining(&limit.peek(&state, now, 0));
        prop_assert!(limit.capacity() - left >= here.min(limit.capacity()), "{} left of {}", left, limit);
    }
}
