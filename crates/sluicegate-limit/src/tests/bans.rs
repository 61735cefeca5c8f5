//! Bans that begin after several refusals.

use super::super::{Limit, Receipt};
use super::{MINUTE, NOW, SECOND, admits, micros, secs};

/// Banned for ten minutes after three refusals within a minute.
fn limits() -> [Limit; 8] {
    [
        Limit::per_minute(4),
        Limit::per_minute(4).refill(1, secs(15)),
        Limit::leaky_bucket(4, secs(60)).queue(3).delay_after(3),
        Limit::fixed_window(4, secs(60)),
        Limit::sliding_log(4, secs(60)),
        Limit::sliding_window(4, secs(60)),
        Limit::concurrent(4),
        Limit::per_minute(4).named("a").carried(),
    ]
    .map(|limit| limit.ban(secs(600)).ban_after(3, secs(60)))
}

/// Whether the attempt at `now` is refused by a ban.
fn is_banned(limit: Limit, state: &mut super::State, now: u64) -> bool {
    let decision = limit.take(state, now, 1);
    assert!(!decision.is_admitted(), "{limit}");
    decision.is_banned()
}

fn spent(limit: Limit) -> (super::State, Receipt) {
    let mut state = limit.fresh();
    let decision = limit.take(&mut state, NOW, 4);
    assert!(decision.is_admitted(), "{limit}");
    (state, decision.statuses().next().expect("one limit").receipt)
}

#[test]
fn a_ban_begins_with_the_last_of_the_refusals() {
    for limit in limits() {
        let (mut state, _) = spent(limit);
        let banned = [0, 1, 2].map(|micros| is_banned(limit, &mut state, NOW + micros));
        assert_eq!(banned, [false, false, true], "{limit}");
        assert!(is_banned(limit, &mut state, NOW + 600 * SECOND), "{limit}");
    }
}

#[test]
fn refusals_count_within_a_time_from_the_first_of_them() {
    let limit = Limit::fixed_window(1, secs(600)).ban(secs(3_600)).ban_after(3, secs(60));
    let mut state = limit.fresh();
    assert!(admits(limit, &mut state, NOW));
    let attempts = [0, 30 * SECOND, MINUTE, 90 * SECOND, 2 * MINUTE - 1];
    let banned = attempts.map(|at| is_banned(limit, &mut state, NOW + at));
    assert_eq!(banned, [false, false, false, false, true]);
}

#[test]
fn attempts_during_a_ban_neither_prolong_it_nor_count_towards_the_next() {
    let limit = Limit::per_second(1).ban(secs(10)).ban_after(3, secs(60));
    let mut state = limit.fresh();
    assert!(admits(limit, &mut state, NOW));
    let refused = [(); 9].map(|()| limit.take(&mut state, NOW, 1));
    let banned: Vec<_> = refused.iter().map(|decision| decision.is_banned()).collect();
    assert_eq!(banned, [false, false, true, true, true, true, true, true, true]);
    assert!(refused[2..].iter().all(|decision| decision.retry_after() == Some(secs(11))));
    // The next ban takes three refusals again.
    let then = NOW + 11 * SECOND;
    assert!(admits(limit, &mut state, then));
    assert_eq!([(); 3].map(|()| is_banned(limit, &mut state, then)), [false, false, true]);
}

#[test]
fn a_refusal_that_counts_keeps_the_state() {
    let limit = Limit::per_second(1).ban(secs(10)).ban_after(3, secs(60));
    let mut state = limit.fresh();
    assert!(admits(limit, &mut state, NOW));
    assert!(!admits(limit, &mut state, NOW));
    assert_eq!(limit.fresh_in(&state, NOW + 2 * SECOND), Some(secs(58)));
    assert_eq!(limit.fresh_in(&state, NOW + MINUTE), Some(secs(0)));
}

