use super::*;

const MS: u64 = 1_000;

fn sample(time: u64, in_flight: usize) -> Sample {
    Sample { now: 0, time, in_flight, is_overload: false }
}

fn limits(mut algorithm: impl Algorithm, samples: &[Sample]) -> Vec<usize> {
    let limit = |sample: &Sample| {
        algorithm.update(*sample);
        algorithm.limit()
    };
    samples.iter().map(limit).collect()
}

#[test]
fn no_limit_grows_while_less_than_half_of_it_is_in_use() {
    let idle = [sample(10 * MS, 4); 100];
    assert!(limits(Bandwidth::default(), &idle).iter().all(|&limit| limit == 20));
}

#[test]
fn overload_lowers_the_default_limit() {
    let mut bandwidth = Bandwidth::new(100, 2, 1_000);
    for now in 0..4_000 {
        let sample = Sample { now: now * MS, time: 1, in_flight: 10, is_overload: true };
        bandwidth.update(sample);
    }
    assert!(bandwidth.limit() < 60, "{}", bandwidth.limit());
}
