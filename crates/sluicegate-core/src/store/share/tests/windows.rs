//! Fixed windows whose part changes while they are spent.

use proptest::prelude::*;

use super::*;

fn limits() -> [Limit; 2] {
    [Limit::fixed_window(8, MINUTE), Limit::fixed_window(8, MINUTE).from_first()]
}

/// At the beginning of a window.
fn clock() -> ManualClock {
    ManualClock::at(1_000 * MINUTE)
}

#[test]
fn a_window_that_was_spent_by_a_larger_part_is_open_again_in_the_next() {
    for limit in limits() {
        let clock = clock();
        let (store, fleet) = member_of(1, &clock);
        assert_eq!(admitted(&store, limit), 8, "{limit}");
        fleet.see(8);
        assert_eq!(take(&store, limit, 1).retry_after(), Some(MINUTE), "{limit}");
        clock.advance(MINUTE);
        assert_eq!(admitted(&store, limit), 1, "{limit}");
    }
}

#[test]
fn a_window_that_was_spent_by_a_smaller_part_is_spent_by_the_larger() {
    for limit in limits() {
        let clock = clock();
        let (store, fleet) = member_of(8, &clock);
        assert_eq!(admitted(&store, limit), 1, "{limit}");
        fleet.see(1);
        clock.advance(3 * SECOND);
        assert_eq!(take(&store, limit, 1).retry_after(), Some(MINUTE - 3 * SECOND), "{limit}");
        clock.advance(MINUTE - 3 * SECOND);
        assert_eq!(admitted(&store, limit), 8, "{limit}");
    }
}

#[test]
fn what_a_part_of_a_window_owes_is_owed_for_as_many_windows_by_every_part() {
    for limit in limits() {
        let clock = clock();
        let (store, fleet) = member_of(8, &clock);
        let receipt = take(&store, limit, 1).receipts().next().expect("one");
        let one = charge(limit, 1);
        Store::settle(&store, one.debits().next().expect("one"), &receipt, 3);
        assert_eq!(take(&store, limit, 1).retry_after(), Some(3 * MINUTE), "{limit}");
        fleet.see(1);
        clock.advance(3 * SECOND);
        assert_eq!(take(&store, limit, 1).retry_after(), Some(3 * MINUTE - 3 * SECOND), "{limit}");
    }
}

/// A place that is booked in a later window by one part counts in that window for every part.
#[test]
fn a_place_that_was_booked_by_one_part_is_taken_for_another() {
    let (store, fleet) = member_of(4, &clock());
    let patient = charge(Limit::fixed_window(8, MINUTE), 2).patient(2 * MINUTE);
    let wait = || store.take(&patient).now().expect("a decision").wait();
    assert_eq!([wait(), wait()], [Duration::ZERO, MINUTE]);
    fleet.see(8);
    assert_eq!(take(&store, Limit::fixed_window(8, MINUTE), 1).retry_after(), Some(2 * MINUTE));
}

const COUNTS: [u64; 5] = [1, 2, 3, 4, 8];

proptest! {
    /// By what the documentation promises, and not by the arithmetic of a part.
    #[test]
    fn members_that_come_and_go_get_their_part_of_each_window_and_no_more(
        windows in prop::collection::vec((0..5_usize, 0..9_u64, 0..5_usize), 1..30),
        from_first in any::<bool>(),
    ) {
        let (limit, clock) = (limits()[usize::from(from_first)], clock());
        let (store, fleet) = member_of(1, &clock);
        for (before, some, after) in windows {
            fleet.see(COUNTS[before]);
            // A part has grown long before the next window.
            clock.advance(MINUTE);
            // One request is a part of the window, here in 24ths.
            let mut spent = 0;
            let mut take_of = |members: u64, most: u64| {
                let part = 8 / members;
                let took = (0..most).take_while(|_| take(&store, limit, 1).is_admitted()).count() as u64;
                spent += 24 / part * took;
                (took, part, spent)
            };
            let (took, part, _) = take_of(COUNTS[before], some);
            prop_assert_eq!(took, some.min(part), "{} of {}", limit, COUNTS[before]);
            fleet.see(COUNTS[after]);
            clock.advance(3 * SECOND);
            let (_, _, spent) = take_of(COUNTS[after], 9);
            prop_assert!(spent <= 24, "{}", spent);
            clock.advance(MINUTE - 3 * SECOND);
        }
    }
}