/// As with an immediate ban: the charge that is given back had filled the limit.
#[test]
fn giving_back_takes_refusals_from_the_record() {
    for limit in limits().into_iter().filter(|limit| !limit.is_held()) {
        let (mut state, receipt) = spent(limit);
        assert!(!is_banned(limit, &mut state, NOW));
        assert!(!is_banned(limit, &mut state, NOW));
        limit.settle(&mut state, NOW + 1, &receipt, 4, 0);
        assert!(limit.take(&mut state, NOW + 1, 4).is_admitted(), "{limit}");
        assert!(!is_banned(limit, &mut state, NOW + 1), "{limit}");

        let (mut state, receipt) = spent(limit);
        let banned = [(); 3].map(|()| is_banned(limit, &mut state, NOW));
        assert_eq!(banned, [false, false, true]);
        limit.settle(&mut state, NOW + 1, &receipt, 4, 0);
        assert!(admits(limit, &mut state, NOW + 1), "{limit}");
    }
}

/// A later charge that is given back does not erase the refusals.
#[test]
fn what_is_charged_after_a_refusal_was_no_reason_for_it() {
    let limit = Limit::per(4, secs(4)).ban(secs(600)).ban_after(3, secs(60));
    let (mut state, _) = spent(limit);
    assert!(!is_banned(limit, &mut state, NOW));
    assert!(!is_banned(limit, &mut state, NOW));
    let now = NOW + SECOND;
    let later = limit.take(&mut state, now, 1).statuses().next().expect("one limit").receipt;
    limit.settle(&mut state, now, &later, 1, 0);
    assert!(admits(limit, &mut state, now));
    assert!(is_banned(limit, &mut state, now));
}

#[test]
fn a_clock_that_steps_back_neither_forgets_refusals_nor_keeps_them_longer() {
    let limit = Limit::fixed_window(1, secs(6_000)).ban(secs(600)).ban_after(3, secs(60));
    let mut state = limit.fresh();
    assert!(admits(limit, &mut state, NOW));
    assert!(!is_banned(limit, &mut state, NOW));
    let back = NOW - 3_000 * SECOND;
    assert!(!is_banned(limit, &mut state, back));
    assert!(!is_banned(limit, &mut state, back + MINUTE));
    assert!(!is_banned(limit, &mut state, back + MINUTE + 1));
    assert!(is_banned(limit, &mut state, back + MINUTE + 2));
}

#[test]
fn a_ban_after_one_refusal_begins_at_once() {
    let ban = Limit::per_second(1).ban(secs(60));
    assert_eq!(ban.ban_after(1, secs(60)), ban);
}

#[test]
fn what_cannot_be_counted_is_an_error_that_says_so() {
    let limit = Limit::per_second(1);
    let error = |limit: Result<Limit, super::super::LimitError>| limit.unwrap_err().to_string();
    assert!(error(limit.try_ban_after(3, secs(1))).contains("say first how long"));
    let ban = limit.ban(secs(1));
    assert!(error(ban.try_ban_after(0, secs(1))).contains("after 0 refusals"));
    assert!(error(ban.try_ban_after(1 << 52, secs(1))).contains("too many"));
    assert!(error(ban.try_ban_after(3, secs(0))).contains("the time in which refusals count"));
    assert!(
        error(ban.try_ban_after(3, micros(1) / 2)).contains("the time in which refusals count")
    );
    let text = |text: &str| error(text.parse());
    assert!(text("1/s ban 1s after").contains("ends too soon"));
    assert!(text("1/s ban 1s after three in 1s").contains("a whole number"));
    assert!(text("1/s ban 1s after 3 within 1s").contains("comes `in`"));
}

/// One has a record of refusals in its row, and the other does not.
#[test]
fn a_limit_that_counts_refusals_has_rows_of_its_own() {
    let ban = Limit::per_second(1).named("a").ban(secs(60));
    assert_ne!(ban.id(), ban.ban_after(3, secs(60)).id());
    assert_eq!(ban.ban_after(3, secs(60)).id(), ban.ban_after(4, secs(9)).id());
    assert_eq!(ban.carried().id(), ban.ban_after(3, secs(60)).carried().id());
}
