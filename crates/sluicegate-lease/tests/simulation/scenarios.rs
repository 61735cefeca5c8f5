//! Doorman's seven scenarios (`simulation/scenario_*.py` in its repository).

use std::time::Duration;

use super::random::Random;
use super::setting::Setting;
use super::world::World;

const SECOND: u64 = 1_000;

/// The numbers of all scenarios.
pub(crate) const SCENARIOS: std::ops::RangeInclusive<u32> = 1..=9;

/// The world of a scenario, and how long it lasts, in seconds.
pub(crate) fn scenario(number: u32, setting: Setting, seed: u64) -> (World, u64) {
    let setting = if number == 9 { of_several_servers(setting) } else { setting };
    let mut world = World::new(setting, seed);
    let mut random = Random::new(seed ^ 0x5EED);
    match number {
        1..=3 => {
            let root = world.job(0, None);
            for _ in 0..5 {
                world.client(root, 110.0);
            }
            if number > 1 {
                let back = if number == 2 { 140 } else { 190 };
                world.lose_master(120 * SECOND, root);
                world.elect_master(back * SECOND, root);
            }
            (world, 300)
        }
        4 => {
            let root = world.job(0, None);
            let region = world.job(1, Some(root));
            for _ in 0..5 {
                world.client(region, 100.0);
            }
            (world, 300)
        }
        9 => {
            let root = world.job(0, None);
            for _ in 0..60 {
                world.client(root, 15.0);
            }
            for minute in 1..60 {
                let away = match random.below(3) {
                    // The master is killed, or stands still.
                    0 | 1 => ELECTION / 2 + random.below(ELECTION / 2),
                    _ => random.below(STORE_AWAY),
                };
                let begin = minute * 60 * SECOND + random.below(10 * SECOND);
                world.lose_master(begin, root);
                world.elect_master(begin + away, root);
            }
            (world, 3_600)
        }
        _ => {
            let clients = tree(&mut world, if number == 8 { 5.0 } else { 15.0 });
            if number == 6 || number == 8 {
                let one = random.below(clients) as usize;
                world.spike(150 * SECOND, one, 1_000.0);
                world.spike(150 * SECOND, (one + 1) % clients as usize, 1_000.0);
            }
            if number == 7 {
                world.mishaps();
            }
            (world, if number == 7 { 3_600 } else { 300 })
        }
    }
}

/// How long it takes at most until another server is the master, in milliseconds.
const ELECTION: u64 = 3 * SECOND;
/// How long the store is away at most that elects the master.
const STORE_AWAY: u64 = 20 * SECOND;

/// Leases and refresh intervals of `sluicegate serve --capacity`, unless the file says otherwise.
fn of_several_servers(setting: Setting) -> Setting {
    let refresh = setting.refresh.map(|refresh| refresh.min(Duration::from_secs(5)));
    Setting { lease: Duration::from_secs(20), refresh, ..setting }
}

/// The setting of [`crowd`]: five million requests a second, refreshed every second.
pub(crate) fn crowded() -> Setting {
    Setting { capacity: 5e6, ..Setting::doorman().refresh(Duration::from_secs(1)) }
}

/// 10,000 clients on three levels, which want a fifth more than there is: one root, ten regions, ten clusters in each,
/// and a hundred clients in each cluster.
pub(crate) fn crowd(setting: Setting, seed: u64) -> World {
    let wants = setting.capacity * 1.2 / 10_000.0;
    let mut world = World::new(setting, seed);
    let root = world.job(0, None);
    for _ in 0..10 {
        let region = world.job(1, Some(root));
        for _ in 0..10 {
            let cluster = world.job(2, Some(region));
            for _ in 0..100 {
                world.client(cluster, wants);
            }
        }
    }
    world
}

/// One root, three regions, nine clusters, and five clients in each.
fn tree(world: &mut World, wants: f64) -> u64 {
    let root = world.job(0, None);
    for _ in 0..3 {
        let region = world.job(1, Some(root));
        for _ in 0..3 {
            let cluster = world.job(2, Some(region));
            for _ in 0..5 {
                world.client(cluster, wants);
            }
        }
    }
    45
}
