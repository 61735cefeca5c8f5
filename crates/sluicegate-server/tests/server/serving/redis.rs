//! Servers that share a Redis.

use std::time::Duration;

use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use sluicegate_core::store::OnStoreError;
use sluicegate_redis::Redis;
use sluicegate_tests::servers;

use super::http::post;
use super::server::{Running, back, descriptor, hits, is_over, start_with, statuses};

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

/// What a server says over gRPC, and the status of its answer at `/json`.
async fn asked(server: &mut Running, user: &str) -> (Result<Code, tonic::Code>, u16) {
    let descriptors = vec![descriptor(&[("user", user)])];
    let request = RateLimitRequest { domain: "edge".to_owned(), descriptors, hits_addend: 0 };
    let answer = server.client.should_rate_limit(request).await;
    let code = answer.map(|answer| answer.into_inner().overall_code());
    let body = format!(
        r#"{{"domain":"edge","descriptors":[{{"entries":[{{"key":"user","value":"{user}"}}]}}]}}"#
    );
    let (status, _) = post(&server.http, "/json", &body).await;
    (code.map_err(|error| error.code()), status)
}

/// Asks for one user after the other, each within its limit, until Redis decides again. Meanwhile the answer is `away`.
async fn asks_until_it_counts(server: &mut Running, away: (Result<Code, tonic::Code>, u16)) {
    let patience = async {
        for user in 0.. {
            let user = format!("user {user}");
            let answer = asked(server, &user).await;
            let counts = server.ask_for_status(&user).await;
            if counts {
                return;
            }
            // Redis may be back between the two.
            let [grpc, http] =
                [[away.0, Ok(Code::Ok)].contains(&answer.0), [away.1, 200].contains(&answer.1)];
            assert!(grpc && http, "{answer:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), patience).await.expect("Redis is back");
}

impl Running {
    /// Whether the store has decided: an answer without one has no limit.
    async fn ask_for_status(&mut self, user: &str) -> bool {
        let descriptors = vec![hits(descriptor(&[("user", user)]), 0)];
        let request = RateLimitRequest { domain: "edge".to_owned(), descriptors, hits_addend: 0 };
        let answer = self.client.should_rate_limit(request).await;
        answer.is_ok_and(|answer| answer.get_ref().statuses[0].current_limit.is_some())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_may_be_away_at_the_start_and_lost_at_any_time_and_nobody_is_refused_for_it() {
    let error = (Err(tonic::Code::Unavailable), 503);
    let allow = (Ok(Code::Ok), 200);
    for (on_store_error, away) in [(OnStoreError::Refuse, error), (OnStoreError::Admit, allow)] {
        let redis = servers::Server::start();
        redis.kill();
        let store = Redis::builder().url(&redis.url()).deadline(Duration::from_millis(15)).build();
        let store = store.expect("a store, though Redis is away");
        let mut server =
            start_with(FILE, |service| service.store(store).on_store_error(on_store_error)).await;
        for call in 0..20 {
            // More than the limit would admit.
            assert_eq!(asked(&mut server, "a").await, away, "call {call}");
        }
        redis.restart();
        asks_until_it_counts(&mut server, away).await;

        for lose in [servers::Server::kill, servers::Server::pause] {
            lose(&redis);
            // What is on its way may still be answered.
            let _ = asked(&mut server, "b").await;
            for call in 0..20 {
                assert_eq!(asked(&mut server, "b").await, away, "call {call}");
            }
            redis.restart();
            asks_until_it_counts(&mut server, away).await;
        }
    }
}
