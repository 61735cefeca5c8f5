use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header;
use pin_project_lite::pin_project;
use sluicegate::key::KeyBuf;
use sluicegate_throttle::announce::Announcement;
use tower_service::Service;

use super::history::History;
use super::layer::{AdaptiveThrottleLayer, Shared};
use super::server::{Ended, admits, announced};
use crate::call::{Stage, watch};
use crate::error::{BoxError, Refused};
use crate::layered::Layered;
use crate::outgoing::{self, OutgoingRequest, OutgoingResponse, OutgoingView};
use crate::table::RowKey;

impl<S, R> Service<R> for Layered<S, AdaptiveThrottleLayer>
where
    S: Service<R, Error: Into<BoxError>, Response: OutgoingResponse>,
    R: OutgoingRequest,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let shared = &self.layer.0;
        let key = shared.key(&request);
        let state = match shared.admit(key, &request, fastrand::f64()) {
            Err(refused) => State::Refused { error: Some(refused) },
            Ok(now) => {
                let (response, stage) = watch(|| self.inner.call(request));
                let flight = Flight::new(shared.clone(), key, now, stage);
                State::Sent { flight, response }
            }
        };
        ResponseFuture { state }
    }
}

/// A request is sent in each second, whatever has become of the others.
const PROBE: u64 = 1_000_000;

/// A request that its caller gives up says something of the server if it was under way, or the server was silent, for
/// this many times as long as the server usually takes, and this many microseconds. Callers that hang up earlier have
/// changed their minds.
const TIMES: u64 = 2;
const LEAST: u64 = 10_000;

/// The same for a server that has not accepted anything yet, in microseconds.
const UNKNOWN: u64 = 50_000;

impl Shared {
    /// Whom a request is counted with. Requests without the key are counted together.
    fn key(&self, request: &impl OutgoingRequest) -> RowKey {
        let key = KeyBuf::from_view(&self.settings.key, &OutgoingView::new(request));
        self.table.key(&key.unwrap_or_default())
    }

    /// Whether a request may be sent, by a random number from 0 to 1.
    fn admit(
        &self,
        key: RowKey,
        request: &impl OutgoingRequest,
        random: f64,
    ) -> Result<u64, Refused> {
        let now = self.settings.clock.now();
        let context = outgoing::Context::of(request);
        let admitted = self.table.with(key, now, |server| {
            let history =
                server.history.get_or_insert_with(|| Box::new(History::new(self.settings.window)));
            let rejection = history.rejection(now, self.settings.k).min(self.settings.most);
            let wants = history.requests();
            if let Some((level, until)) = &server.announced {
                if now < *until && !admits(level, context.as_ref()) {
                    // It says nothing of the requests of other classes.
                    let wait = Duration::from_micros(until - now);
                    return Err(Refused::new("its server sheds requests of its class", Some(wait)));
                }
            }
            // Whatever the share: a program of one request a second would not see for minutes that the server is back.
            let is_probe = now.saturating_sub(server.sent) >= PROBE;
            if wants < self.settings.from || random >= rejection || is_probe {
                server.sent = now;
                return Ok(now);
            }
            // What is held back counts as wanted, or the share would fall as soon as it is obeyed.
            history.request(now);
            Err(Refused::new("its server rejects more than it accepts", None))
        });
        // Without a row, nothing is known.
        admitted.unwrap_or(Ok(now))
    }

    /// Notes that a request that was sent at this instant is not answered yet.
    fn under_way(&self, key: RowKey, sent: u64) {
        self.table.with_known(key, |server| {
            if server.silent == 0 {
                server.silent = sent;
            }
        });
    }

    /// Notes how a request ended that was sent at this instant.
    fn ended(&self, key: RowKey, sent: u64, ended: Ended, announced: Option<Announcement>) {
        let now = self.settings.clock.now();
        self.table.with_known(key, |server| {
            server.silent = 0;
            server.note(now, sent, ended);
            server.announced = announced.map(|level| {
                let until = now.saturating_add(level.lasts().as_micros() as u64);
                (level, until)
            });
        });
    }

