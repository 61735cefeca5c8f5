//! Clocks between one run and the next.

use super::super::format::Times;
use super::super::resumed;
use super::*;
use crate::limit::Part;
use crate::store::{Fleet, Share};

const NOW: Duration = Duration::from_secs(1_700_000_000);

#[test]
fn the_time_of_being_down_counts() {
    for limit in [Limit::per_minute(60), Limit::per(59, MINUTE), Limit::sliding_log(60, MINUTE)] {
        let clock = ManualClock::at(NOW);
        let kept = StoreOnDisk::new(100, &clock);
        while admits(&kept.store, limit, 1) {}
        let wait = kept.store.peek(&charge(limit, 1, 1)).now().expect("an answer").retry_after();
        let wait = wait.expect("refused");
        // Down for nearly so long.
        let mut kept = kept;
        kept.write();
        clock.advance(wait - Duration::from_micros(1));
        let kept = kept.restarted(100, &clock);
        assert!(!admits(&kept.store, limit, 1), "{limit}");
        clock.advance(Duration::from_micros(1));
        assert!(admits(&kept.store, limit, 1), "{limit}");
    }
}

#[test]
fn what_has_recovered_is_dropped() {
    let clock = ManualClock::at(NOW);
    let mut kept = StoreOnDisk::new(100, &clock);
    limits().into_iter().for_each(|limit| assert!(admits(&kept.store, limit, 1)));
    assert_eq!(kept.store.len(), limits().len());
    kept.write();
    clock.advance(3 * HOUR);
    let kept = kept.restarted(100, &clock);
    assert_eq!(kept.store.len(), 0);
}

#[test]
fn a_wall_clock_that_was_set_back_counts_as_no_time() {
    for limit in limits() {
        let clock = ManualClock::at(NOW);
        let mut kept = StoreOnDisk::new(100, &clock);
        while admits(&kept.store, limit, 1) {}
        let wait = |kept: &StoreOnDisk| {
            let outcome = kept.store.peek(&charge(limit, 1, 1)).now().expect("an answer");
            outcome.retry_after().expect("refused")
        };
        let before = wait(&kept);
        kept.write();
        let file = kept.file();
        clock.set(NOW - 48 * HOUR);
        let builder = || Memory::builder().capacity(100).clock(&clock);
        let mut kept = StoreOnDisk::start(builder(), Some(file));
        assert_eq!(wait(&kept), before, "{limit}");
        // The time in the file goes on, also over the next start.
        clock.advance(before - Duration::from_micros(1));
        kept.write();
        let kept = StoreOnDisk::start(builder(), Some(kept.file()));
        assert!(!admits(&kept.store, limit, 1), "{limit}");
        clock.advance(Duration::from_micros(1));
        assert!(admits(&kept.store, limit, 1), "{limit}");
    }
}

/// As where a machine has no battery for its clock, and learns the time from the network after the process was started.
#[test]
fn a_clock_that_was_wrong_in_the_first_run_forgets_nothing() {
    let (store, wall) = (86_400_000_000, 1_700_000_000_000_000);
    assert_eq!(resumed(Times { store, wall }, wall + 5), store + 5);
    assert_eq!(resumed(Times { store, wall }, wall - 5), store);
    // A number that no clock shows cannot wrap around.
    let last = (1 << 53) - 1;
    assert_eq!(resumed(Times { store: last, wall: 0 }, last), last);
}

#[test]
fn when_nothing_is_left_the_time_is_that_of_the_wall_clock() {
    let clock = ManualClock::at(NOW);
    let mut kept = StoreOnDisk::new(100, &clock);
    let limit = Limit::per_minute(1);
    assert!(admits(&kept.store, limit, 1));
    kept.write();
    clock.set(NOW - HOUR);
    let builder = Memory::builder().capacity(100).clock(&clock);
    let mut kept = StoreOnDisk::start(builder, Some(kept.file()));
    assert_eq!(kept.store.0.moment().now, NOW.as_micros() as u64);
    kept.write();
    clock.advance(2 * MINUTE);
    let kept = kept.restarted(100, &clock);
    assert_eq!(kept.store.0.moment().now, clock.now());
    assert!(admits(&kept.store, limit, 1));
}

/// The row that has recovered says that it was written in the future. It neither refuses, nor gives that time to the other
/// limits of a request.
#[test]
fn a_clock_that_is_behind_revives_nothing_that_has_recovered() {
    for recovered in limits() {
        let clock = ManualClock::at(NOW);
        let mut kept = StoreOnDisk::new(100, &clock);
        while admits(&kept.store, recovered, 1) {}
        kept.write();
        clock.set(NOW - 48 * HOUR);
        let builder = || Memory::builder().capacity(100).clock(&clock);
        let mut kept = StoreOnDisk::start(builder(), Some(kept.file()));
        kept.write();
        clock.advance(3 * HOUR);
        let kept = kept.restarted(100, &clock);
        assert_eq!(kept.store.len(), 0, "{recovered}");
        let other = Limit::per(7, MINUTE);
        let mut both = charge(recovered, 1, 1);
        both.add(other, KeyBuf::of(2_u64), 1).expect("room");
        assert!(kept.store.take(&both).now().expect("room").is_admitted(), "{recovered}");
        clock.advance(HOUR);
        for _ in 0..7 {
            assert!(admits(&kept.store, other, 2), "{recovered}");
        }
    }
}

#[test]
fn a_clock_that_is_set_back_while_the_store_runs_does_not_prolong_what_is_in_the_file() {
    let clock = ManualClock::at(NOW);
    let mut kept = StoreOnDisk::new(100, &clock);
    let limit = Limit::per_minute(1);
    assert!(admits(&kept.store, limit, 1));
    kept.write();
    clock.set(NOW - HOUR);
    let kept = kept.restarted(100, &clock);
    assert!(!admits(&kept.store, limit, 1));
    clock.advance(MINUTE);
    assert!(admits(&kept.store, limit, 1));
}

/// The time in the file goes on, and the fleet has the clock's.
#[test]
fn a_part_ends_by_the_clock_whatever_the_time_in_the_file_is() {
    let hours = 8 * HOUR.as_micros() as u64;
    for ahead in [hours, 0_u64.wrapping_sub(hours)] {
        let clock = ManualClock::at(NOW);
        let mut kept = StoreOnDisk::new(100, &clock);
        Arc::get_mut(&mut kept.store.0).expect("one store").clock.ahead = ahead;
        let fleet = Fleet::by_clock(MINUTE, &clock);
        fleet.open();
        fleet.see_part_for(Some(Part::one_of(2)), MINUTE);
        let share = Share::new(kept.store, &fleet);
        let charge = charge(Limit::per_second(1_000), 2, 1);
        assert!(share.take(&charge).now().expect("room").is_admitted());
        clock.advance(MINUTE);
        assert!(!share.take(&charge).now().expect("room").is_admitted());
    }
}
