//! Servers that share a Redis.

use std::time::Duration;

use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use sluicegate_core::store::OnStoreError;
use sluicegate_redis::Redis;
use sluicegate_server::{Fields, Policies, Service, ServiceBuilder};
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

#[tokio::test]
async fn descriptors_that_are_counted_apart_mean_the_same_in_redis_and_in_memory() {
    let redis = servers::Server::start();
    let deadline = Duration::from_secs(10);
    let store = Redis::builder().url(&redis.url()).deadline(deadline).build().expect("a store");
    let in_redis =
        start_with(FILE, |service| service.store(store).deadline(deadline).apart(true)).await;
    let in_memory = start_with(FILE, |service| service.apart(true)).await;
    for mut server in [in_redis, in_memory] {
        let (ok, over) = (Code::Ok, Code::OverLimit);
        let user = |name| descriptor(&[("user", name)]);
        for (user_left, all) in
            [(5, (ok, 2)), (4, (ok, 1)), (3, (ok, 0)), (2, (over, 0)), (1, (over, 0))]
        {
            let both = vec![user("a"), descriptor(&[("all", "x")])];
            assert_eq!(statuses(&server.ask(both).await), [(ok, user_left), all]);
        }
        // What goes beyond the limit is counted.
        for (name, hit, expected) in [
            ("a", 2, (over, 0)),
            ("a", 1, (over, 0)),
            ("b", 6, (ok, 0)),
            // A window that is full is not over.
            ("b", 0, (ok, 0)),
            ("b", 1, (over, 0)),
            ("b", 0, (over, 0)),
            ("c", 100, (over, 0)),
            ("c", 0, (over, 0)),
        ] {
            let answer = server.ask(vec![hits(user(name), hit)]).await;
            assert_eq!(statuses(&answer), [expected], "{name} {hit}");
        }
        // Seven were counted, of which three are given back.
        assert_eq!(statuses(&server.ask(vec![back(user("b"), 3)]).await), [(ok, 2)]);
        // One after the other, also for one limit.
        let twice = vec![hits(user("d"), 4), hits(user("d"), 1), hits(user("d"), 2)];
        assert_eq!(statuses(&server.ask(twice).await), [(ok, 2), (ok, 1), (over, 0)]);
    }
}

#[tokio::test]
async fn the_three_fields_have_the_names_of_the_deployment() {
    let names = |service: ServiceBuilder| {
        service.fields(Fields::Three).field_names("X-Limit", "X-Left", "X-Reset")
    };
    let mut server = start_with(FILE, names).await;
    let answer = server.ask(vec![descriptor(&[("user", "a")])]).await;
    let fields = answer.response_headers_to_add.iter().map(|field| (&*field.key, &*field.value));
    let fields: Vec<_> = fields.collect();
    assert_eq!(fields[..2], [("X-Limit", "6"), ("X-Left", "5")]);
    assert_eq!(fields[2].0, "X-Reset");
    assert!(Service::builder(Policies::new()).field_names("a b", "c", "d").build().is_err());
}

#[test]
fn counting_apart_and_other_settings_do_not_contradict_each_other() {
    let service = || Service::builder(Policies::new());
    assert!(service().quota(true).build().is_err());
    assert!(service().apart(true).quota(true).build().is_ok());
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
    tokio::time::timeout(Duration::from_secs(120), patience).await.expect("Redis is back");
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
        // Long enough for a busy machine to answer in, too.
        let deadline = Duration::from_millis(150);
        let store = Redis::builder().url(&redis.url()).deadline(deadline).build();
        let store = store.expect("a store, though Redis is away");
        let mut server = start_with(FILE, |service| {
            service.store(store).deadline(deadline).on_store_error(on_store_error)
        })
        .await;
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
