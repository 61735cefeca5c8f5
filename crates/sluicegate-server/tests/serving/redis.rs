//! Servers that share a Redis.

use std::time::Duration;

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use sluicegate_redis::Redis;
use sluicegate_tests::servers;

use crate::server::{Running, back, descriptor, hits, is_over, start_with, statuses};

const FILE: &str = "domain: edge
descriptors:
- key: user
  rate_limit: { unit: year, requests_per_unit: 6 }
- key: all
  rate_limit: { unit: year, requests_per_unit: 3 }
";

async fn sharing(redis: &servers::Server) -> Running {
    let deadline = Duration::from_secs(10);
    let store = Redis::builder().url(&redis.url()).deadline(deadline).build().expect("a store");
    start_with(FILE, |service| service.store(store).deadline(deadline)).await
}

#[tokio::test]
async fn two_servers_share_every_limit_and_decide_in_one_round_trip() {
    let redis = servers::Server::start();
    let mut servers = [sharing(&redis).await, sharing(&redis).await];
    let both = || vec![descriptor(&[("user", "a")]), descriptor(&[("all", "x")])];
    for (at, left) in [(0, 2), (1, 1), (0, 0)] {
        let answer = servers[at].ask(both()).await;
        assert_eq!(statuses(&answer), [(Code::Ok, left + 3), (Code::Ok, left)]);
    }
    for server in &mut servers {
        let refused = server.ask(both()).await;
        assert_eq!(statuses(&refused), [(Code::Ok, 3), (Code::OverLimit, 0)]);
    }
    let stats = redis.cli(["INFO", "commandstats"]).text();
    let scripts = stats.lines().find(|line| line.starts_with("cmdstat_evalsha")).expect("scripts");
    assert!(scripts.contains("calls=5,"), "{scripts}");
}

#[tokio::test]
async fn hits_mean_the_same_as_in_memory() {
    let redis = servers::Server::start();
    let mut server = sharing(&redis).await;
    let user = || descriptor(&[("user", "a")]);
    assert_eq!(statuses(&server.ask(vec![hits(user(), 0)]).await), [(Code::Ok, 6)]);
    assert_eq!(statuses(&server.ask(vec![hits(user(), 4)]).await), [(Code::Ok, 2)]);
    assert_eq!(statuses(&server.ask(vec![back(user(), 1)]).await), [(Code::Ok, 3)]);
    assert_eq!(statuses(&server.ask(vec![hits(user(), 0)]).await), [(Code::Ok, 3)]);
    // A use that does not fit spends what is left.
    assert!(is_over(&server.ask(vec![hits(user(), 5)]).await));
    assert!(is_over(&server.ask(vec![hits(user(), 0)]).await));
    assert_eq!(statuses(&server.ask(vec![back(user(), 100)]).await), [(Code::Ok, 6)]);
    assert_eq!(statuses(&server.ask(vec![hits(user(), 1)]).await), [(Code::Ok, 5)]);
}
