use super::*;

const MS: u64 = 1_000;

#[test]
fn no_limit_grows_while_less_than_half_of_it_is_in_use() {
    let mut bandwidth = Bandwidth::default();
    for _ in 0..100 {
        bandwidth.update(Sample { now: 0, time: 10 * MS, in_flight: 4, is_overload: false });
        assert_eq!(bandwidth.limit(), 20);
    }
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
