//! What the options of a limit add to every algorithm.

use super::super::testing::decide;
use super::super::{Attempt, Decision, Limit, WhenFull};
use super::{MINUTE, NOW, SECOND, admits, micros, secs};

fn shapes() -> [Limit; 7] {
    [
        Limit::per_minute(4),
        Limit::per_minute(4).refill(1, secs(15)),
        Limit::leaky_bucket(4, secs(60)).queue(3).delay_after(3),
        Limit::fixed_window(4, secs(60)),
        Limit::fixed_window(4, secs(60)).from_first(),
        Limit::sliding_log(4, secs(60)),
        Limit::sliding_window(4, secs(60)),
    ]
}

#[test]
fn a_gap_keeps_any_two_apart_whatever_they_cost() {
    for limit in shapes().map(|limit| limit.min_gap(secs(1))) {
        let mut state = limit.fresh();
        assert!(limit.take(&mut state, NOW, 2).is_admitted());
        let refused = limit.take(&mut state, NOW + 400_000, 1);
        assert_eq!(refused.retry_after(), Some(micros(600_000)), "{limit}");
        assert!(!admits(limit, &mut state, NOW + SECOND - 1));
        assert!(admits(limit, &mut state, NOW + SECOND));
        // The refused attempt in between did not prolong it.
        assert!(admits(limit, &mut state, NOW + 2 * SECOND));
    }
}

/// The answer names the gap and not the window of the count: a client waits no longer than the gap.
#[test]
fn while_a_gap_lasts_nothing_remains_until_it_is_over() {
    for limit in shapes().map(|limit| limit.min_gap(micros(300_000)).soft(2)) {
        let mut state = limit.fresh();
        for decision in [limit.take(&mut state, NOW, 1), limit.take(&mut state, NOW, 1)] {
            let status = decision.statuses().next().expect("one limit");
            let told = (status.remaining, status.window, status.soft);
            assert_eq!(told, (0, Some(micros(300_000)), false), "{limit}");
        }
        let peek = limit.peek(&state, NOW + 300_000, 1);
        assert_eq!(peek.remaining(), Some(3), "{limit}");
    }
}

#[test]
fn more_than_the_soft_limit_is_admitted_with_a_warning() {
    for limit in shapes().map(|limit| limit.soft(2)) {
        let mut state = limit.fresh();
        let soft: Vec<_> = (0..4).map(|_| limit.take(&mut state, NOW, 1)).collect();
        assert!(soft.iter().all(|decision| decision.is_admitted()), "{limit}");
        let soft: Vec<_> = soft.iter().map(|decision| decision.is_soft()).collect();
        assert_eq!(soft, [false, false, true, true], "{limit}");
    }
}

#[test]
fn a_ban_lasts_from_when_it_would_have_been_admitted() {
    for limit in shapes() {
        let mut state = limit.fresh();
        assert!(limit.take(&mut state, NOW, 4).is_admitted());
        let without = limit.peek(&state, NOW, 1).retry_after().expect("time makes room");

        let limit = limit.ban(secs(600));
        let refused = limit.take(&mut state, NOW, 1);
        assert!(refused.is_banned());
        assert_eq!(refused.retry_after(), Some(without + secs(600)), "{limit}");
        assert_eq!(refused.remaining(), Some(0));
        // Attempts during the ban do not prolong it.
        let end = NOW + (without + secs(600)).as_micros() as u64;
        assert!(!admits(limit, &mut state, NOW + 5 * MINUTE));
        assert!(!admits(limit, &mut state, end - 1));
        assert!(admits(limit, &mut state, end), "{limit}");
    }
}

#[test]
fn within_the_limit_nobody_is_banned() {
    for limit in shapes().map(|limit| limit.ban(secs(600))) {
        let mut state = limit.fresh();
        for minute in 0..10 {
            let decision = limit.take(&mut state, NOW + 2 * minute * MINUTE, 4);
            assert!(decision.is_admitted() && !decision.is_banned(), "{limit}");
        }
    }
}

/// In a fixed window the ban begins at the end of the window.
#[test]
fn a_ban_of_a_fixed_window_begins_at_its_end() {
    let limit = Limit::fixed_window(1, secs(60)).ban(secs(600));
    let mut state = limit.fresh();
    assert!(admits(limit, &mut state, NOW + 50 * SECOND));
    let refused = limit.take(&mut state, NOW + 55 * SECOND, 1);
    assert_eq!(refused.retry_after(), Some(secs(605)));
}

#[test]
fn counted_refusals_keep_logs_and_sliding_windows_full() {
    for limit in [Limit::sliding_log(2, secs(60)), Limit::sliding_window(2, secs(60))] {
        let counting = limit.count_refused();
        let (mut plain, mut hammered) = (limit.fresh(), counting.fresh());
        let admitted = |limit: Limit, state: &mut _| {
            (0..600).filter(|second| admits(limit, state, NOW + second * SECOND)).count()
        };
        assert!(admitted(limit, &mut plain) >= 18, "{limit}");
        assert_eq!(admitted(counting, &mut hammered), 2, "{counting}");
        // It admits again when the flood stops.
        assert!(admits(counting, &mut hammered, NOW + 600 * SECOND + 2 * MINUTE));
    }
}

