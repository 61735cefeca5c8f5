//! Capacity that a server leases, as the dashboard shows it.

use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_service_client::RateLimitQuotaServiceClient;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_usage_reports::BucketQuotaUsage;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::{BucketId, RateLimitQuotaUsageReports};
use envoy_types::pb::google::protobuf::Duration;
use sluicegate_server::{Policies, Server, Service};
use tokio_stream::StreamExt as _;

use super::status::status;

const CAPACITY: &str = "[[capacity]]\nname = \"db\"\nlimit = \"1000/second burst 100\"\n\
    [[capacity.envoy]]\ndomain = \"edge\"\nbucket = { service = \"db\" }\n\
    [[capacity]]\nname = \"idle\"\nlimit = \"5/second\"\n";

#[tokio::test]
async fn a_stream_of_envoy_is_shown_with_what_it_wants_and_has() {
    let _alone = super::DECIDES.lock().await;
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("capacity.toml");
    std::fs::write(&file, CAPACITY).expect("a file");
    let policies = Policies::new().capacity(&file).unwrap_or_else(|error| panic!("{error}"));
    let service = Service::builder(policies).nothing_leased(true).build().expect("a service");
    let any = "127.0.0.1:0".parse().expect("an address");
    let bound = Server::new(service).grpc(any).admin(any).bind().await.expect("free ports");
    let grpc = bound.addresses().grpc.expect("a port");
    let admin = bound.addresses().admin.expect("a port").to_string();
    tokio::spawn(bound.run(std::future::pending()));

    let shown = status(&admin).await.capacity.resources;
    let names: Vec<_> = shown.iter().map(|of| (of.resource.as_str(), of.capacity)).collect();
    assert_eq!(names, [("db", 1_000.0), ("idle", 5.0)]);
    assert!(shown.iter().all(|of| of.clients.is_empty() && of.granted == 0.0), "{shown:?}");

    let bucket = [("service".to_owned(), "db".to_owned())].into();
    let usage = BucketQuotaUsage {
        bucket_id: Some(BucketId { bucket }),
        time_elapsed: Some(Duration { seconds: 5, nanos: 0 }),
        num_requests_allowed: 0,
        num_requests_denied: 3_000,
    };
    let report =
        RateLimitQuotaUsageReports { domain: "edge".to_owned(), bucket_quota_usages: vec![usage] };
    let client = RateLimitQuotaServiceClient::connect(format!("http://{grpc}")).await;
    let reports = tokio_stream::once(report).chain(tokio_stream::pending());
    let answer = client.expect("a connection").stream_rate_limit_quotas(reports).await;
    let mut orders = answer.expect("a stream").into_inner();
    orders.message().await.expect("a message").expect("an order");

    let shown = status(&admin).await.capacity.resources;
    let db = shown.iter().find(|of| of.resource == "db").expect("the resource");
    assert_eq!((db.capacity, db.clients.len(), db.more), (1_000.0, 1, 0));
    let client = &db.clients[0];
    assert!(client.client.starts_with("envoy/"), "{client:?}");
    // 3,000 in 5 seconds, at the least.
    assert!(client.wants >= 600.0 && client.granted >= 600.0, "{client:?}");
    assert!(db.granted <= db.capacity, "{db:?}");
}
