//! Clocks that step back.

use super::*;

/// The clock may even step back to before the table was made.
#[test]
fn a_row_written_before_the_table_was_made_is_not_forgotten() {
    for limit in [Limit::per_hour(3), Limit::sliding_log(3, MINUTE), Limit::concurrent(3)] {
        let (store, clock) = memory(10);
        clock.set(Duration::from_secs(1_000));
        assert!((0..3).all(|_| admits(&store, limit, 0)));
        (100..1_000).for_each(|number| drop(take(&store, limit, number)));
        assert!(!admits(&store, limit, 0), "{limit}");
    }
}

#[test]
fn no_row_is_forgotten_by_a_clock_that_steps_back() {
    let (store, clock) = memory(100);
    let limit = Limit::per_hour(3);
    let now = Duration::from_micros(clock.now());
    assert!((0..3).all(|_| admits(&store, limit, 0)));
    for minutes in 1..60 {
        clock.set(now - MINUTE * minutes);
        assert!(!admits(&store, limit, 0));
        let flood = u64::from(minutes) * 1_000;
        (flood..flood + 300).for_each(|number| drop(take(&store, limit, number)));
        assert!(!admits(&store, limit, 0));
    }
}

/// By the clock at the time of writing, it has recovered.
#[test]
fn a_clock_that_stepped_back_bans_nobody_for_good() {
    let (store, clock) = memory(100);
    let limit = Limit::per_minute(2);
    assert!((0..2).all(|_| admits(&store, limit, 0)));
    clock.set(Duration::from_secs(1_000));
    assert!(!admits(&store, limit, 0));
    clock.advance(SECOND * 30);
    assert!(admits(&store, limit, 0));
}