/// An option that would change nothing is refused where it is set, in code and in text.
#[test]
fn refused_attempts_are_counted_where_that_makes_a_difference_and_nowhere_else() {
    for limit in shapes().into_iter().chain([Limit::concurrent(4)]) {
        let text = format!("{limit} count-refused");
        let (made, parsed) = (limit.try_count_refused(), text.parse::<Limit>());
        let counts = ["log", "sliding"].iter().any(|shape| text.starts_with(shape));
        assert_eq!((made.is_ok(), parsed.is_ok()), (counts, counts), "{text}");
        if !counts {
            assert!(parsed.unwrap_err().to_string().contains("sliding"), "{text}");
        }
    }
    let error = "fixed 4/minute count-refused".parse::<Limit>().unwrap_err().to_string();
    assert!(error.contains("a fixed window is empty at its end"), "{error}");
}

#[test]
fn a_refusal_is_recorded_by_those_that_refuse_alone() {
    let limits =
        [Limit::sliding_log(3, secs(60)).count_refused(), Limit::per_minute(1).ban(secs(600))];
    let mut states = limits.each_ref().map(Limit::fresh);
    let mut take = |now| {
        let attempts = limits.iter().zip(&mut states);
        let mut attempts: Vec<_> =
            attempts.map(|(limit, state)| Attempt { limit, state, cost: 1 }).collect();
        decide(&mut attempts, now, None, crate::Keys::One)
    };
    assert!(take(NOW).is_admitted());
    for _ in 0..9 {
        let refused = take(NOW + SECOND);
        let by: Vec<_> = refused.statuses().map(|status| status.refused).collect();
        assert_eq!(by, [false, true]);
        // The log holds only the admitted request.
        assert_eq!(refused.statuses().next().map(|status| status.remaining), Some(2));
    }
}

#[test]
fn a_request_that_waits_for_a_gap_leaves_when_it_is_over() {
    let limit = Limit::per_minute(60).min_gap(secs(2));
    let mut state = limit.fresh();
    let waits = [(); 3].map(|()| limit.take_within(&mut state, NOW, 1, secs(4)).wait());
    assert_eq!(waits, [secs(0), secs(2), secs(4)]);
    assert!(!limit.take_within(&mut state, NOW, 1, secs(4)).is_admitted());
}

/// Five attempts are under way and a sixth is refused. Then none of the five is to count.
#[test]
fn giving_back_lifts_a_ban_that_counted_it() {
    for limit in ["5/minute", "fixed 5/minute", "log 5/minute", "sliding 5/minute"] {
        let limit = format!("{limit} ban 5 minutes").parse::<Limit>().unwrap();
        let mut state = limit.fresh();
        let receipts = [(); 5].map(|()| {
            let decision = limit.take(&mut state, NOW, 1);
            decision.statuses().next().expect("one limit").receipt
        });
        assert!(limit.take(&mut state, NOW, 1).is_banned(), "{limit}");
        limit.settle(&mut state, NOW + 1, &receipts[4], 1, 0);
        assert!(limit.take(&mut state, NOW + 1, 1).is_admitted(), "{limit}");
        assert!(limit.take(&mut state, NOW + 1, 1).is_banned(), "{limit}");
    }
}

#[test]
fn giving_back_lifts_no_ban_that_it_had_no_part_in() {
    let limit = Limit::per_second(2).ban(secs(600));
    let mut state = limit.fresh();
    let long_ago = limit.take(&mut state, NOW, 1).statuses().next().expect("one limit").receipt;
    let now = NOW + 10_000_000;
    limit.take(&mut state, now, 2);
    assert!(limit.take(&mut state, now, 1).is_banned());
    // The charge had drained before the ban began, and by now there would be room.
    limit.settle(&mut state, now + 2_000_000, &long_ago, 1, 0);
    assert!(limit.take(&mut state, now + 2_000_000, 1).is_banned());

    // Giving up a place that was booked behind the ban does not lift the ban either.
    let booked = limit.take_within(&mut state, now + 2_000_000, 1, secs(3_600));
    let receipt = booked.statuses().next().expect("one limit").receipt;
    limit.settle(&mut state, now + 2_000_001, &receipt, 1, 0);
    assert!(limit.take(&mut state, now + 2_000_001, 1).is_banned());
}

/// One slow request must not lift a ban that a thousand other requests have caused.
#[test]
fn giving_back_less_than_was_refused_lifts_no_ban() {
    let limit = Limit::per(5, secs(900)).ban(secs(3_600));
    let mut state = limit.fresh();
    let slow = limit.take(&mut state, NOW, 1).statuses().next().expect("one limit").receipt;
    limit.take(&mut state, NOW, 4);
    for _ in 0..1_000 {
        assert!(!limit.take(&mut state, NOW, 1).is_admitted());
    }
    let then = NOW + 600 * SECOND;
    limit.settle(&mut state, then, &slow, 1, 0);
    assert!(limit.take(&mut state, then, 1).is_banned());
}

