//! Keys and conditions of gRPC.

use sluicegate_tonic::condition::Not;
use sluicegate_tonic::key::{GrpcMethod, GrpcService, Metadata};
use sluicegate_tonic::{Ip, Limit, RateLimitLayer};
use tonic::metadata::MetadataValue;
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;

use crate::servers::{check, client, serve};

const ONE: Limit = Limit::per_hour(1);

#[tokio::test]
async fn binary_metadata_of_a_client_is_a_key() {
    let layer = RateLimitLayer::new(ONE.by(Metadata("tenant-bin")));
    let mut client = client(serve(layer).await).await;
    let call = |tenant: &'static [u8]| {
        let mut request = Request::new(HealthCheckRequest::default());
        request.metadata_mut().insert_bin("tenant-bin", MetadataValue::from_bytes(tenant));
        request
    };
    for tenant in [b"a\0\xff".as_slice(), b"b"] {
        assert!(client.check(call(tenant)).await.is_ok());
        let status = client.check(call(tenant)).await.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted);
    }

    let mut twice = call(b"c");
    twice.metadata_mut().append_bin("tenant-bin", MetadataValue::from_bytes(b"d"));
    assert_eq!(client.check(twice).await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(check(&mut client).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn each_method_of_a_service_has_a_budget_of_its_own() {
    let layer = RateLimitLayer::new(ONE.by((Ip::peer(), GrpcMethod)));
    let mut client = client(serve(layer).await).await;
    assert!(check(&mut client).await.is_ok());
    assert_eq!(check(&mut client).await.unwrap_err().code(), Code::ResourceExhausted);
    assert!(client.watch(HealthCheckRequest::default()).await.is_ok());
}

#[tokio::test]
async fn a_rule_is_for_the_methods_of_its_pattern() {
    let rule = ONE.by(Ip::peer()).when(GrpcMethod.matches("/grpc.health.v1.Health/Check"));
    let mut client = client(serve(RateLimitLayer::new(rule)).await).await;
    assert!(check(&mut client).await.is_ok());
    assert_eq!(check(&mut client).await.unwrap_err().code(), Code::ResourceExhausted);
    for _ in 0..3 {
        assert!(client.watch(HealthCheckRequest::default()).await.is_ok());
    }
}

#[tokio::test]
async fn health_checks_are_exempt_by_one_condition() {
    let calls = ONE.by(Ip::peer());
    let rule = calls.when(Not(GrpcService.is_any(GrpcService::HEALTH_AND_REFLECTION)));
    let mut client = client(serve(RateLimitLayer::new(rule)).await).await;
    for _ in 0..5 {
        assert!(check(&mut client).await.is_ok());
    }
}
