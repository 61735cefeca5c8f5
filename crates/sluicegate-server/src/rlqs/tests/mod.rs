//! The division of a capacity among Envoys, without a network.

mod attacks;
mod envoy;
mod masters;
mod world;

use world::World;

const CAPACITY: u64 = 1_000;
const BURST: u64 = 100;

fn three(seed: u64) -> World {
    let mut world = World::new(seed);
    [600.0, 300.0, 100.0].into_iter().for_each(|demand| world.join(demand, None));
    world
}

fn want(world: &mut World, demands: [f64; 3]) {
    world.envoys.iter_mut().zip(demands).for_each(|(envoy, demand)| envoy.demand = demand);
}

#[test]
fn three_envoys_that_want_all_of_it_use_97_percent() {
    for seed in 0..20 {
        let mut world = three(seed);
        world.run(30);
        let came = world.came();
        let rates = world.rates(60);
        let came = (world.came() - came) as f64 / 60.0;
        let used = rates.iter().sum::<f64>() / came.min(CAPACITY as f64);
        assert!(used >= 0.97, "seed {seed}: {used}, {rates:?}");
        assert!(world.most <= CAPACITY + BURST, "seed {seed}: {}", world.most);
    }
}

#[test]
fn a_split_follows_demands_that_change_with_a_report_within_two_reports() {
    for seed in 0..20 {
        let mut world = three(seed);
        let tick = world.envoys[0].tick;
        world.envoys.iter_mut().for_each(|envoy| envoy.tick = tick);
        while world.now < tick + 30_000 {
            world.step();
        }
        want(&mut world, [100.0, 300.0, 600.0]);
        // Two reports, and what they take on their way.
        while world.now < tick + 40_500 {
            world.step();
        }
        let passing = world.passing(4);
        assert!(passing.iter().all(|part| *part >= 0.9), "seed {seed}: {passing:?}");
        assert!(world.most <= CAPACITY + BURST, "seed {seed}: {}", world.most);
    }
}

/// A report then covers two demands, so that the one after it is the first that tells the new one.
#[test]
fn a_split_follows_demands_that_change_between_reports_within_three() {
    for seed in 0..20 {
        let mut world = three(seed);
        world.run(30);
        want(&mut world, [100.0, 300.0, 600.0]);
        world.run(16);
        let passing = world.passing(4);
        assert!(passing.iter().all(|part| *part >= 0.9), "seed {seed}: {passing:?}");
        assert!(world.most <= CAPACITY + BURST, "seed {seed}: {}", world.most);
    }
}

#[test]
fn a_killed_envoys_part_is_back_within_the_time_to_live() {
    for seed in 0..20 {
        let mut world = three(seed);
        world.run(30);
        want(&mut world, [600.0, 800.0, 100.0]);
        world.run(15);
        world.kill(0);
        // The lease of the file.
        world.run(20);
        let passing = world.passing(5);
        assert!(passing[1..].iter().all(|part| *part >= 0.94), "seed {seed}: {passing:?}");
        assert!(world.most <= CAPACITY + BURST, "seed {seed}: {}", world.most);
        assert_eq!(world.buckets(), 2);
    }
}

#[test]
fn an_envoy_with_a_name_that_loses_its_stream_has_its_part_again_at_once() {
    let mut world = World::new(1);
    for (name, demand) in [("a", 600.0), ("b", 300.0), ("c", 100.0)] {
        world.join(demand, Some(name.to_owned()));
    }
    world.run(30);
    world.lose(0);
    world.run(5);
    assert_eq!(world.buckets(), 3);
    let passing = world.passing(20);
    assert!(passing[0] >= 0.94, "{passing:?}");
    assert!(world.most <= CAPACITY + BURST, "{}", world.most);
}

#[test]
fn a_server_that_starts_again_lets_envoys_keep_most_of_what_they_show_to_have() {
    for seed in 0..20 {
        let mut world = three(seed);
        world.run(28 + seed % 5);
        world.restart();
        world.run(5);
        let passing = world.passing(15);
        assert!(passing.iter().all(|part| *part >= 0.7), "seed {seed}: {passing:?}");
        world.run(15);
        let passing = world.passing(10);
        assert!(passing.iter().all(|part| *part >= 0.94), "seed {seed}: {passing:?}");
        assert!(world.most <= CAPACITY + BURST, "seed {seed}: {}", world.most);
        assert!(world.in_force.0 <= CAPACITY as f64, "seed {seed}: {:?}", world.in_force);
    }
}

#[test]
fn envoys_use_most_of_it_in_an_hour_in_which_the_master_is_followed_by_another_each_minute() {
    for seed in 0..5 {
        let mut world = World::new(seed);
        for (at, demand) in [900.0, 600.0, 300.0].into_iter().enumerate() {
            world.join(demand, Some(format!("envoy-{at}")));
        }
        world.run(60);
        let before: u64 = world.envoys.iter().map(|envoy| envoy.passed).sum();
        for _ in 1..60 {
            let rest = world.random.below(6_000) / 10 * 10;
            let end = world.now + 60 * world::SECOND;
            while world.now < end - 55 * world::SECOND + rest {
                world.step();
            }
            // An election takes up to 3 seconds.
            let after = 1_500 + world.random.below(150) * 10;
            world.follow(after);
            while world.now < end {
                world.step();
            }
        }
        let passed = world.envoys.iter().map(|envoy| envoy.passed).sum::<u64>() - before;
        let used = passed as f64 / (59.0 * 60.0 * CAPACITY as f64);
        eprintln!("seed {seed}: {used:.3} is used, {} at most", world.most);
        assert!(used >= 0.85, "seed {seed}: {used}");
        assert!(world.most <= CAPACITY + BURST + 3, "seed {seed}: {}", world.most);
        assert!(world.in_force.0 <= CAPACITY as f64, "seed {seed}: {:?}", world.in_force);
    }
}

#[test]
fn envoys_never_pass_more_than_the_capacity_and_the_burst_whatever_happens() {
    for seed in 0..60 {
        let mut world = World::new(seed);
        // Nearly as slow as a message may be.
        world.slowest = 900;
        let mut joined = 0;
        for _ in 0..60 {
            let random = world.random.number();
            let living: Vec<_> =
                (0..world.envoys.len()).filter(|at| !world.envoys[*at].is_dead).collect();
            let one = living.get((random >> 32) as usize % living.len().max(1)).copied();
            match (random % 16, one) {
                (0, Some(one)) => world.kill(one),
                (1..=3, Some(one)) => world.lose(one),
                (4, Some(_)) => world.restart(),
                (5..=10, Some(one)) => {
                    world.envoys[one].demand =
                        [0.0, 10.0, 500.0, 3_000.0][(random >> 16) as usize % 4];
                }
                _ if living.len() < 8 => {
                    joined += 1;
                    let name = (random & (1 << 20) != 0).then(|| format!("envoy-{joined}"));
                    world.join(((random >> 24) % 2_000) as f64, name);
                }
                _ => {}
            }
            let seconds = world.random.below(12);
            world.run(seconds);
        }
        // A bucket has room for one token at least.
        let (rate, burst) = world.in_force;
        assert!(rate <= CAPACITY as f64, "seed {seed}: {rate} in force at one time");
        assert!(burst <= BURST + 8, "seed {seed}: {burst} at once");
        let bound = CAPACITY + BURST + 8;
        assert!(world.most <= bound, "seed {seed}: {} in a second", world.most);
    }
}
