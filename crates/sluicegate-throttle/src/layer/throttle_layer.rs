use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use sluicegate_core::key::View;

use super::dispatch::Dispatch;
use super::in_service::{HoldUntil, InService};
use super::nesting::{InsideGuard, StartMark};
use super::refusal::{RespondFn, WhenShed, announce};
use super::requests::{Describe, Requests};
use super::shared::Shared;
use crate::scheduler::{Shed, ShedReason};

/// Lets requests through as a [`Throttle`](super::Throttle) starts them: a layer of tower (and so of axum, with the
/// feature `axum`), and with the feature `actix` a middleware of actix-web.
///
/// The body of a request is not read, and the service inside is not made ready, before the request has left the queue.
/// A request that is dropped while it waits frees its place at once. Where the capacity is a rate, or requests have
/// deadlines, tokio's timers start and answer what waits; where there are none, a thread does.
#[derive(Clone)]
#[must_use]
pub struct ThrottleLayer<R = Requests> {
    pub(super) shared: Arc<Shared>,
    requests: R,
    /// Makes the response of a request that is refused, where the operator has given a function.
    pub(super) respond: Option<Arc<RespondFn>>,
    when_shed: WhenShed,
    pub(super) hold_until: HoldUntil,
    announces: bool,
}

impl<R> ThrottleLayer<R> {
    pub(super) fn new(shared: Arc<Shared>, requests: R) -> Self {
        let (when_shed, hold_until) = (WhenShed::default(), HoldUntil::Body);
        Self { shared, requests, respond: None, when_shed, hold_until, announces: false }
    }

    /// The layer without what it reads of requests, and that.
    fn split(self) -> (ThrottleLayer<()>, R) {
        let Self { shared, requests, respond, when_shed, hold_until, announces } = self;
        let layer =
            ThrottleLayer { shared, requests: (), respond, when_shed, hold_until, announces };
        (layer, requests)
    }

    /// What happens to requests that are shed: they are refused by default.
    pub fn when_shed(mut self, when_shed: WhenShed) -> Self {
        self.when_shed = when_shed;
        self
    }

    /// Makes the response of requests that are refused: a page of your own, a redirect that depends on the request.
    /// `Retry-After` (but on redirects) and `Cache-Control: no-store` are added where it does not have them.
    pub fn respond_with(
        mut self,
        respond: impl Fn(&Shed, &Parts) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.respond = Some(Arc::new(respond));
        self
    }

    /// Adds the [level of admission](crate::announce) to every response, so that callers need not send what would be
    /// shed. It is left out of responses that caches may store for other clients. Off by default: it tells how busy
    /// the service is.
    pub const fn announce(mut self) -> Self {
        self.announces = true;
        self
    }

    /// Until when a request counts as running; until its body has ended by default.
    pub fn hold_until(mut self, hold_until: HoldUntil) -> Self {
        self.hold_until = hold_until;
        self
    }

    /// The throttle whose level of admission responses carry, if they do.
    pub(super) fn announcing(&self) -> Option<Arc<Shared>> {
        self.announces.then(|| Arc::clone(&self.shared))
    }

    /// Decides about a request.
    #[inline(always)]
    pub(super) fn admit<V: View>(&self, view: &V) -> Dispatch
    where
        R: Describe<V>,
    {
        if InsideGuard::is_inside(&self.shared) || StartMark::is_in(view, &self.shared) {
            return Dispatch::Start(InService::UNCOUNTED);
        }
        match self.requests.describe(view, &self.shared.classes) {
            None => Dispatch::Start(InService::UNCOUNTED),
            Some(described) => self.or_degraded(self.shared.admit(&described)),
        }
    }

    /// What to do with a request whose wait is over.
    pub(super) fn waited(&self, result: Result<InService, Shed>) -> Dispatch {
        self.or_degraded(result.map_or_else(Dispatch::Refuse, Dispatch::Start))
    }

    /// The response of a request that is [refused](WhenShed::response).
    pub(super) fn response(
        &self,
        shed: &Shed,
        content_type: Option<&[u8]>,
        request: impl FnOnce() -> Parts,
    ) -> Response<Bytes> {
        let respond = self.respond.as_deref();
        let mut response = self.when_shed.response(respond, shed, content_type, request);
        if let Some(shared) = self.announcing() {
            announce(&shared, response.headers_mut());
        }
        response
    }

