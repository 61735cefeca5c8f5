//! The rate limit quota service over gRPC.

use std::time::Duration;

use envoy_types::pb::envoy::r#type::v3::rate_limit_strategy::Strategy;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::bucket_action::BucketAction;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_service_client::RateLimitQuotaServiceClient;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_usage_reports::BucketQuotaUsage;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::{
    BucketId, RateLimitQuotaResponse, RateLimitQuotaUsageReports,
};
use envoy_types::pb::google::protobuf::Duration as ProtoDuration;
use sluicegate_lease::{Amount, LeaseClient};
use sluicegate_server::Policies;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::transport::Channel;
use tonic::{Code, Streaming};

use super::server::{Running, serve};

pub(super) const CAPACITY: &str = "[[capacity]]\nname = \"db\"\nlimit = \"1000/second burst 100\"\n\
    [[capacity.envoy]]\ndomain = \"edge\"\nbucket = { service = \"db\" }\n";

async fn start() -> Running {
    let read = |file: &std::path::Path| Policies::new().capacity(file);
    serve("capacity.toml", CAPACITY, read, |service| service.nothing_leased(true)).await
}

/// Sends what is put into a channel.
struct Reports(mpsc::UnboundedReceiver<RateLimitQuotaUsageReports>);

impl Stream for Reports {
    type Item = RateLimitQuotaUsageReports;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}

pub(super) struct Envoy {
    reports: mpsc::UnboundedSender<RateLimitQuotaUsageReports>,
    pub(super) orders: Streaming<RateLimitQuotaResponse>,
}

impl Envoy {
    pub(super) async fn connect(server: &Running) -> Self {
        let channel = Channel::from_shared(server.grpc.clone()).expect("an address");
        Self::over(channel.connect().await.expect("a connection")).await
    }

    pub(super) async fn over(channel: Channel) -> Self {
        let (reports, receiver) = mpsc::unbounded_channel();
        let mut client = RateLimitQuotaServiceClient::new(channel);
        let orders = client.stream_rate_limit_quotas(Reports(receiver)).await.expect("a stream");
        Self { reports, orders: orders.into_inner() }
    }

    pub(super) fn report(&self, domain: &str, service: &str, seconds: i64) {
        let bucket = [("service".to_owned(), service.to_owned())].into();
        let usage = BucketQuotaUsage {
            bucket_id: Some(BucketId { bucket }),
            time_elapsed: Some(ProtoDuration { seconds, nanos: 0 }),
            num_requests_allowed: 0,
            num_requests_denied: 3_000,
        };
        let report = RateLimitQuotaUsageReports {
            domain: domain.to_owned(),
            bucket_quota_usages: vec![usage],
        };
        self.reports.send(report).expect("the stream is open");
    }
}

#[tokio::test]
async fn a_report_is_answered_with_a_token_bucket_that_ends() {
    let server = start().await;
    let mut envoy = Envoy::connect(&server).await;
    // Buckets that no capacity is for are passed over.
    envoy.report("edge", "other", 5);
    envoy.report("edge", "db", 5);
    let order = envoy.orders.message().await.expect("a message").expect("an order");
    let [action] = &order.bucket_action[..] else { panic!("{order:?}") };
    assert_eq!(action.bucket_id.as_ref().expect("an id").bucket["service"], "db");
    let Some(BucketAction::QuotaAssignmentAction(assignment)) = &action.bucket_action else {
        panic!("{action:?}")
    };
    assert_eq!(assignment.assignment_time_to_live.map(|time| time.seconds), Some(18));
    let strategy = assignment.rate_limit_strategy.and_then(|strategy| strategy.strategy);
    let Some(Strategy::TokenBucket(bucket)) = strategy else { panic!("{strategy:?}") };
    // What it wants, a quarter more, and a part of the rest.
    assert_eq!(bucket.tokens_per_fill.map(|tokens| tokens.value), Some(600 + 150 + 31));
    assert_eq!((bucket.max_tokens, bucket.fill_interval.map(|time| time.seconds)), (78, Some(1)));
}

impl Envoy {
    /// What the next order lets it pass a second.
    async fn rate(&mut self) -> f64 {
        let order = self.orders.message().await.expect("a message").expect("an order");
        let Some(BucketAction::QuotaAssignmentAction(assignment)) =
            order.bucket_action[0].bucket_action
        else {
            panic!("{order:?}")
        };
        match assignment.rate_limit_strategy.and_then(|strategy| strategy.strategy) {
            Some(Strategy::TokenBucket(bucket)) => {
                let (tokens, time) = (bucket.tokens_per_fill, bucket.fill_interval);
                let seconds = time.map_or(1, |time| time.seconds);
                f64::from(tokens.map_or(1, |tokens| tokens.value)) / seconds as f64
            }
            strategy => panic!("{strategy:?}"),
        }
    }
}

