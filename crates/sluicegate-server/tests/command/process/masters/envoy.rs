//! An Envoy with one bucket, which reports and keeps to its assignments as Envoy does.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use envoy_types::pb::envoy::r#type::v3::rate_limit_strategy::Strategy;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::bucket_action::BucketAction;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_service_client::RateLimitQuotaServiceClient;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_usage_reports::BucketQuotaUsage;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::{
    BucketId, RateLimitQuotaResponse, RateLimitQuotaUsageReports,
};
use envoy_types::pb::google::protobuf::Duration as ProtoDuration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{interval, sleep};
use tokio_stream::wrappers::UnboundedReceiverStream;

/// Ends when it is dropped.
pub(super) struct Envoy {
    assigned: Arc<Mutex<Assigned>>,
    task: AbortHandle,
}

/// A rate, and until when it is in force.
#[derive(Default)]
struct Assigned(Option<(f64, Instant)>);

/// As often as Envoy reports.
const REPORT: Duration = Duration::from_secs(5);
/// After a stream was lost.
const PAUSE: Duration = Duration::from_millis(500);

impl Envoy {
    pub(super) fn start(server: SocketAddr) -> Self {
        let assigned = Arc::<Mutex<Assigned>>::default();
        let task = tokio::spawn(run(server, Arc::clone(&assigned))).abort_handle();
        Self { assigned, task }
    }

    /// What it lets pass each second.
    pub(super) fn rate(&self) -> f64 {
        let assigned = self.assigned.lock().unwrap_or_else(PoisonError::into_inner);
        assigned.rate()
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Assigned {
    fn rate(&self) -> f64 {
        self.0.filter(|(_, until)| Instant::now() < *until).map_or(0.0, |(rate, _)| rate)
    }

    fn follow(&mut self, order: &RateLimitQuotaResponse) {
        for action in &order.bucket_action {
            let Some(BucketAction::QuotaAssignmentAction(assignment)) = &action.bucket_action
            else {
                self.0 = None;
                continue;
            };
            let strategy = assignment.rate_limit_strategy.as_ref();
            let rate = match strategy.and_then(|strategy| strategy.strategy.as_ref()) {
                Some(Strategy::TokenBucket(bucket)) => {
                    let tokens = bucket.tokens_per_fill.map_or(1, |tokens| tokens.value);
                    let seconds = bucket.fill_interval.map_or(1, |time| time.seconds);
                    f64::from(tokens) / seconds as f64
                }
                _ => 0.0,
            };
            let seconds = assignment.assignment_time_to_live.map_or(0, |time| time.seconds);
            let until = Instant::now() + Duration::from_secs(seconds.unsigned_abs());
            self.0 = Some((rate, until));
        }
    }
}

async fn run(server: SocketAddr, assigned: Arc<Mutex<Assigned>>) {
    let mut reported = Instant::now();
    loop {
        // Whatever ends the stream, it goes on with what it has, and connects again.
        let _ = stream(server, &assigned, &mut reported).await;
        sleep(PAUSE).await;
    }
}

async fn stream(
    server: SocketAddr,
    assigned: &Mutex<Assigned>,
    reported: &mut Instant,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut client = RateLimitQuotaServiceClient::connect(format!("http://{server}")).await?;
    let (reports, receiver) = mpsc::unbounded_channel();
    let mut ticks = interval(REPORT);
    // The server may answer only after the first report.
    ticks.tick().await;
    reports.send(report(assigned, reported))?;
    let orders = client.stream_rate_limit_quotas(UnboundedReceiverStream::new(receiver)).await?;
    let mut orders = orders.into_inner();
    loop {
        tokio::select! {
            order = orders.message() => {
                let Some(order) = order? else { return Ok(()) };
                assigned.lock().unwrap_or_else(PoisonError::into_inner).follow(&order);
            }
            _ = ticks.tick() => reports.send(report(assigned, reported))?,
        }
    }
}

/// It uses all that it has, and denies much more.
fn report(assigned: &Mutex<Assigned>, reported: &mut Instant) -> RateLimitQuotaUsageReports {
    let rate = assigned.lock().unwrap_or_else(PoisonError::into_inner).rate();
    let elapsed = reported.elapsed();
    *reported = Instant::now();
    let bucket = [("service".to_owned(), "db".to_owned())].into();
    let usage = BucketQuotaUsage {
        bucket_id: Some(BucketId { bucket }),
        time_elapsed: Some(ProtoDuration { seconds: elapsed.as_secs() as i64, nanos: 0 }),
        num_requests_allowed: (rate * elapsed.as_secs_f64()) as u64,
        num_requests_denied: 5_000,
    };
    RateLimitQuotaUsageReports { domain: "edge".to_owned(), bucket_quota_usages: vec![usage] }
}