    /// Instead of a refusal, serves less if there is a place for that.
    fn or_degraded(&self, dispatch: Dispatch) -> Dispatch {
        // Nobody waits for the answer to a request whose deadline has passed.
        match &dispatch {
            Dispatch::Refuse(shed) if shed.reason != ShedReason::Missed => {
                let permit = self.when_shed.permit();
                permit.map_or(dispatch, |permit| {
                    Dispatch::Start(InService::degraded(&self.shared, permit))
                })
            }
            _ => dispatch,
        }
    }
}

impl<C, P, F, D, X, N> ThrottleLayer<Requests<C, P, F, D, X, N>> {
    /// How critical each request is: a [`Class`](crate::Class), [`class_when`](super::class_when),
    /// [`ClassHeader`](super::ClassHeader) or [`class_fn`](super::class_fn). By default, all are of the lowest class.
    pub fn criticality<C2>(self, class: C2) -> ThrottleLayer<Requests<C2, P, F, D, X, N>> {
        let (to, Requests { predict_by, fair_by, deadline, exempt, partition, keys, .. }) =
            self.split();
        to.read(Requests { class, predict_by, fair_by, deadline, exempt, partition, keys })
    }

    /// Predicts the cost of a request from requests with the same key. The default key is method and route. A
    /// plain tower service knows no routes: there, name another key, or all requests are predicted together. Use a key
    /// that clients cannot choose freely. Requests without the key are predicted together, as if they had the same one.
    pub fn predict_by<P2>(self, predict_by: P2) -> ThrottleLayer<Requests<C, P2, F, D, X, N>> {
        let (to, Requests { class, fair_by, deadline, exempt, partition, keys, .. }) = self.split();
        to.read(Requests { class, predict_by, fair_by, deadline, exempt, partition, keys })
    }

    /// Serves requests of one class fairly between the values of this key, such as the customer.
    pub fn fair_by<F2>(self, fair_by: F2) -> ThrottleLayer<Requests<C, P, F2, D, X, N>> {
        let (to, Requests { class, predict_by, deadline, exempt, partition, keys, .. }) =
            self.split();
        to.read(Requests { class, predict_by, fair_by, deadline, exempt, partition, keys })
    }

    /// Sheds requests that cannot be finished in time: a [`Duration`](std::time::Duration) or a
    /// [`DeadlineHeader`](super::DeadlineHeader).
    pub fn deadline<D2>(self, deadline: D2) -> ThrottleLayer<Requests<C, P, F, D2, X, N>> {
        let (to, Requests { class, predict_by, fair_by, exempt, partition, keys, .. }) =
            self.split();
        to.read(Requests { class, predict_by, fair_by, deadline, exempt, partition, keys })
    }

    /// Lets requests such as health checks pass at once and uncounted, if this condition certainly holds for them.
    pub fn exempt<X2>(self, exempt: X2) -> ThrottleLayer<Requests<C, P, F, D, X2, N>> {
        let (to, Requests { class, predict_by, fair_by, deadline, partition, keys, .. }) =
            self.split();
        to.read(Requests { class, predict_by, fair_by, deadline, exempt, partition, keys })
    }

    /// Which [partition](super::ThrottleBuilder::partition) each request belongs to: a [`Partition`](super::Partition)
    /// for all, or [`partition_when`](super::partition_when). By default, no request belongs to any.
    pub fn partition_by<N2>(self, partition: N2) -> ThrottleLayer<Requests<C, P, F, D, X, N2>> {
        let (to, Requests { class, predict_by, fair_by, deadline, exempt, keys, .. }) =
            self.split();
        to.read(Requests { class, predict_by, fair_by, deadline, exempt, partition, keys })
    }
}

impl ThrottleLayer<()> {
    fn read<R>(self, requests: R) -> ThrottleLayer<R> {
        let Self { shared, respond, when_shed, hold_until, announces, .. } = self;
        ThrottleLayer { shared, requests, respond, when_shed, hold_until, announces }
    }
}

impl<R: fmt::Debug> fmt::Debug for ThrottleLayer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThrottleLayer").field("requests", &self.requests).finish_non_exhaustive()
    }
}