#[tokio::test]
async fn an_envoy_and_a_program_with_a_lease_never_hold_more_than_there_is() {
    const ALL: f64 = 1_000.0;

    let server = start().await;
    let mut envoy = Envoy::connect(&server).await;
    envoy.report("edge", "db", 5);
    let first = envoy.rate().await;
    assert!(first > ALL / 2.0, "{first}");
    let client = LeaseClient::connect(&server.grpc).expect("an address");
    let lease = client.resource("db").wants(Amount::units(1_000)).lease();
    let mut lease = lease.expect("a lease");
    while lease.capacity() == Amount::ZERO {
        lease.changed().await.expect("a client");
    }
    let held = lease.capacity().as_f64();
    assert!(held > 0.0 && first + held <= ALL, "{first} and {held}");
    // Both want more than half: the Envoy gives up what is not its part.
    envoy.report("edge", "db", 5);
    let second = envoy.rate().await;
    assert!(second < first && second + held <= ALL, "{second} and {held}");
}

#[tokio::test]
async fn a_file_that_changes_changes_what_an_envoy_has_without_a_report() {
    let server = start().await;
    let mut envoy = Envoy::connect(&server).await;
    envoy.report("edge", "db", 5);
    assert_eq!(envoy.rate().await, 781.0);
    std::fs::write(&server.file, CAPACITY.replace("1000", "400")).expect("a file");
    server.reload.now().expect("a file that is valid");
    assert_eq!(envoy.rate().await, 400.0);
    // A file that is not valid changes nothing.
    std::fs::write(&server.file, "capacity = 5").expect("a file");
    let problems = server.reload.now().expect_err("an error").to_string();
    assert!(problems.contains(":1:12: "), "{problems}");
    envoy.report("edge", "db", 5);
    assert_eq!(envoy.rate().await, 400.0);
}

/// A client that sends a few dozen such values would otherwise make each report of its Envoy too large to be read.
#[tokio::test]
async fn a_bucket_whose_id_is_too_long_is_forgotten_at_once() {
    let server = start().await;
    let mut envoy = Envoy::connect(&server).await;
    for length in [3_000, 60_000] {
        let service = "x".repeat(length);
        envoy.report("edge", &service, 0);
        let order = envoy.orders.message().await.expect("a message").expect("an order");
        let [action] = &order.bucket_action[..] else { panic!("{order:?}") };
        assert_eq!(action.bucket_id.as_ref().expect("an id").bucket["service"], service);
        assert!(matches!(action.bucket_action, Some(BucketAction::AbandonAction(_))), "{length}");
    }
}

#[tokio::test]
async fn a_message_that_cannot_be_right_ends_its_stream_and_no_other() {
    let server = start().await;
    for _ in 0..100 {
        if is_other_stream_left(&server).await {
            return;
        }
        // A busy machine can make the process stand still for a second, which ends all streams.
    }
    panic!("other streams end again and again");
}

/// Sends messages that cannot be right. Returns whether a stream with right ones is left after that.
async fn is_other_stream_left(server: &Running) -> bool {
    let mut good = Envoy::connect(server).await;
    good.report("edge", "db", 0);
    let has_begun = good.orders.message().await.expect("a message").is_some();
    for (first, last, seconds) in
        [(None, "", 5), (Some("edge"), "inner", 5), (Some("edge"), "edge", -1)]
    {
        let mut bad = Envoy::connect(server).await;
        // The last report ends the stream, which takes no other one.
        first.into_iter().for_each(|first| bad.report(first, "other", 0));
        bad.report(last, "other", seconds);
        let error = loop {
            match bad.orders.message().await {
                // The first report is answered before.
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(status) => break status,
            }
        };
        assert_eq!(error.code(), Code::InvalidArgument, "{first:?} {last:?}: {error}");
    }
    let mut bad = Envoy::connect(server).await;
    bad.report("edge", &"x".repeat(16 << 20), 0);
    let Err(error) = bad.orders.message().await else { return false };
    assert_eq!(error.code(), Code::OutOfRange, "{error}");
    if !has_begun || good.reports.is_closed() {
        return false;
    }
    good.report("edge", "db", 5);
    good.orders.message().await.expect("a message").is_some()
}

#[tokio::test]
async fn streams_end_when_the_server_stops_and_new_ones_are_refused() {
    let mut server = start().await;
    let mut envoy = Envoy::connect(&server).await;
    envoy.report("edge", "db", 0);
    assert!(envoy.orders.message().await.expect("a message").is_some());
    drop(server.stop.take());
    let end = tokio::time::timeout(Duration::from_secs(60), async {
        while let Ok(Some(_)) = envoy.orders.message().await {}
    });
    end.await.expect("the stream ends");
    tokio::time::timeout(Duration::from_secs(60), server.served).await.expect("it stops").unwrap();
}
