use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http::request::Parts;

use super::hold_until::HoldUntil;
use super::requests::Requests;
use super::respond::Respond;
use super::settings::Settings;
use super::shared::Shared;
use super::when_shed::WhenShed;
use crate::scheduler::Shed;

/// Lets requests through as a [`Throttle`](super::Throttle) starts them: a layer of tower (and so of axum, with the
/// feature `axum`), and with the feature `actix` a middleware of actix-web.
///
/// The body of a request is not read, and the service inside is not made ready, before the request has left the queue.
/// A request that is dropped while it waits frees its place at once. Where the capacity is a rate, or requests have
/// deadlines, tokio's timers start and answer what waits; where there are none, a thread does.
#[must_use]
pub struct ThrottleLayer<R = Requests> {
    pub(super) settings: Settings<R>,
}

impl<R> ThrottleLayer<R> {
    pub(super) fn new(shared: Arc<Shared>, requests: R) -> Self {
        let (respond, when_shed) = (Respond::default(), WhenShed::default());
        let hold_until = HoldUntil::Body;
        let announces = false;
        Self { settings: Settings { shared, requests, respond, when_shed, hold_until, announces } }
    }

    fn map<Q>(self, change: impl FnOnce(R) -> Q) -> ThrottleLayer<Q> {
        let Settings { shared, requests, respond, when_shed, hold_until, announces } =
            self.settings;
        let requests = change(requests);
        let settings = Settings { shared, requests, respond, when_shed, hold_until, announces };
        ThrottleLayer { settings }
    }

    /// What happens to requests that are shed: they are refused by default.
    pub fn when_shed(mut self, when_shed: WhenShed) -> Self {
        self.settings.when_shed = when_shed;
        self
    }

    /// Makes the response of requests that are refused: a page of your own, a redirect that depends on the request.
    /// `Retry-After` (but on redirects) and `Cache-Control: no-store` are added where it does not have them.
    pub fn respond_with(
        mut self,
        respond: impl Fn(&Shed, &Parts) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.settings.respond = Respond::with(respond);
        self
    }

    /// Adds the [level of admission](crate::announce) to every response, so that callers need not send what would be
    /// shed. It is left out of responses that caches may store for other clients. Off by default: it tells how busy
    /// the service is.
    pub const fn announce(mut self) -> Self {
        self.settings.announces = true;
        self
    }

    /// Until when a request counts as running; until its body has ended by default.
    pub fn hold_until(mut self, hold_until: HoldUntil) -> Self {
        self.settings.hold_until = hold_until;
        self
    }
}

impl<C, P, F, D, X, N> ThrottleLayer<Requests<C, P, F, D, X, N>> {
    /// How critical each request is: a [`Class`](crate::Class), [`class_when`](super::class_when),
    /// [`ClassHeader`](super::ClassHeader) or [`class_fn`](super::class_fn). By default, all are of the lowest class.
    pub fn criticality<C2>(self, class: C2) -> ThrottleLayer<Requests<C2, P, F, D, X, N>> {
        self.map(|Requests { predict_by, fair_by, deadline, exempt, partition, keys, .. }| {
            Requests { class, predict_by, fair_by, deadline, exempt, partition, keys }
        })
    }

    /// Predicts the cost of a request from requests with the same key. The default key is method and route. A
    /// plain tower service knows no routes: there, name another key, or all requests are predicted together. Use a key
    /// that clients cannot choose freely. Requests without the key are expected to cost the mean of their class.
    pub fn predict_by<P2>(self, predict_by: P2) -> ThrottleLayer<Requests<C, P2, F, D, X, N>> {
        self.map(|Requests { class, fair_by, deadline, exempt, partition, keys, .. }| Requests {
            class,
            predict_by,
            fair_by,
            deadline,
            exempt,
            partition,
            keys,
        })
    }

    /// Serves requests of one class fairly between the values of this key, such as the customer.
    pub fn fair_by<F2>(self, fair_by: F2) -> ThrottleLayer<Requests<C, P, F2, D, X, N>> {
        self.map(|Requests { class, predict_by, deadline, exempt, partition, keys, .. }| Requests {
            class,
            predict_by,
            fair_by,
            deadline,
            exempt,
            partition,
            keys,
        })
    }

    /// Sheds requests that cannot be finished in time: a [`Duration`](std::time::Duration),
    /// [`DeadlineHeader`](super::DeadlineHeader) or [`GrpcTimeout`](super::GrpcTimeout).
    pub fn deadline<D2>(self, deadline: D2) -> ThrottleLayer<Requests<C, P, F, D2, X, N>> {
        self.map(|Requests { class, predict_by, fair_by, exempt, partition, keys, .. }| Requests {
            class,
            predict_by,
            fair_by,
            deadline,
            exempt,
            partition,
            keys,
        })
    }

    /// Lets requests such as health checks pass at once and uncounted, if this condition certainly holds for them.
    pub fn exempt<X2>(self, exempt: X2) -> ThrottleLayer<Requests<C, P, F, D, X2, N>> {
        self.map(|Requests { class, predict_by, fair_by, deadline, partition, keys, .. }| {
            Requests { class, predict_by, fair_by, deadline, exempt, partition, keys }
        })
    }

    /// Which [partition](super::ThrottleBuilder::partition) each request belongs to: a [`Partition`](super::Partition)
    /// for all, or [`partition_when`](super::partition_when). By default, no request belongs to any.
    pub fn partition_by<N2>(self, partition: N2) -> ThrottleLayer<Requests<C, P, F, D, X, N2>> {
        self.map(|Requests { class, predict_by, fair_by, deadline, exempt, keys, .. }| Requests {
            class,
            predict_by,
            fair_by,
            deadline,
            exempt,
            partition,
            keys,
        })
    }
}

impl<R: Clone> Clone for ThrottleLayer<R> {
    fn clone(&self) -> Self {
        Self { settings: self.settings.clone() }
    }
}

impl<R: fmt::Debug> fmt::Debug for ThrottleLayer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThrottleLayer").field("requests", &self.settings.requests).finish()
    }
}
