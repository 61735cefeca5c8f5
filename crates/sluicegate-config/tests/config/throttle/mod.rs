//! `[throttle]` in policy files.

mod changing;
mod deciding;
mod readme;
mod wrong;

use sluicegate::ManualClock;
use sluicegate_config::{
    Environment, FileThrottle, Live, Policies, PolicyError, read_json, read_toml,
};

/// The throttle of a file that says this below `[throttle]`.
fn throttle(said: &str) -> FileThrottle {
    live(said, &ManualClock::new()).throttle().expect("the file has one")
}

fn live(said: &str, clock: &ManualClock) -> Live {
    Live::of(policies(said, clock).expect("valid policies"))
}

fn policies(said: &str, clock: &ManualClock) -> Result<Policies, PolicyError> {
    let document = read_toml(&format!("rules = []\n[throttle]\n{said}"))?;
    Policies::new(&document, &Environment::new().clock(clock))
}

const EVERYTHING: &str = include_str!("everything.toml");

#[test]
fn a_file_with_every_setting_is_read_from_toml_and_json_alike() {
    let json = read_json(include_str!("everything.json")).unwrap();
    let toml = read_toml(EVERYTHING).unwrap();
    assert_eq!(toml, json);
    let policies = Policies::new(&toml, &Environment::new()).unwrap();
    let throttle = Live::of(policies).throttle().unwrap();
    let snapshot = throttle.throttle().snapshot();
    assert_eq!((snapshot.name.as_str(), snapshot.limit), ("shop", Some(40)));
    let classes: Vec<_> = snapshot.classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(classes, ["checkout", "browsing", "crawlers"]);
    let partitions: Vec<_> =
        snapshot.partitions.iter().map(|part| (part.name.as_str(), part.guaranteed)).collect();
    assert_eq!(partitions, [("checkout", 12), ("search", 20)]);
    // 40 places, a fifth of a second, in microseconds.
    assert_eq!(snapshot.queue_bound, 8_000_000);
}

#[test]
fn every_kind_of_capacity_can_be_said() {
    let snapshot = |said: &str| throttle(said).throttle().snapshot();
    let requests = snapshot("capacity = { requests_per_second = 50 }\nqueue = '200 ms'");
    assert_eq!((requests.cost_per_second, requests.queue_bound), (Some(50.0), 10));
    let cost = snapshot("capacity = { cost_per_second = 500 }\nqueue = { cost = 7 }");
    assert_eq!((cost.cost_per_second, cost.queue_bound), (Some(500.0), 7));
    let cpu = snapshot("capacity = { cpu = '50%' }\nqueue = '1 second'");
    let processors = std::thread::available_parallelism().unwrap().get();
    assert_eq!(cpu.cost_per_second, Some(500_000.0 * processors as f64));
    let in_flight = snapshot("capacity = { in_flight = 9 }\nqueue = '1 second'");
    assert_eq!((in_flight.limit, in_flight.queue_bound), (Some(9), 9_000_000));
    let adaptive = snapshot("capacity = { adaptive = {} }\nqueue = '1 second'");
    assert_eq!(adaptive.limit, Some(20));
    let bounded = snapshot("capacity = { adaptive = { max = 8 } }\nqueue = '1 second'");
    assert_eq!(bounded.limit, Some(8));
}

#[test]
fn a_file_without_a_throttle_has_none() {
    let document = read_toml("rules = []").unwrap();
    let live = Live::of(Policies::new(&document, &Environment::new()).unwrap());
    assert!(live.throttle().is_none());
}
