use http::{HeaderMap, Response};
use sluicegate_core::Cost;
use sluicegate_core::adapter::{Desk, Paid, Reply, Rest};
use sluicegate_core::condition::InFlightGuard;
use sluicegate_core::cost::RunningCost;

/// What a request holds until its response has been sent; dropped, it lets go.
///
/// Boxed where there is such a thing, so that the type of a body does not depend on what holds it.
pub(crate) trait Held: Send + Sync {
    /// The body ends with these.
    fn saw_trailers(&mut self, trailers: &HeaderMap) {
        let _ = trailers;
    }
}

impl Held for InFlightGuard {}

/// A request that was served, until it is settled.
pub(crate) struct Unsettled<D: Desk> {
    paid: Paid<D>,
    /// What the rules are asked about, where they are.
    reply: Option<EndedReply>,
}

impl<D: Desk> Unsettled<D> {
    pub(crate) fn new<B>(paid: Paid<D>, response: &Response<B>) -> Self {
        let reply = (paid.rest() == Rest::Account).then(|| EndedReply::of(response));
        Self { paid, reply }
    }
}

impl<D: Desk + Send + Sync> Held for Unsettled<D> {
    fn saw_trailers(&mut self, trailers: &HeaderMap) {
        if let Some(reply) = &mut self.reply {
            reply.trailers = Some(trailers.clone());
        }
    }
}

impl<D: Desk> Drop for Unsettled<D> {
    fn drop(&mut self) {
        self.paid.end(self.reply.as_ref().map(|reply| reply as &dyn Reply));
    }
}

/// What rules can see of a response whose body has ended.
struct EndedReply {
    status: u16,
    headers: HeaderMap,
    trailers: Option<HeaderMap>,
    cost: Option<u64>,
    running: Option<RunningCost>,
}

impl EndedReply {
    fn of<B>(response: &Response<B>) -> Self {
        Self {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            trailers: None,
            cost: response.extensions().get().map(|Cost(cost)| *cost),
            running: response.extensions().get().cloned(),
        }
    }
}

impl Reply for EndedReply {
    fn status(&self) -> u16 {
        self.status
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        let in_trailers = || self.trailers.as_ref()?.get(name);
        self.headers.get(name).or_else(in_trailers).map(|value| value.as_bytes())
    }

    fn cost(&self) -> Option<u64> {
        self.running.as_ref().map(RunningCost::total).or(self.cost)
    }

    /// What a limit refused was settled with the head.
    fn is_refusal(&self) -> bool {
        false
    }
}
