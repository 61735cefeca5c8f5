use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use axum::{BoxError, http};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tonic::body::Body;
use tonic::codegen::tokio_stream::Stream;
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

use super::message::{self, Reported};
use super::quotas::{BUCKETS_AT_ONCE, ReportError, StreamId};
use super::streams::{Message, QuotaStreams};
use super::wire::{AssignmentMessage, Reports};
use crate::capacity::Shared;
use crate::service::Service;

/// The path of the only method.
const PATH: &str = "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas";
/// The largest message, in bytes. Clients choose the values in the ids of buckets, and a message that is too large ends the
/// stream of all of them. While a server answers, an Envoy keeps about 3 MiB of buckets. While none answers, it keeps every
/// bucket.
const LARGEST: usize = 16 << 20;
/// The name of an Envoy, in the metadata of its stream.
const CLIENT: &str = "x-sluicegate-client";
/// The longest name, in bytes.
const LONGEST_NAME: usize = 128;

/// The gRPC service.
pub(super) fn server(service: &Service, shared: &Shared) -> Rlqs {
    Rlqs(QuotaStreams::start(service, shared))
}

/// Answers streams of Envoys.
#[derive(Clone)]
pub(super) struct Rlqs(Arc<QuotaStreams>);

impl NamedService for Rlqs {
    const NAME: &'static str = super::NAME;
}

impl<B> tower_service::Service<http::Request<B>> for Rlqs
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError> + Send> + Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: http::Request<B>) -> Self::Future {
        let rlqs = self.clone();
        Box::pin(async move {
            if call.uri().path() != PATH {
                return Ok(Status::unimplemented("the service has no such method").into_http());
            }
            let mut grpc = Grpc::new(ProstCodec::<AssignmentMessage, Reports>::default())
                .apply_max_message_size_config(Some(LARGEST), None);
            Ok(grpc.streaming(rlqs, call).await)
        })
    }
}

impl StreamingService<Reports> for Rlqs {
    type Response = AssignmentMessage;
    type ResponseStream = Assignments;
    type Future = Ready<Result<Response<Assignments>, Status>>;

    fn call(&mut self, call: Request<Streaming<Reports>>) -> Self::Future {
        ready(self.open(call))
    }
}

impl Rlqs {
    fn open(&self, call: Request<Streaming<Reports>>) -> Result<Response<Assignments>, Status> {
        let name = call.metadata().get(CLIENT).and_then(|name| name.to_str().ok());
        let name = name.filter(|name| (1..=LONGEST_NAME).contains(&name.len()));
        let opened = self.0.open(name).ok_or_else(|| Status::unavailable("the server stops"))?;
        let (id, orders) = opened.map_err(|refused| status(&refused))?;
        let open = Open { streams: Arc::clone(&self.0), id };
        let (ended, end) = oneshot::channel();
        tokio::spawn(listen(open, call.into_inner(), ended));
        Ok(Response::new(Assignments::new(orders, end)))
    }
}

/// A stream that is open. Dropped, it is lost.
struct Open {
    streams: Arc<QuotaStreams>,
    id: StreamId,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.streams.close(self.id);
    }
}

/// Reads reports until the stream ends, or nobody reads assignments any more.
async fn listen(open: Open, mut reports: Streaming<Reports>, mut ended: oneshot::Sender<Status>) {
    loop {
        let message = tokio::select! {
            message = reports.message() => message,
            () = ended.closed() => return,
        };
        let read = match message {
            Ok(None) => return,
            Ok(Some(report)) => read(&open, report).await,
            // It is too long, or no report.
            Err(status) => Err(status),
        };
        if let Err(status) = read {
            open.streams.failed(&status);
            let _ = ended.send(status);
            return;
        }
    }
}

async fn read(open: &Open, report: Reports) -> Result<(), Status> {
    if open.streams.is_behind() {
        return Err(Status::unavailable("clients cannot be written down at the moment"));
    }
    let (mut usages, mut too_large) = (report.usages.into_iter().peekable(), Vec::new());
    loop {
        let mut some = Vec::with_capacity(usages.len().min(BUCKETS_AT_ONCE));
        for usage in usages.by_ref().take(BUCKETS_AT_ONCE) {
            match message::usage(usage).map_err(Status::invalid_argument)? {
                Some(Reported::Usage(bucket, used)) => some.push((bucket, used)),
                Some(Reported::TooLarge(id)) => too_large.push(id),
                None => {}
            }
        }
        open.streams.report(open.id, &report.domain, some).map_err(|refused| status(&refused))?;
        if usages.peek().is_none() {
            open.streams.forget(open.id, too_large);
            open.streams.answer().await;
            return Ok(());
        }
        // Others wait for some buckets, and not for a thousand.
        tokio::task::yield_now().await;
    }
}

fn status(refused: &ReportError) -> Status {
    match refused {
        ReportError::ManyStreams => Status::resource_exhausted(refused.to_string()),
        ReportError::NoDomain | ReportError::OtherDomain => {
            Status::invalid_argument(refused.to_string())
        }
    }
}

/// The assignments of a stream.
pub(super) struct Assignments {
    orders: mpsc::Receiver<Message>,
    /// Why it ends, if not because the server stops.
    end: Option<oneshot::Receiver<Status>>,
}

impl Assignments {
    pub(super) fn new(orders: mpsc::Receiver<Message>, end: oneshot::Receiver<Status>) -> Self {
        Self { orders, end: Some(end) }
    }
}

impl Stream for Assignments {
    type Item = Result<AssignmentMessage, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(Some(Message { assignments, until })) = self.orders.poll_recv(cx) {
            if Instant::now() <= until {
                return Poll::Ready(Some(Ok(assignments)));
            }
            self.orders.close();
            return Poll::Ready(Some(Err(Status::unavailable("the assignment comes too late"))));
        }
        if self.orders.is_closed() {
            let status = self.end.take().and_then(|mut end| end.try_recv().ok());
            return Poll::Ready(status.map(Err));
        }
        Poll::Pending
    }
}
