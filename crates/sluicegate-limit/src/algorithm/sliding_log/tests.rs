use std::collections::VecDeque;

use super::*;

const EXACTLY: SlidingLog = SlidingLog { count: 3, period: 100, resolution: 1 };
const MERGED: SlidingLog = SlidingLog { count: 30, period: 100, resolution: 10 };

fn spent(sieve: SlidingLog, stamps: &[u64]) -> Log {
    let mut log = Log::default();
    for stamp in stamps {
        sieve.spend(&mut log, *stamp, 1, 0);
    }
    log
}

#[test]
fn at_exactly_one_period_a_place_is_free_again() {
    let log = spent(EXACTLY, &[1_000, 1_030, 1_060]);
    assert_eq!(EXACTLY.remaining(Some(&log), 1_099), 0);
    assert_eq!(EXACTLY.remaining(Some(&log), 1_100), 1);
    assert_eq!(EXACTLY.earliest(Some(&log), 1_060, 1, 0), Earliest::At(40));
    assert_eq!(EXACTLY.earliest(Some(&log), 1_060, 3, 0), Earliest::At(100));
    assert_eq!(EXACTLY.earliest(Some(&log), 1_060, 4, 0), Earliest::Never);
}

#[test]
fn stamps_are_rounded_up_to_the_resolution_and_merged() {
    let log = spent(MERGED, &[1_000, 1_001, 1_009, 1_010, 1_011]);
    let stamps: Vec<_> = log.entries.iter().map(|entry| (entry.stamp, entry.cost)).collect();
    assert_eq!(stamps, [(1_000, 1), (1_010, 3), (1_020, 1)]);
    assert_eq!(MERGED.remaining(Some(&log), 1_109), 26);
    assert_eq!(MERGED.remaining(Some(&log), 1_110), 29);
}

#[test]
fn the_log_is_no_longer_than_its_resolution_allows() {
    let mut log = Log::default();
    for now in 1_000..3_000 {
        if MERGED.earliest(Some(&log), now, 1, 0) == Earliest::At(0) {
            MERGED.spend(&mut log, now, 1, 0);
        }
        assert!(log.entries.len() as u64 <= MERGED.entries());
    }
}

#[test]
fn what_costs_nothing_leaves_no_entry() {
    let mut log = Log::default();
    for now in 0..1_000 {
        EXACTLY.spend(&mut log, now, 0, 0);
    }
    assert_eq!(log.entries.len(), 0);
}

#[test]
fn of_refused_attempts_the_newest_are_kept_and_no_more_than_there_is_room_for() {
    let mut log = Log::default();
    log.reserve_exact(EXACTLY.entries() as usize);
    let capacity = log.capacity();
    for now in 1_000..1_500 {
        EXACTLY.record(&mut log, now, 1);
    }
    assert_eq!(log.capacity(), capacity);
    assert_eq!(log.entries.front().map(|entry| entry.stamp), Some(1_497));
    assert_eq!(EXACTLY.earliest(Some(&log), 1_500, 1, 0), Earliest::At(97));
}

#[test]
fn a_refused_attempt_that_costs_nothing_makes_no_room() {
    let mut log = spent(EXACTLY, &[1_000, 1_001]);
    EXACTLY.spend(&mut log, 1_001, 2, 99);
    assert_eq!(EXACTLY.earliest(Some(&log), 1_002, 0, 0), Earliest::At(98));
    EXACTLY.record(&mut log, 1_002, 0);
    assert_eq!(EXACTLY.earliest(Some(&log), 1_002, 0, 0), Earliest::At(98));
}

#[test]
fn a_refused_attempt_drives_out_no_place_that_is_booked() {
    let mut log = spent(EXACTLY, &[1_000, 1_001]);
    EXACTLY.spend(&mut log, 1_001, 2, 99);
    EXACTLY.record(&mut log, 1_002, 3);
    // Free when the attempt, and then the place booked for 1,100, is a period ago.
    assert_eq!(EXACTLY.earliest(Some(&log), 1_002, 1, 0), Earliest::At(100));
    assert_eq!(EXACTLY.earliest(Some(&log), 1_002, 3, 0), Earliest::At(198));
}

