use sluicegate_throttle::adaptive::{Algorithm, Sample};

use super::*;

const MS: u64 = 1_000;

fn sample(time: u64, in_flight: usize) -> Sample {
    Sample { now: 0, time, answered: Some(time), in_flight, is_overload: false }
}

fn overload() -> Sample {
    Sample { is_overload: true, ..sample(0, 0) }
}

fn limits(mut algorithm: impl Algorithm, samples: &[Sample]) -> Vec<usize> {
    let limit = |sample: &Sample| {
        algorithm.update(*sample);
        algorithm.limit()
    };
    samples.iter().map(limit).collect()
}

/// Inputs and answers of the tests of concurrency-limits.
#[test]
fn vegas_answers_as_published() {
    let vegas = || Vegas::new(10, 20).bounds(3, 6);
    assert_eq!(limits(vegas(), &[sample(10 * MS, 10), sample(10 * MS, 11)]), [10, 16]);
    assert_eq!(limits(vegas(), &[sample(10 * MS, 10), sample(50 * MS, 11)]), [10, 9]);
    assert_eq!(limits(vegas(), &[sample(10 * MS, 10), sample(14 * MS, 14)]), [10, 10]);
    let large = Vegas::new(10_000, 20_000);
    assert_eq!(
        limits(large, &[sample(10_000 * MS, 5_000), sample(10_000 * MS, 6_000)]),
        [10_000, 10_024]
    );
}

#[test]
fn aimd_answers_as_published() {
    assert_eq!(limits(Aimd::new(20, 20, 200), &[sample(MS, 10)]), [21]);
    assert_eq!(limits(Aimd::new(30, 20, 200), &[overload()]), [27]);
    assert_eq!(limits(Aimd::new(21, 1, 21), &[sample(MS, 10)]), [21]);
}

/// Worked out by hand from the published formula.
#[test]
fn gradient2_follows_the_published_formula() {
    // While times stay the same: a fifth of the four that may wait, each time.
    assert_eq!(limits(Gradient2::default(), &[sample(10 * MS, 20); 5]), [20, 21, 22, 23, 24]);
    // A time of three times the mean of ten: 1.5 · 12 / 30 = 0.6, so 100 · 0.6 + 4, a fifth of the way there.
    let mut slow = vec![sample(10 * MS, 0); 9];
    slow.push(sample(30 * MS, 100));
    assert_eq!(limits(Gradient2::new(100, 20, 200), &slow).last(), Some(&92));
    // Half of it in flight is too little to learn from.
    assert_eq!(limits(Gradient2::new(100, 20, 200), &[sample(10 * MS, 49)]), [100]);
}

#[test]
fn no_published_limit_grows_while_less_than_half_of_it_is_in_use() {
    let idle = [sample(10 * MS, 4); 100];
    assert!(limits(Vegas::new(20, 1_000), &idle).iter().all(|&limit| limit == 20));
    assert!(limits(Gradient2::default(), &idle).iter().all(|&limit| limit == 20));
    assert!(limits(Aimd::default(), &idle).iter().all(|&limit| limit == 20));
}
