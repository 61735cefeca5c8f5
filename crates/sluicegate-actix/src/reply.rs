use actix_web::dev::ServiceResponse;
use actix_web::http::header::HeaderMap;
use actix_web::{Error, HttpMessage};
use sluicegate_core::Cost;
use sluicegate_core::adapter::{Desk, Paid, Refused, Reply, Rest};
use sluicegate_core::cost::RunningCost;

/// What rules can see of a response.
pub(crate) struct ActixReply<'a, B>(pub(crate) &'a ServiceResponse<B>);

impl<B> ActixReply<'_, B> {
    /// From the response's extensions, else from the request's, which extractors and middleware reach
    /// more easily.
    fn left<T: Clone + 'static>(&self) -> Option<T> {
        let in_response = self.0.response().extensions().get().cloned();
        in_response.or_else(|| self.0.request().extensions().get().cloned())
    }
}

impl<B> Reply for ActixReply<'_, B> {
    fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.0.headers().get(name).map(|value| value.as_bytes())
    }

    fn cost(&self) -> Option<u64> {
        let running = self.left::<RunningCost>().map(|running| running.total());
        running.or_else(|| self.left().map(|Cost(cost)| cost))
    }

    fn is_running(&self) -> bool {
        self.left::<RunningCost>().is_some()
    }

    fn is_refusal(&self) -> bool {
        self.0.response().extensions().contains::<Refused>()
    }
}

/// What rules can see of an error that a middleware further in returned: in actix-web it is a response
/// that has not been written yet.
pub(crate) struct ErrorReply<'a>(pub(crate) &'a Error);

impl Reply for ErrorReply<'_> {
    fn status(&self) -> u16 {
        self.0.as_response_error().status_code().as_u16()
    }

    fn header(&self, _: &str) -> Option<&[u8]> {
        None
    }

    fn cost(&self) -> Option<u64> {
        None
    }

    fn is_refusal(&self) -> bool {
        false
    }
}

/// A request that was served, until it is settled: when this is dropped.
pub(crate) struct Unsettled<D: Desk> {
    paid: Paid<D>,
    /// What the rules are asked about, where they are.
    reply: Option<EndedReply>,
}

impl<D: Desk> Unsettled<D> {
    pub(crate) fn new<B>(paid: Paid<D>, response: &ServiceResponse<B>) -> Self {
        let reply = (paid.rest() == Rest::Account).then(|| EndedReply::of(&ActixReply(response)));
        Self { paid, reply }
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
    cost: Option<u64>,
    running: Option<RunningCost>,
}

impl EndedReply {
    fn of<B>(reply: &ActixReply<'_, B>) -> Self {
        Self {
            status: reply.status(),
            headers: reply.0.headers().clone(),
            cost: reply.cost(),
            running: reply.left(),
        }
    }
}

impl Reply for EndedReply {
    fn status(&self) -> u16 {
        self.status
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.get(name).map(|value| value.as_bytes())
    }

    fn cost(&self) -> Option<u64> {
        self.running.as_ref().map(RunningCost::total).or(self.cost)
    }

    /// What a limit refused was settled with the head.
    fn is_refusal(&self) -> bool {
        false
    }
}
