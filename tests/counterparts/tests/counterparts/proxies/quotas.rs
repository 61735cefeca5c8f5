//! Three Envoys at once that share a capacity by the rate limit quota service.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sluicegate_counterparts::root;
use sluicegate_server::Policies;
use tokio::time::{Instant, sleep};

use crate::proxies::load::{Admitted, Load};
use crate::proxies::program::Program;
use crate::proxies::scene::Scene;

/// The part of what came that passed within this time, for each.
async fn passing(loads: &[Arc<Load>], time: Duration) -> Vec<f64> {
    let before: Vec<_> = loads.iter().map(|load| load.seen()).collect();
    sleep(time).await;
    let after = loads.iter().map(|load| load.seen()).zip(before);
    after
        .map(|((passed, sent), before)| {
            (passed - before.0) as f64 / (sent - before.1).max(1) as f64
        })
        .collect()
}

/// Waits until nine tenths of what comes pass, for each. Returns what passes then, and after which time. On a busy machine
/// Envoys report late; how soon a split follows is tested without one.
async fn until_passing(loads: &[Arc<Load>]) -> (Vec<f64>, Duration) {
    let begun = Instant::now();
    loop {
        let parts = passing(loads, Duration::from_secs(2)).await;
        let waited = begun.elapsed();
        if parts.iter().all(|part| *part >= 0.9) || waited > Duration::from_secs(60) {
            return (parts, waited);
        }
    }
}

/// An Envoy with the file of the page, and a name of its own.
pub(crate) async fn envoy(scene: &Scene, number: usize) -> Program {
    Program::start("envoy", |command, directory, address| {
        let text = scene.configuration("envoy-quota.yaml", address);
        let text = text.replace("envoy-1", &format!("envoy-{number}"));
        std::fs::write(directory.join("envoy.yaml"), text).expect("a file");
        command.args(["-c", "envoy.yaml", "--concurrency", "1", "--use-dynamic-base-id"]);
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_envoys_share_a_capacity_by_what_each_needs() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("capacity.toml");
    let text = std::fs::read_to_string(root().join("docs/proxies/capacity.toml")).expect("a file");
    // So that the test is shorter.
    std::fs::write(&file, text.replace("20 seconds", "10 seconds")).expect("a file");
    let policies = || Policies::new().capacity(&file).unwrap_or_else(|error| panic!("{error}"));
    let scene = Scene::with(policies, |service| service.nothing_leased(true)).await;
    let mut envoys = Vec::new();
    for number in 0..3 {
        envoys.push(envoy(&scene, number).await);
    }
    let (demands, admitted) = ([600, 300, 100], Admitted::default());
    let loads: Vec<_> = envoys
        .iter()
        .zip(demands)
        .map(|(envoy, demand)| Load::start(demand, envoy.address, &admitted))
        .collect();
    let want = |demands: [u64; 3]| {
        for (load, demand) in loads.iter().zip(demands) {
            load.demand.store(demand, Ordering::Relaxed);
        }
    };

    // A busy machine takes longer for the start.
    for _ in 0..300 {
        if loads.iter().all(|load| load.seen().0 > 0) {
            break;
        }
        sleep(Duration::from_millis(100)).await;
    }
    // The first reports that tell a demand come after 5 seconds; the part of others is free with their next.
    let (_, begun) = until_passing(&loads).await;
    let (mut first, mut used) = (Vec::new(), 0.0);
    // A busy machine disturbs some of these times.
    for _ in 0..4 {
        first = passing(&loads, Duration::from_secs(10)).await;
        used = first.iter().zip(demands).map(|(part, demand)| part * demand as f64).sum::<f64>();
        if used >= 970.0 {
            break;
        }
    }
    eprintln!("60/30/10: {first:.3?} pass after {begun:.1?}, {used:.0} of 1000 used");

    want([100, 300, 600]);
    sleep(Duration::from_secs(1)).await;
    let (second, split) = until_passing(&loads).await;
    eprintln!("10/30/60: {second:.3?} pass after {split:.1?}");

    // The last Envoy is killed. The first one needs its part.
    want([650, 300, 0]);
    drop(envoys.pop());
    sleep(Duration::from_secs(1)).await;
    let (third, back) = until_passing(&loads[..2]).await;
    let most = admitted.most_within(Duration::from_secs(1));
    eprintln!("65/30/killed: {third:.3?} pass after {back:.1?}; at most {most} in a second");

    let counts: Vec<_> = loads.iter().map(|load| load.told()).collect();
    let log = format!("{counts:#?}\n{}", envoys[0].log());
    assert!(used >= 970.0, "{used} of 1000: {first:?}\n{log}");
    assert!(second.iter().all(|part| *part >= 0.9), "{second:?}\n{log}");
    assert!(third.iter().all(|part| *part >= 0.9), "{third:?}\n{log}");
    // The capacity, the burst, and a token for each part of it that is less than one.
    assert!(most <= 1_000 + 100 + 3, "{most} in a second");
}
