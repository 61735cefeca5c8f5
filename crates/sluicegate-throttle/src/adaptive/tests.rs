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

/// The server does 200 requests at once in 10 ms each, and more take as much longer.
#[test]
fn a_few_overloads_do_not_lower_the_limit_and_many_do() {
    let limit_after = |samples: u64, one_in: u64| {
        let mut bandwidth = Bandwidth::new(200, 2, 1_000);
        let mut now = 0;
        for number in 0..samples {
            let limit = bandwidth.limit();
            let time = 10 * MS * limit.max(200) as u64 / 200;
            now += time / limit as u64;
            let is_overload = number % one_in == 0;
            bandwidth.update(Sample { now, time, in_flight: limit, is_overload });
        }
        bandwidth.limit()
    };
    for one_in in [1_000, 100, 10] {
        let limit = limit_after(200_000, one_in);
        assert!((150..300).contains(&limit), "{limit} with one in {one_in}");
    }
    for one_in in [1, 2, 4] {
        let limit = limit_after(20_000, one_in);
        assert!(limit < 100, "{limit} with one in {one_in}");
    }
}
