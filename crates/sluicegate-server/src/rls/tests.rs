//! How long a call waits for a store elsewhere.

use std::time::Duration;

use axum::http::HeaderMap;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use envoy_types::pb::google::protobuf::UInt64Value;
use prost::Message as _;
use sluicegate_core::{ManualClock, Memory};
use sluicegate_tests::stores::{Manner, TestStore};
use tokio::time::Instant;

use super::grpc::Rls;
use crate::{Policies, Service};

const LIMITS: &str = "domain: edge
descriptors:
- key: first
  rate_limit: { unit: hour, requests_per_unit: 1 }
- key: other
  rate_limit: { unit: hour, requests_per_unit: 10 }
";

const ROUND_TRIP: Duration = Duration::from_millis(4);

/// A service whose store answers after a round trip.
fn service() -> (Service, TestStore) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("ratelimit.yaml");
    std::fs::write(&file, LIMITS).expect("a file");
    let memory = Memory::builder().clock(ManualClock::new()).build();
    let store = TestStore::new(memory, Manner::After(ROUND_TRIP));
    let policies = Policies::new().envoy(&file).expect("policies");
    (Service::builder(policies).store(store.clone()).build().expect("a service"), store)
}

fn descriptor(key: &str, value: &str, hits: u64, is_negative_hits: bool) -> RateLimitDescriptor {
    let entry = Entry { key: key.to_owned(), value: value.to_owned() };
    let hits_addend = Some(UInt64Value { value: hits });
    let entries = vec![entry];
    RateLimitDescriptor { entries, hits_addend, is_negative_hits, ..RateLimitDescriptor::default() }
}

/// One for each of these users, and what is left for them afterwards.
fn others(hits: u64, is_negative_hits: bool) -> impl Iterator<Item = RateLimitDescriptor> {
    ["a", "b", "c", "d"]
        .into_iter()
        .map(move |user| descriptor("other", user, hits, is_negative_hits))
}

/// The answer, and how long it took.
async fn ask(
    service: &Service,
    descriptors: impl IntoIterator<Item = RateLimitDescriptor>,
) -> (RateLimitResponse, Duration) {
    let request = RateLimitRequest {
        domain: "edge".to_owned(),
        descriptors: descriptors.into_iter().collect(),
        hits_addend: 0,
    };
    let asked = Instant::now();
    let framed = Rls::new(service).decide(&HeaderMap::new(), &request.encode_to_vec()).await;
    let framed = framed.expect("an answer");
    (RateLimitResponse::decode(&framed[5..]).expect("a message"), asked.elapsed())
}

fn left(response: &RateLimitResponse) -> Vec<u32> {
    response.statuses.iter().map(|status| status.limit_remaining).collect()
}

#[tokio::test(start_paused = true)]
async fn an_answer_over_the_limit_does_not_wait_until_the_other_hits_are_counted() {
    let (service, store) = service();
    let first = || descriptor("first", "x", 1, false);
    ask(&service, [first()]).await;
    let (answer, took) = ask(&service, [first()].into_iter().chain(others(2, false))).await;
    assert_eq!(answer.overall_code, 2, "{answer:?}");
    assert_eq!(took, ROUND_TRIP);
    // Not later than a server that stops.
    service.counted().await;
    store.set(Manner::AtOnce);
    assert_eq!(left(&ask(&service, others(0, false)).await.0), [8; 4]);
}

#[tokio::test(start_paused = true)]
async fn what_a_request_gives_back_is_given_back_together() {
    let (service, _) = service();
    ask(&service, others(5, false)).await;
    let (answer, took) = ask(&service, others(3, true)).await;
    assert_eq!(left(&answer), [8; 4]);
    // The second one says that it has been given back.
    assert_eq!(took, 2 * ROUND_TRIP);
}
