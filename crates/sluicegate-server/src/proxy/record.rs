//! One line in the access log for each request, and its metrics.

use std::net::SocketAddr;
use std::time::Instant;

use http::{Method, Request, StatusCode, Uri};
use metrics::{Counter, Histogram, counter, histogram};

/// The metrics of requests, looked up once.
#[derive(Clone)]
pub(crate) struct Recorder {
    classes: [Counter; 5],
    seconds: Histogram,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        let class =
            |class: &'static str| counter!("sluicegate_proxy_requests_total", "status" => class);
        Self {
            classes: ["1xx", "2xx", "3xx", "4xx", "5xx"].map(class),
            seconds: histogram!("sluicegate_proxy_request_seconds"),
        }
    }

    pub(crate) fn begin<B>(&self, request: &Request<B>, peer: SocketAddr) -> Record {
        Record {
            recorder: self.clone(),
            method: request.method().clone(),
            uri: request.uri().clone(),
            peer,
            began: Instant::now(),
            status: None,
            bytes: 0,
            is_whole: false,
        }
    }
}

/// A request. It is logged and measured when this is dropped.
pub(crate) struct Record {
    recorder: Recorder,
    method: Method,
    uri: Uri,
    peer: SocketAddr,
    began: Instant,
    status: Option<StatusCode>,
    bytes: u64,
    is_whole: bool,
}

impl Record {
    pub(crate) fn answered(&mut self, status: StatusCode) {
        self.status = Some(status);
        if let Some(class) = self.recorder.classes.get(usize::from(status.as_u16() / 100) - 1) {
            class.increment(1);
        }
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// The body has ended.
    pub(crate) fn ended(&mut self) {
        self.is_whole = true;
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        self.recorder.seconds.record(took);
        // The query may hold secrets, and stays out of the log.
        tracing::info!(
            target: "sluicegate_proxy::access",
            method = %self.method,
            path = self.uri.path(),
            status = self.status.map(|status| status.as_u16()),
            bytes = self.bytes,
            whole = self.is_whole,
            ms = took.as_secs_f64() * 1e3,
            peer = %self.peer,
        );
    }
}
