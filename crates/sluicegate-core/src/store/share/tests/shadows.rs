//! Shadows beside limits that decide, and alone.

use super::*;

/// A limit and a shadow, on two keys.
fn on_trial(limit: Limit, trial: Limit) -> Charge {
    let mut both = charge(limit, 1);
    both.add(trial.shadow(), KeyBuf::of("all"), 1).expect("room");
    both
}

fn uncounted(outcome: &Outcome, charge: &Charge) -> Vec<bool> {
    outcome.decision(charge).statuses().map(|status| status.uncounted).collect()
}

#[test]
fn a_shadow_whose_part_is_nothing_refuses_nobody() {
    let clock = ManualClock::new();
    for (members, limit, trial) in [
        (4, Limit::per_minute(8), Limit::fixed_window(3, MINUTE)),
        (4, Limit::fixed_window(8, MINUTE), Limit::concurrent(3)),
        // Too small to stay exact.
        (100_000_000, Limit::per_second(1_000_000), Limit::per(1, 365 * 86_400 * SECOND)),
    ] {
        let both = on_trial(limit, trial);
        let (store, alone) = (member_of(members, &clock).0, member_of(members, &clock).0);
        for _ in 0..4 {
            let outcome = store.take(&both).now().expect("a decision");
            assert_eq!(outcome.verdict(), take(&alone, limit, 1).verdict(), "{trial}");
            assert_eq!(uncounted(&outcome, &both), [false, true], "{trial}");
            // Nothing was charged to the shadow, so nothing is given back.
            for (debit, receipt) in both.debits().zip(outcome.receipts()).skip(1) {
                assert!(receipt.is_void(), "{trial}");
                Store::settle(&store, debit, &receipt, 0);
            }
        }
        assert_eq!(admitted(&store, trial.shadow()), 50, "{trial}");
    }
}

#[test]
fn a_shadow_that_has_a_part_tells_what_that_would_refuse() {
    let (store, _) = member_of(4, &ManualClock::new());
    let both = on_trial(Limit::per_minute(40), Limit::fixed_window(8, MINUTE));
    let shadowed = [(); 3].map(|()| {
        let outcome = store.take(&both).now().expect("a decision");
        assert_eq!(uncounted(&outcome, &both), [false; 2]);
        (outcome.is_admitted(), outcome.is_shadowed())
    });
    assert_eq!(shadowed, [(true, false), (true, false), (true, true)]);
}

#[test]
fn shadows_are_admitted_by_a_member_that_has_just_joined() {
    let clock = ManualClock::new();
    let fleet = Fleet::by_clock(2 * SECOND, &clock);
    let store = Share::new(Memory::builder().capacity(100).clock(&clock).build(), &fleet);
    let trial = Limit::per_minute(60);
    assert_eq!(admitted(&store, trial.shadow()), 50);
    let both = on_trial(trial, trial.named("new"));
    let refused = store.take(&both).now().expect("a decision");
    assert!(!refused.is_admitted());
    let refuses = |status: &LimitStatus| status.refused;
    let decision = refused.decision(&both);
    assert_eq!(decision.statuses().map(refuses).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn a_shadow_is_not_guarded() {
    let clock = ManualClock::at(Duration::from_secs(1_000_000));
    let (store, _) = member_of(1, &clock);
    let store = store.guard(Duration::from_millis(50));
    let trial = Limit::fixed_window(8, SECOND);
    for millis in [0, 990] {
        clock.advance(Duration::from_millis(millis));
        assert!(take(&store, trial.shadow(), 1).is_admitted(), "{millis}");
        let both = on_trial(Limit::per_second(8), trial);
        assert!(store.take(&both).now().expect("a decision").is_admitted(), "{millis}");
        assert!(!take(&store, trial.named("real"), 1).is_admitted(), "{millis}");
    }
}
