use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_service_server::{
    RateLimitQuotaService, RateLimitQuotaServiceServer,
};
use envoy_types::pb::envoy::service::rate_limit_quota::v3::{
    RateLimitQuotaResponse, RateLimitQuotaUsageReports,
};
use tokio::sync::{mpsc, oneshot};
use tonic::codegen::tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

use super::desk::Desk;
use super::message;
use super::quotas::{Refused, StreamId};
use crate::capacity::Shared;
use crate::service::Service;

/// The largest message, in bytes: about 10,000 buckets of Envoy.
const LARGEST: usize = 1 << 20;
/// The name of an Envoy, in the metadata of its stream.
const CLIENT: &str = "x-sluicegate-client";
/// The longest name, in bytes.
const LONGEST_NAME: usize = 128;

/// The gRPC service.
pub(super) fn server(service: &Service, shared: &Shared) -> RateLimitQuotaServiceServer<Rlqs> {
    let rlqs = Rlqs(Desk::start(service, shared));
    RateLimitQuotaServiceServer::new(rlqs).max_decoding_message_size(LARGEST)
}

/// Answers streams of Envoys.
pub(super) struct Rlqs(Arc<Desk>);

#[tonic::async_trait]
impl RateLimitQuotaService for Rlqs {
    type StreamRateLimitQuotasStream = Assignments;

    async fn stream_rate_limit_quotas(
        &self,
        call: Request<Streaming<RateLimitQuotaUsageReports>>,
    ) -> Result<Response<Assignments>, Status> {
        let name = call.metadata().get(CLIENT).and_then(|name| name.to_str().ok());
        let name = name.filter(|name| (1..=LONGEST_NAME).contains(&name.len()));
        let opened = self.0.open(name).ok_or_else(|| Status::unavailable("the server stops"))?;
        let (id, orders) = opened.map_err(|refused| status(&refused))?;
        let open = Open { desk: Arc::clone(&self.0), id };
        let (ended, end) = oneshot::channel();
        tokio::spawn(listen(open, call.into_inner(), ended));
        Ok(Response::new(Assignments { orders, end: Some(end) }))
    }
}

/// A stream that is open. Dropped, it is lost.
struct Open {
    desk: Arc<Desk>,
    id: StreamId,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.desk.close(self.id);
    }
}

/// Reads reports until the stream ends, or nobody reads assignments any more.
async fn listen(
    open: Open,
    mut reports: Streaming<RateLimitQuotaUsageReports>,
    mut ended: oneshot::Sender<Status>,
) {
    loop {
        let message = tokio::select! {
            message = reports.message() => message,
            () = ended.closed() => return,
        };
        let read = match message {
            Ok(None) => return,
            Ok(Some(report)) => read(&open, report),
            // It is too long, or no report.
            Err(status) => Err(status),
        };
        if let Err(status) = read {
            let _ = ended.send(status);
            return;
        }
    }
}

fn read(open: &Open, report: RateLimitQuotaUsageReports) -> Result<(), Status> {
    let usages = report.bucket_quota_usages.into_iter().map(message::usage);
    let usages = usages.collect::<Result<Vec<_>, _>>().map_err(Status::invalid_argument)?;
    let usages = usages.into_iter().flatten().collect();
    open.desk.report(open.id, &report.domain, usages).map_err(|refused| status(&refused))
}

fn status(refused: &Refused) -> Status {
    match refused {
        Refused::ManyStreams => Status::resource_exhausted(refused.to_string()),
        Refused::NoDomain | Refused::OtherDomain => Status::invalid_argument(refused.to_string()),
    }
}

/// The assignments of a stream.
pub(super) struct Assignments {
    orders: mpsc::Receiver<RateLimitQuotaResponse>,
    /// Why it ends, if not because the server stops.
    end: Option<oneshot::Receiver<Status>>,
}

impl Stream for Assignments {
    type Item = Result<RateLimitQuotaResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(Some(orders)) = self.orders.poll_recv(cx) {
            return Poll::Ready(Some(Ok(orders)));
        }
        if self.orders.is_closed() {
            let status = self.end.take().and_then(|mut end| end.try_recv().ok());
            return Poll::Ready(status.map(Err));
        }
        Poll::Pending
    }
}
