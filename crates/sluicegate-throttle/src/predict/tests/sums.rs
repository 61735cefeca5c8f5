//! The sum of predictions follows the sum of costs: queues and rates add predictions up.

use super::*;

/// What the `number`-th request costs, of this flow.
type Costs = fn(&mut Noise, number: u64, flow: u64) -> u64;

/// Of the rarest kind of request there are sixty, so the first of them is little of the sum.
const REQUESTS: u64 = 60_000;

const KEY: u64 = 0x9e37_79b9_7f4a_7c15;

/// As a hash under a seed would.
fn hashed(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// 95 % cost 0.2 ms, the others 20 ms.
fn one_of_twenty_is_dear(noise: &mut Noise) -> u64 {
    if noise.next() < 0.95 { 200 } else { 20_000 }
}

fn one_of(requests: u64, noise: &mut Noise, cheap: u64, dear: u64) -> u64 {
    if noise.next() * (requests as f64) < 1.0 { dear } else { cheap }
}

const COSTS: [(&str, Costs); 18] = [
    ("all alike", |_, _, _| 1_000),
    ("95 % 0.2 ms, 5 % 20 ms", |noise, _, _| one_of_twenty_is_dear(noise)),
    ("99 % 0.1 ms, 1 % 50 ms", |noise, _, _| if noise.next() < 0.99 { 100 } else { 50_000 }),
    ("99.9 % 0.1 ms, 0.1 % 100 ms", |noise, _, _| one_of(1_000, noise, 100, 100_000)),
    ("5 % dear, then half", |noise, number, _| {
        one_of(if number / 2_000 % 2 == 0 { 20 } else { 2 }, noise, 200, 20_000)
    }),
    ("1 % dear, then 20 %", |noise, number, _| {
        one_of(if number / 1_000 % 2 == 0 { 100 } else { 5 }, noise, 200, 20_000)
    }),
    ("none dear, then half", |noise, number, _| match number / 1_000 % 2 {
        0 => 200,
        _ => one_of(2, noise, 200, 20_000),
    }),
    ("half 1 ms, half 20 ms", |noise, _, _| if noise.next() < 0.5 { 1_000 } else { 20_000 }),
    ("5 % 0.2 ms, 95 % 20 ms", |noise, _, _| if noise.next() < 0.05 { 200 } else { 20_000 }),
    ("exponential", |noise, _, _| (-(1.0 - noise.next()).ln() * 1_000.0) as u64 + 1),
    ("every twentieth", |_, number, _| if number % 20 == 0 { 20_000 } else { 200 }),
    ("bursts of dear ones", |_, number, _| if number % 1_000 < 50 { 20_000 } else { 200 }),
    ("a slow rise", |_, number, _| 1_000 + number % 5_000),
    (
        "ten times as much, and back",
        |_, number, _| if number / 2_000 % 2 == 0 { 1_000 } else { 10_000 },
    ),
    ("mixed, ten times as much, and back", |noise, number, _| {
        one_of_twenty_is_dear(noise) * if number / 2_000 % 2 == 0 { 1 } else { 10 }
    }),
    ("every second flow is dear", |_, _, flow| if flow % 2 == 1 { 20_000 } else { 1_000 }),
    ("one flow is dear", |_, _, flow| if flow == 0 { 20_000 } else { 1_000 }),
    ("one flow is dear, the others mixed", |noise, _, flow| {
        if flow == 0 { 20_000 } else { one_of_twenty_is_dear(noise) }
    }),
];

/// The sum of predictions, divided by the sum of costs. Each request ends as `delay` others have come.
fn ratio(costs: Costs, delay: usize, flow: impl Fn(&mut Noise) -> u64) -> f64 {
    let mut predictor = Predictor::new(1_024, 1_000);
    let (mut choice, mut noise) = (Noise(7), Noise(11));
    let (mut predicted, mut actual) = (0, 0);
    let mut running = std::collections::VecDeque::new();
    for number in 0..REQUESTS {
        let flow = flow(&mut choice);
        let cost = costs(&mut noise, number, flow);
        let flow = hashed(flow + 1_000);
        predicted += predictor.predict_for(KEY, flow, CLASS).mean;
        actual += cost;
        running.push_back((flow, cost));
        if running.len() > delay {
            let (flow, cost) = running.pop_front().expect("there are some");
            predictor.learn_for(KEY, flow, CLASS, cost);
        }
    }
    predicted as f64 / actual as f64
}

fn assert_all_follow(delay: usize, flows: impl Fn(&mut Noise) -> u64 + Copy) {
    for (name, costs) in COSTS {
        let ratio = ratio(costs, delay, flows);
        assert!((0.9..=1.1).contains(&ratio), "{name}: {ratio:.3}");
    }
}

#[test]
fn of_one_flow() {
    assert_all_follow(0, |_| 0);
}

#[test]
fn of_a_few_flows() {
    assert_all_follow(0, |choice| (choice.next() * 4.0) as u64);
}

#[test]
fn of_a_thousand_flows() {
    assert_all_follow(0, |choice| (choice.next() * 1_000.0) as u64);
}

#[test]
fn of_more_flows_than_are_remembered() {
    assert_all_follow(0, |choice| (choice.next() * 10_000.0) as u64);
}

#[test]
fn of_flows_that_send_much_and_little() {
    assert_all_follow(0, |choice| 10_000_f64.powf(choice.next()) as u64 - 1);
}

#[test]
fn of_requests_that_wait_before_they_run() {
    for flows in [1.0, 1_000.0] {
        assert_all_follow(100, |choice| (choice.next() * flows) as u64);
    }
}

#[test]
fn of_requests_without_a_flow() {
    for (name, costs) in COSTS {
        let mut predictor = Predictor::new(64, 1_000);
        let (mut noise, mut predicted, mut actual) = (Noise(11), 0, 0);
        for number in 0..REQUESTS {
            let cost = costs(&mut noise, number, number % 7);
            predicted += predictor.predict(KEY, CLASS).mean;
            actual += cost;
            predictor.learn(KEY, CLASS, cost);
        }
        let ratio = predicted as f64 / actual as f64;
        assert!((0.9..=1.1).contains(&ratio), "{name}: {ratio:.3}");
    }
}

/// Where flows do not differ, what the last requests of one have cost is chance.
#[test]
fn flows_that_are_alike_are_predicted_alike_however_much_costs_differ() {
    let mut predictor = Predictor::new(1_024, 1_000);
    let mut noise = Noise(3);
    let mut predictions = Vec::new();
    for number in 0..40_000 {
        let flow = hashed((noise.next() * 1_000.0) as u64);
        if number >= 10_000 {
            predictions.push(predictor.predict_for(KEY, flow, CLASS).mean);
        }
        predictor.learn_for(KEY, flow, CLASS, one_of_twenty_is_dear(&mut noise));
    }
    predictions.sort_unstable();
    let at = |percent| predictions[predictions.len() * percent / 100];
    // The true mean is 1,190.
    assert!(at(1) >= 700, "{}", at(1));
    assert!((1_050..1_330).contains(&at(50)), "{}", at(50));
    assert!(at(99) <= 2_000, "{}", at(99));
}

#[test]
fn a_dear_flow_is_told_from_flows_whose_costs_are_mixed() {
    let mut predictor = Predictor::new(1_024, 1_000);
    let mut noise = Noise(5);
    let (dear, sent) = (hashed(1 << 40), 50);
    for number in 0..20_000 {
        let flow = hashed((noise.next() * 500.0) as u64);
        predictor.learn_for(KEY, flow, CLASS, one_of_twenty_is_dear(&mut noise));
        if number % sent == 0 {
            predictor.learn_for(KEY, dear, CLASS, 20_000);
        }
    }
    let mean = |flow| predictor.predict_for(KEY, flow, CLASS).mean;
    assert!(mean(dear) >= 10_000, "{}", mean(dear));
    let honest = (0..500).map(|flow| mean(hashed(flow))).sum::<u64>() / 500;
    assert!((900..1_900).contains(&honest), "{honest}");
}
