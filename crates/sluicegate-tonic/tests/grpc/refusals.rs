//! What a client sees of each refusal.

use std::time::Duration;

use sluicegate::store::OnStoreError;
use sluicegate_tonic::limit::{Limits, WhenFull};
use sluicegate_tonic::{Header, Ip, Limit, Memory, RateLimitLayer, Rejection};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_types::StatusExt;

use crate::servers::{check, client, serve, still};

const TWO: Limit = Limit::per(2, Duration::from_secs(3600)).named("two");

fn pushback(status: &Status) -> Option<&str> {
    Some(status.metadata().get("grpc-retry-pushback-ms")?.to_str().unwrap())
}

#[tokio::test]
async fn a_refused_call_is_resource_exhausted_and_says_when_to_retry() {
    let layer = RateLimitLayer::new(TWO.by(Ip::peer())).store(still());
    let mut client = client(serve(layer).await).await;

    assert!(check(&mut client).await.is_ok());
    assert!(check(&mut client).await.is_ok());
    let status = check(&mut client).await.unwrap_err();

    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.message(), "too many requests; try again in 1800 s");
    let retry = status.get_details_retry_info().unwrap();
    assert_eq!(retry.retry_delay, Some(Duration::from_secs(1800)));
    assert_eq!(pushback(&status), Some("1800000"));
    let quota = status.get_details_quota_failure().unwrap();
    assert_eq!(quota.violations.len(), 1);
    assert_eq!(quota.violations[0].subject, "two");
    assert_eq!(quota.violations[0].description, "2/hour named \"two\"");
    // The fields of the layer are metadata.
    assert_eq!(status.metadata().get("retry-after").unwrap(), "1800");
    assert!(status.metadata().contains_key("ratelimit-policy"));
}

#[tokio::test]
async fn a_wait_of_less_than_a_second_is_told_in_milliseconds() {
    for (rate, text, millis) in [(50, "20 ms", "20"), (3, "334 ms", "334"), (1, "1 s", "1000")] {
        let limit = Limit::per_second(rate).burst(1);
        let layer = RateLimitLayer::new(limit.by(Ip::peer())).store(still());
        let mut client = client(serve(layer).await).await;
        assert!(check(&mut client).await.is_ok());
        let status = check(&mut client).await.unwrap_err();
        assert_eq!(status.message(), format!("too many requests; try again in {text}"));
        assert_eq!(pushback(&status), Some(millis));
        let delay = status.get_details_retry_info().unwrap().retry_delay.unwrap();
        assert_eq!(delay.as_millis().to_string(), millis);
    }
}

#[tokio::test]
async fn every_limit_that_refuses_is_a_violation_and_others_are_not() {
    let limits = [
        Limit::per_minute(1).named("burst"),
        Limit::per_hour(1).named("hourly"),
        Limit::per_day(100).named("daily"),
    ];
    let layer = RateLimitLayer::new(Limits::from(limits).by(Ip::peer())).store(still());
    let mut client = client(serve(layer).await).await;
    assert!(check(&mut client).await.is_ok());
    let status = check(&mut client).await.unwrap_err();
    let violations = status.get_details_quota_failure().unwrap().violations;
    let subjects: Vec<_> = violations.iter().map(|violation| &*violation.subject).collect();
    assert_eq!(subjects, ["burst", "hourly"]);
    assert_eq!(pushback(&status), Some("3600000"));
}

#[tokio::test]
async fn the_largest_refusal_fits_into_what_clients_accept() {
    // The most limits, with the longest names and texts, and all of them refuse.
    let limits = (0..16_u64).map(|at| {
        let limit = Limit::per(1, Duration::from_secs(100_001 + at)).burst(2);
        let name: &str = format!("{at:a>31}").leak();
        limit.min_gap(Duration::from_micros(90_000_001)).soft(1).named(name)
    });
    let rule = Limits::from(limits.collect::<Vec<_>>()).by(Ip::peer());
    let mut client = client(serve(RateLimitLayer::new(rule).store(still())).await).await;
    assert!(check(&mut client).await.is_ok());
    let status = check(&mut client).await.unwrap_err();
    assert_eq!(status.get_details_quota_failure().unwrap().violations.len(), 16);
    let metadata = status.metadata().as_ref();
    let fields = metadata.iter().map(|(name, value)| name.as_str().len() + value.len() + 32);
    // The details and the text are taken out of the metadata.
    let details = status.details().len().div_ceil(3) * 4 + status.message().len() + 128;
    let total = fields.sum::<usize>() + details;
    assert!((4_000..8_192).contains(&total), "{total}");
}

#[tokio::test]
async fn a_call_without_its_key_is_an_invalid_argument() {
    let mut client = client(serve(RateLimitLayer::new(TWO.by(Header("x-api-key")))).await).await;

    let status = check(&mut client).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(status.message(), "the request lacks the `x-api-key` header");

    for _ in 0..2 {
        let mut request = Request::new(HealthCheckRequest::default());
        request.metadata_mut().insert("x-api-key", "alice".parse().unwrap());
        assert!(client.check(request).await.is_ok());
    }
}

#[tokio::test]
async fn a_call_that_would_be_redirected_is_refused_as_grpc() {
    let layer = RateLimitLayer::new(TWO.by(Ip::peer()))
        .store(still())
        .rejection(Rejection::redirect("https://example.com/"));
    let mut client = client(serve(layer).await).await;

    assert!(check(&mut client).await.is_ok());
    assert!(check(&mut client).await.is_ok());
    let status = check(&mut client).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(pushback(&status), Some("1800000"));
    assert_eq!(status.metadata().get("retry-after").unwrap(), "1800");
    assert!(status.metadata().contains_key("ratelimit"));
    assert!(!status.metadata().contains_key("location"));
}

#[tokio::test]
async fn a_call_that_costs_more_than_a_limit_admits_is_told_not_to_retry() {
    let layer = || RateLimitLayer::new(TWO.by(Ip::peer()).cost(3));
    for layer in [layer(), layer().rejection(Rejection::redirect("https://example.com/"))] {
        let mut client = client(serve(layer).await).await;
        let status = check(&mut client).await.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert_eq!(pushback(&status), Some("-1"));
        assert!(status.get_details_retry_info().is_none());
        assert!(!status.metadata().contains_key("retry-after"));
        assert!(!status.metadata().contains_key("location"));
    }
}

#[tokio::test]
async fn a_store_without_room_is_unavailable_and_never_exhausted() {
    let limit = Limit::per_hour(1).when_full(WhenFull::Admit);
    let layer = RateLimitLayer::new(limit.by(Header("id")))
        .store(Memory::builder().capacity(1).build())
        .on_store_error(OnStoreError::Refuse);
    let mut client = client(serve(layer).await).await;
    let mut unavailable = 0;
    for id in 0..200 {
        let mut request = Request::new(HealthCheckRequest::default());
        request.metadata_mut().insert("id", id.into());
        if let Err(status) = client.check(request).await {
            assert_eq!(status.code(), Code::Unavailable);
            assert_eq!(pushback(&status), Some("1000"));
            let delay = status.get_details_retry_info().unwrap().retry_delay;
            assert_eq!(delay, Some(Duration::from_secs(1)));
            unavailable += 1;
        }
    }
    assert!(unavailable > 0);
}
