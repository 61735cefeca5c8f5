//! One bucket alone.

use std::sync::Arc;

use super::*;

/// Adds one to both words of a row, if no other thread writes in between.
fn add(bucket: &FourRows<TwoWords>) -> Option<()> {
    let version = bucket.version()?;
    let [first, second] = bucket.words(0);
    let bucket = bucket.lock_if_unchanged(version)?;
    bucket.put(0, [first + 1, second + 1], 9);
    Some(())
}

/// Reads both words, if no other thread writes in between.
fn read(bucket: &FourRows<TwoWords>) -> Option<[u64; 2]> {
    let version = bucket.version()?;
    let words = bucket.words(0);
    bucket.is_unchanged(version).then_some(words)
}

fn bucket() -> Arc<FourRows<TwoWords>> {
    Arc::default()
}

#[test]
fn no_write_of_three_threads_is_lost() {
    model(|order| {
        let bucket = bucket();
        let adds = || {
            let bucket = Arc::clone(&bucket);
            move || add(&bucket).is_some()
        };
        let (second, third) = (adds(), adds());
        let (first, (second, third)) = order.both(adds(), move || order.both(second, third));
        let added = [first, second, third].into_iter().filter(|added| *added).count() as u64;
        assert!(added > 0, "one thread comes first");
        assert_eq!(bucket.words(0), [added, added]);
    });
}

#[test]
fn a_reader_beside_two_writers_never_sees_half_a_write() {
    model(|order| {
        let bucket = bucket();
        let adds = || {
            let bucket = Arc::clone(&bucket);
            move || add(&bucket).is_some()
        };
        let also = Arc::clone(&bucket);
        let reads = move || {
            if let Some([first, second]) = read(&also) {
                assert_eq!(first, second);
            }
        };
        let (one, other) = (adds(), adds());
        order.both(one, move || order.both(other, reads));
    });
}

/// A thread that waits for the lock gets it, and sees everything that was written under it.
#[test]
fn a_thread_that_waited_for_the_lock_sees_what_was_written() {
    model(|order| {
        let bucket = bucket();
        let adds = || {
            let bucket = Arc::clone(&bucket);
            move || {
                let bucket = bucket.lock();
                let [first, second] = bucket.words(0);
                bucket.put(0, [first + 1, second + 1], 9);
            }
        };
        order.both(adds(), adds());
        assert_eq!(read(&bucket), Some([2, 2]));
    });
}