    /// Notes that the caller of a request that was sent at this instant has given it up.
    fn given_up(&self, key: RowKey, sent: u64) {
        let now = self.settings.clock.now();
        self.table.with_known(key, |server| {
            let patience = match server.usual {
                0 => UNKNOWN,
                usual => (TIMES * usual).max(LEAST),
            };
            let since = if server.silent == 0 { sent } else { sent.min(server.silent) };
            if now.saturating_sub(since) >= patience {
                server.note(now, sent, Ended::Rejected);
            }
        });
    }
}

pin_project! {
    /// The response, or [`Refused`].
    pub struct ResponseFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        Sent { flight: Flight, #[pin] response: F },
        Refused { error: Option<Refused> },
    }
}

impl<F, R, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<R, E>>,
    R: OutgoingResponse,
    E: Into<BoxError>,
{
    type Output = Result<R, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::Refused { error } => {
                Poll::Ready(Err(error.take().expect("polled after it was ready").into()))
            }
            StateProj::Sent { flight, response } => {
                let (result, stage) = watch(|| response.poll(cx));
                if stage != Stage::Silent {
                    flight.is_at(stage);
                }
                let Poll::Ready(result) = result else {
                    flight.is_under_way();
                    return Poll::Pending;
                };
                let result = result.map_err(Into::into);
                match &result {
                    Ok(response) => {
                        flight.ended(judge(response), announced(response.headers()));
                    }
                    Err(error) if Refused::find(&**error).is_some() => flight.was_held_back(),
                    Err(_) => flight.ended(Ended::Rejected, None),
                }
                Poll::Ready(result)
            }
        }
    }
}

/// Rejected are 429, 502, 503, 504, 403 that says when to come back, and `RESOURCE_EXHAUSTED` and `UNAVAILABLE` of gRPC.
fn judge(response: &impl OutgoingResponse) -> Ended {
    let headers = response.headers();
    let grpc = headers.get("grpc-status");
    let status = response.status().as_u16();
    let is_rejected = matches!(status, 429 | 502 | 503 | 504)
        || (status == 403 && headers.contains_key(header::RETRY_AFTER))
        || grpc.is_some_and(|status| status == "8" || status == "14");
    if is_rejected { Ended::Rejected } else { Ended::Accepted }
}

impl<F> fmt::Debug for ResponseFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseFuture")
    }
}

/// A request on its way to the server. Dropped before it has ended, its caller has given it up.
#[derive(Debug)]
pub(super) struct Flight {
    shared: Arc<Shared>,
    /// Keys are long, and futures are moved.
    key: RowKey,
    /// When it left; `None` while a layer further in holds it back, and when it has ended.
    sent: Option<u64>,
    /// The server was noted as silent.
    is_noted: bool,
}

impl Flight {
    pub(super) fn new(shared: Arc<Shared>, key: RowKey, now: u64, stage: Stage) -> Self {
        let sent = (stage != Stage::Held).then_some(now);
        Self { shared, key, sent, is_noted: false }
    }

    /// Notes what the layers further in say.
    pub(super) fn is_at(&mut self, stage: Stage) {
        match stage {
            Stage::Held => (self.sent, self.is_noted) = (None, false),
            Stage::Silent | Stage::Left => {
                self.sent.get_or_insert_with(|| self.shared.settings.clock.now());
            }
        }
    }

    /// Notes that it is not answered at once. Only now: what a layer further in refuses is never sent.
    fn is_under_way(&mut self) {
        let Some(sent) = self.sent else { return };
        if !mem::replace(&mut self.is_noted, true) {
            self.shared.under_way(self.key, sent);
        }
    }

    /// Notes how it ended.
    pub(super) fn ended(&mut self, ended: Ended, announced: Option<Announcement>) {
        let sent = self.sent.take().unwrap_or_else(|| self.shared.settings.clock.now());
        self.shared.ended(self.key, sent, ended, announced);
    }

    /// Notes that it was not sent.
    pub(super) const fn was_held_back(&mut self) {
        self.sent = None;
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(sent) = self.sent.take() {
            self.shared.given_up(self.key, sent);
        }
    }
}
