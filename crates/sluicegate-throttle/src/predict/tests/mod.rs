mod sums;

use super::*;

const CLASS: Class = Class::SHEDDABLE;

/// Numbers that look random, from 0 to 1.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn assert_within_tenth(predictor: &Predictor, mean: u64) {
    let found = predictor.predict(1, CLASS).mean;
    assert!(found.abs_diff(mean) * 10 <= mean, "{found} for {mean}");
}

#[test]
fn sixty_four_requests_after_a_step_change_the_prediction_is_within_a_tenth() {
    for (before, after) in
        [(1_000, 20_000), (20_000, 1_000), (1_000, 1_500), (100_000, 150), (150, 9_000), (9, 8)]
    {
        let mut predictor = Predictor::new(64, 1);
        (0..1_000).for_each(|_| predictor.learn(1, CLASS, before));
        assert_within_tenth(&predictor, before);
        (0..64).for_each(|_| predictor.learn(1, CLASS, after));
        assert_within_tenth(&predictor, after);
    }
}

#[test]
fn noise_is_smoothed() {
    let mut noise = Noise(7);
    let mut predictor = Predictor::new(64, 1);
    let mut sample = |mean: f64| (mean * (0.75 + noise.next() / 2.0)) as u64;
    (0..1_000).for_each(|_| predictor.learn(1, CLASS, sample(20_000.0)));
    (0..64).for_each(|_| predictor.learn(1, CLASS, sample(1_000.0)));
    assert_within_tenth(&predictor, 1_000);
}

#[test]
fn the_high_quantile_is_above_nineteen_of_twenty_requests() {
    let mut noise = Noise(3);
    let mut predictor = Predictor::new(64, 1);
    let mut sample = || 10_000 + (noise.next() * 10_000.0) as u64;
    (0..2_000).for_each(|_| predictor.learn(1, CLASS, sample()));
    let mut above = 0;
    for _ in 0..10_000 {
        let cost = sample();
        above += u64::from(cost > predictor.predict(1, CLASS).high);
        predictor.learn(1, CLASS, cost);
    }
    assert!((300..800).contains(&above), "{above} of 10,000");
}

#[test]
fn one_outlier_does_not_lock_the_queue() {
    let mut predictor = Predictor::new(64, 1);
    (0..100).for_each(|_| predictor.learn(1, CLASS, 100));
    predictor.learn(1, CLASS, u64::MAX);
    // A sixteenth of 64 times the mean.
    assert_eq!(predictor.predict(1, CLASS).mean, 494);
    (0..64).for_each(|_| predictor.learn(1, CLASS, 100));
    assert_within_tenth(&predictor, 100);
}

#[test]
fn an_unknown_key_is_taken_for_the_mean_of_its_class() {
    let mut predictor = Predictor::new(64, 5);
    assert_eq!(predictor.predict(9, CLASS).mean, 5);
    (0..50).for_each(|_| predictor.learn(1, CLASS, 300));
    (0..50).for_each(|_| predictor.learn(2, Class::CRITICAL, 40));
    assert_eq!(predictor.predict(9, CLASS).mean, 300);
    assert_eq!(predictor.predict(9, Class::CRITICAL).mean, 40);
    assert!(predictor.predict(9, Class::SHEDDABLE_PLUS).mean > 5);
}

#[test]
fn a_flood_of_keys_leaves_those_that_are_in_use() {
    let mut predictor = Predictor::new(1_024, 1);
    let key = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for number in 0..100_000 {
        for route in 0..20 {
            predictor.learn(key(route), CLASS, 1_000 * (route + 1));
        }
        predictor.learn(key(1_000 + number), CLASS, 77);
    }
    for route in 0..20 {
        assert_eq!(predictor.predict(key(route), CLASS).mean, 1_000 * (route + 1));
    }
}

#[test]
fn a_flow_whose_requests_cost_more_than_its_route_is_expected_to_go_on_so() {
    let (dear, cheap) = (1, 2);
    let mut predictor = Predictor::new(64, 1);
    for _ in 0..200 {
        predictor.learn_for(1, dear, CLASS, 20_000);
        predictor.learn_for(1, cheap, CLASS, 1_000);
    }
    let mean = |flow| predictor.predict_for(1, flow, CLASS).mean;
    assert!((18_000..22_000).contains(&mean(dear)), "{}", mean(dear));
    assert!((900..1_100).contains(&mean(cheap)), "{}", mean(cheap));
    assert_eq!(mean(3), predictor.predict(1, CLASS).mean, "nothing is known of this one");
}

#[test]
fn a_flow_does_not_change_what_is_expected_of_its_routes() {
    for (before, after) in [(1_000, 20_000), (20_000, 1_000), (100, 150)] {
        let mut predictor = Predictor::new(64, 1);
        (0..1_000).for_each(|_| predictor.learn_for(1, 7, CLASS, before));
        assert_eq!(predictor.predict_for(1, 7, CLASS), predictor.predict(1, CLASS));
        (0..64).for_each(|_| predictor.learn_for(1, 7, CLASS, after));
        let found = predictor.predict_for(1, 7, CLASS).mean;
        assert!(found.abs_diff(after) * 10 <= after, "{found} for {after}");
    }
}

#[test]
fn keys_that_come_once_leave_those_that_are_used_seldom() {
    let mut predictor = Predictor::new(1_024, 1);
    let key = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..2).for_each(|_| predictor.learn(key(1), CLASS, 50_000));
    for number in 2..100_000 {
        predictor.learn(key(number), CLASS, 77);
    }
    assert_eq!(predictor.predict(key(1), CLASS).mean, 50_000);
}

#[test]
fn costs_without_a_bound_are_no_overflow_and_are_forgotten() {
    let mut predictor = Predictor::new(64, u64::MAX);
    for cost in [u64::MAX, 0, 1, u64::MAX / 3, 0] {
        for flow in 0..3 {
            (0..300).for_each(|_| predictor.learn_for(1, flow, CLASS, cost));
            let found = predictor.predict_for(1, flow, CLASS);
            assert!(found.mean >= 1 && found.high >= found.mean, "{found:?}");
        }
    }
    (0..64).for_each(|_| predictor.learn_for(1, 0, CLASS, 1_000));
    assert_within_tenth(&predictor, 1_000);
    let cheap = predictor.predict_for(1, 0, CLASS).mean;
    assert!(cheap <= 10_000, "{cheap}");
}
