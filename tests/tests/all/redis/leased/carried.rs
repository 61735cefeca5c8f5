//! Limits whose numbers change: those of policy files.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;

fn plan(text: &str) -> Limit {
    format!("{text} named plan carried").parse().expect("a limit")
}

/// The limit before a file was read again, and after that.
fn numbers() -> [[Limit; 2]; 2] {
    [
        [plan("fixed 100/day from-first"), plan("fixed 30/day from-first")],
        [plan("100/day"), plan("30/day")],
    ]
}

#[test]
fn limits_of_a_file_are_leased() {
    for [limit, _] in numbers() {
        let (store, redis) = pair(shared(), 50..=50);
        assert_eq!(admitted(&store, &charge(limit), 1, 10), 10);
        assert_eq!(store.redis().counts().decisions, 1, "{limit}");
        assert_eq!(left(&redis, limit, "alice"), 50);
        flushed(&store);
        assert_eq!(left(&redis, limit, "alice"), 90, "{limit}");
        assert_eq!(admitted(&store, &charge(limit), 8, 100), 90, "{limit}");
    }
}

/// What is in hand goes back, and what was spent counts for the new numbers.
#[test]
fn a_lease_ends_when_the_numbers_change() {
    for [before, after] in numbers() {
        let (store, redis) = pair(shared(), 50..=50);
        assert_eq!(admitted(&store, &charge(before), 1, 20), 20);
        // One caller changes over. The tokens of a lease under way, or of another caller's, would drain first.
        assert_eq!(store.redis().counts().decisions, 1, "no lease is under way");
        let by_after =
            admitted(&store, &charge(after), 1, 1) + admitted(&store, &charge(after), 4, 50);
        assert_eq!(by_after, 10, "{after}");
        assert_eq!(admitted(&store, &charge(before), 4, 50), 70, "{before}");
        assert_eq!(left(&redis, before, "alice"), 0);
        let counts = store.counts();
        assert_eq!((counts.spent, counts.passed_on), (100, 0), "{counts:?}");
    }
}

/// Whichever thread comes first with the new numbers, the tokens of the old ones are back before any of them asks.
#[test]
fn threads_that_change_over_at_once_get_all_that_the_old_numbers_left() {
    const THREADS: usize = 10;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let _over = Over(&is_over);
        for [before, after] in numbers().into_iter().cycle().take(200) {
            let (store, _) = pair(shared(), 50..=50);
            assert_eq!(admitted(&store, &charge(before), 1, 20), 20);
            assert_eq!(store.redis().counts().decisions, 1, "no lease is under way");
            let barrier = Barrier::new(THREADS);
            let by_after = thread::scope(|scope| {
                let change_over = || {
                    barrier.wait();
                    answer(store.take(&charge(after))).expect("the store answers").is_admitted()
                };
                let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(change_over)).collect();
                let admitted = threads.into_iter().map(|thread| thread.join().expect("no panic"));
                admitted.filter(|admitted| *admitted).count()
            });
            assert_eq!(by_after, 10, "{after}: {:?}", store.counts());
        }
    });
}

/// Ends the busy loops, also where the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One process has read the new file, and the other has not. Neither admits more than its own numbers allow.
#[test]
fn processes_with_different_numbers_never_exceed_their_own() {
    for [generous, tight] in numbers() {
        let prefix = own_prefix();
        let store = || Leased::new(open(patient().url(&shared().url()).prefix(&prefix)), 1..=20);
        let (old, new) = (store(), store());
        let mut counts = [0, 0];
        for _ in 0..60 {
            counts[0] += admitted(&old, &charge(generous), 1, 2);
            counts[1] += admitted(&new, &charge(tight), 1, 2);
        }
        let [by_generous, by_tight] = counts;
        assert!(by_tight <= 30, "{tight}: {counts:?}");
        assert!(by_generous <= 100, "{generous}: {counts:?}");
        assert!(by_generous + by_tight <= 100, "{counts:?}");
        assert!(by_generous + by_tight >= 60, "hardly anything is lost: {counts:?}");
    }
}

/// What another process gives back never makes room below tokens that a process still holds. That process may have the
/// same numbers or others.
#[test]
fn what_is_given_back_below_a_lease_drains() {
    let [_, [limit, tight]] = numbers();
    for other in [limit, tight] {
        let (store, redis) = pair(shared(), 50..=50);
        let other = Charge::of(other, key("alice"), 30);
        let outcome = answer(redis.take(&other)).expect("the store answers");
        assert_eq!(admitted(&store, &charge(limit), 1, 1), 1);
        let debit = other.debits().next().expect("one limit");
        let receipt = outcome.receipts().next().expect("one charge");
        redis.settle(debit, &receipt, 0);
        runtime().block_on(redis.flush());
        assert_eq!(left(&redis, limit, "alice"), 20, "{}", debit.limit);
        // The last lease can be given back, unless tokens may be leased with other numbers.
        flushed(&store);
        let back = if debit.limit == limit { 49 } else { 0 };
        assert_eq!(left(&redis, limit, "alice"), 20 + back, "{}", debit.limit);
    }
}