/// A held place is given back at its end. That must not erase a gap or a ban.
#[test]
fn gaps_and_bans_hold_for_concurrency_too() {
    let gap = Limit::concurrent(10).min_gap(secs(1));
    let mut state = gap.fresh();
    let receipt = gap.take(&mut state, NOW, 1).statuses().next().expect("one limit").receipt;
    gap.settle(&mut state, NOW + 10, &receipt, 1, 0);
    assert!(!gap.take(&mut state, NOW + 20, 1).is_admitted());
    assert!(gap.take(&mut state, NOW + SECOND, 1).is_admitted());

    let ban = Limit::concurrent(1).ban(secs(60));
    let mut state = ban.fresh();
    let receipt = ban.take(&mut state, NOW, 1).statuses().next().expect("one limit").receipt;
    assert!(ban.take(&mut state, NOW, 1).is_banned());
    ban.settle(&mut state, NOW + 10, &receipt, 1, 0);
    assert!(ban.take(&mut state, NOW + 20, 1).is_banned());
}

/// If a cost waits longer than the patience even in an empty queue, it is never admitted.
#[test]
fn no_moment_is_named_where_there_is_none() {
    let limit = Limit::leaky_bucket(2, secs(1)).queue(4);
    let mut state = limit.fresh();
    let refused = limit.take_within(&mut state, NOW, 2, secs(0));
    assert_eq!((refused.is_admitted(), refused.retry_after()), (false, None));
    assert!(limit.take_within(&mut state, NOW, 2, secs(1)).is_admitted());
}

#[test]
fn limits_that_recover_in_seconds_admit_and_all_others_count_together() {
    let admit = [
        Limit::per_second(10),
        Limit::per_second(10).burst(100),
        Limit::per(5, secs(10)),
        Limit::per_second(10).refill(2, secs(1)),
        Limit::fixed_window(5, secs(10)),
        Limit::sliding_window(5, secs(5)),
        Limit::leaky_bucket(10, secs(1)).queue(20),
        Limit::per_second(10).min_gap(micros(100_000)),
    ];
    for limit in admit {
        assert_eq!(limit.answer_when_full(), WhenFull::Admit, "{limit}");
    }
    let together = [
        Limit::per_minute(5),
        Limit::per_second(10).burst(101),
        Limit::fixed_window(5, secs(11)),
        Limit::sliding_window(5, secs(6)),
        Limit::leaky_bucket(1, secs(1)).queue(20),
        Limit::per_second(10).min_gap(secs(11)),
        Limit::sliding_log(5, secs(1)),
        Limit::per_second(10).ban(secs(1)),
        Limit::per_second(10).ban(secs(1)).ban_after(3, secs(1)),
        Limit::sliding_window(5, secs(1)).count_refused(),
        Limit::concurrent(5),
    ];
    for limit in together {
        assert_eq!(limit.answer_when_full(), WhenFull::CountTogether, "{limit}");
    }
}

#[test]
fn what_is_said_holds_and_changes_no_row() {
    for answer in [WhenFull::Admit, WhenFull::Refuse, WhenFull::CountTogether] {
        let limit = Limit::per_hour(5).when_full(answer);
        assert_eq!(limit.answer_when_full(), answer);
        assert_eq!(limit.id(), Limit::per_hour(5).id());
        assert_ne!(limit, Limit::per_hour(5));
        assert_eq!(limit.to_string().parse(), Ok(limit));
    }
    let error = "5/hour when-full never".parse::<Limit>().unwrap_err().to_string();
    assert!(error.contains("admit, refuse or together"), "{error}");
}

/// When a place becomes free is unknown, and no earlier than the end of the gap or the ban.
#[test]
fn a_gap_or_a_ban_is_told_where_only_giving_back_makes_room() {
    let window = |decision: &Decision| decision.statuses().next().expect("one limit").window;
    for limit in [Limit::concurrent(2).ban(secs(600)), Limit::concurrent(2).min_gap(secs(600))] {
        let mut state = limit.fresh();
        assert!(limit.take(&mut state, NOW, 2).is_admitted());
        let refused = limit.take(&mut state, NOW, 1);
        assert_eq!((refused.retry_after(), window(&refused)), (None, Some(secs(600))), "{limit}");
        let later = limit.take(&mut state, NOW + 599 * SECOND, 1);
        assert_eq!((later.retry_after(), window(&later)), (None, Some(secs(1))), "{limit}");
        let over = limit.peek(&state, NOW + 600 * SECOND, 1);
        assert_eq!((over.retry_after(), window(&over)), (None, None), "{limit}");
    }
}