/// However often it is made coarser: each stamp is put off, and by no more than a step.
#[test]
fn a_coarser_log_holds_everything_at_least_as_long() {
    const LARGE: SlidingLog = SlidingLog { count: 10_000, period: 1_000_000, resolution: 1 };
    for most in [4, 5, 8, 33, 256] {
        let mut log = Log::default();
        let mut stamps = VecDeque::new();
        for turn in 0..20_000_u64 {
            let now = 5_000_000 + turn * 97 + (turn * turn) % 91;
            LARGE.tidy(&mut log, now);
            if log.entries.len() == most {
                log.coarsen(most);
                assert!(log.entries.len() <= most / 2 + 1);
            }
            LARGE.spend(&mut log, now, 1, 0);
            stamps.push_back(now);
            while stamps.front().is_some_and(|stamp| stamp + LARGE.period <= now) {
                stamps.pop_front();
            }
            let late = 1_000_000 / (most as u64 / 4) * 2;
            let known = stamps.len() as u64;
            assert!(log.total >= known, "{} of {known} at {now}", log.total);
            assert!(log.total <= known + late / 80, "{} of {known} at {now}", log.total);
        }
        assert_eq!(log.coarse(4).total, log.total);
        assert!(log.coarse(4).entries.capacity() <= 4);
    }
}

#[test]
fn a_short_period_bounds_a_log_of_any_count() {
    const SHORT: SlidingLog = SlidingLog { count: 1_000_003, period: 17, resolution: 1 };
    let mut log = Log::default();
    for now in 0..1_000 {
        assert_eq!(SHORT.earliest(Some(&log), now, 9, 0), Earliest::At(0));
        SHORT.spend(&mut log, now, 9, 0);
        assert!(log.entries.len() as u64 <= SHORT.entries());
    }
}

#[test]
fn a_log_never_holds_more_entries_than_its_bound() {
    const HUGE: SlidingLog = SlidingLog { count: 3_000_000, period: 86_400_000_000, resolution: 1 };
    let mut log = Log::default();
    for now in 0..300_000 {
        assert_eq!(HUGE.earliest(Some(&log), now, 1, 0), Earliest::At(0));
        HUGE.spend(&mut log, now, 1, 0);
    }
    assert!(log.entries.len() <= MOST_ENTRIES);
    assert_eq!(log.total, 300_000);
    HUGE.spend(&mut log, 300_000, 2_700_000, 0);
    assert!(matches!(HUGE.earliest(Some(&log), 300_001, 1, 0), Earliest::At(1..)));
}

#[test]
fn stamps_merge_however_the_clock_steps_back() {
    let mut log = Log::default();
    for turn in 0..1_000 {
        let now = 50_000 - 7 * turn;
        MERGED.tidy(&mut log, now);
        if MERGED.earliest(Some(&log), now, 1, 0) == Earliest::At(0) {
            MERGED.spend(&mut log, now, 1, 0);
        }
        assert!(log.entries.len() as u64 <= MERGED.entries());
        let newest = log.entries.back().map_or(0, |entry| entry.stamp);
        assert!(newest < now + 20, "{newest} at {now}");
    }
}

#[test]
fn stamps_follow_a_clock_that_steps_back() {
    let mut log = spent(EXACTLY, &[10_000, 10_050, 10_060]);
    assert_eq!(EXACTLY.earliest(Some(&log), 5_060, 1, 0), Earliest::At(40));
    EXACTLY.tidy(&mut log, 5_060);
    assert_eq!(EXACTLY.earliest(Some(&log), 5_060, 1, 0), Earliest::At(40));
    assert_eq!(EXACTLY.earliest(Some(&log), 5_099, 1, 0), Earliest::At(1));
}
