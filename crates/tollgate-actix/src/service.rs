use std::fmt;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::body::{BoxBody, EitherBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use actix_web::{Error, HttpMessage};
use tollgate_core::{
    Answer, Charge, Course, Degraded, Memory, Paid, Refusal, Refused, Rule, Store,
};

use crate::future::{Forward, ResponseFuture};
use crate::headers::ActixHeaders;
use crate::middleware::Limited;
use crate::reply::{ActixReply, ErrorReply};
use crate::respond::status;
use crate::view::RequestView;

/// A service behind a [`RateLimit`](crate::RateLimit).
pub struct RateLimitService<I, R, S = Memory> {
    rule: R,
    inside: Rc<Inside<I, S>>,
}

/// What requests under way need: the service, which is called by those that wait when they have
/// waited, and what is done with responses.
pub(crate) struct Inside<I, S> {
    pub(crate) service: I,
    pub(crate) limited: Limited<S>,
}

impl<I, R, S> RateLimitService<I, R, S> {
    pub(crate) fn new(service: I, rule: R, limited: Limited<S>) -> Self {
        Self { rule, inside: Rc::new(Inside { service, limited }) }
    }

    /// The service inside.
    pub fn inner(&self) -> &I {
        &self.inside.service
    }
}

impl<I, R, S, B> Service<ServiceRequest> for RateLimitService<I, R, S>
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    R: for<'a> Rule<RequestView<'a>>,
    S: Store + Clone,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Future = ResponseFuture<I, S>;

    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inside.service.poll_ready(cx)
    }

    fn call(&self, request: ServiceRequest) -> Self::Future {
        let Inside { service, limited } = &*self.inside;
        let policy = &limited.policy;
        let mut charge = Charge::new();
        if let Err(missing) = self.rule.owes(&RequestView::new(request.request()), &mut charge) {
            return ResponseFuture::refused(limited.answer(policy.keyless(missing), request));
        }
        if charge.is_empty() {
            let future = service.call(request);
            return ResponseFuture::running(future, Paid::unknown(), &self.inside);
        }
        let (charge, place) = policy.queue(charge);
        let decision = match policy.store.take(&charge) {
            Answer::Now(decision) => decision,
            Answer::Later(answer) => {
                let forward = Forward::new(request, &self.inside);
                return ResponseFuture::deciding(answer, charge, place, forward);
            }
        };
        match policy.judge(decision, charge) {
            Course::Serve(paid) => {
                limited.mark(&paid, &request);
                ResponseFuture::running(service.call(request), paid, &self.inside)
            }
            Course::Wait(wait, ticket) => {
                ResponseFuture::waiting(wait, ticket, place, Forward::new(request, &self.inside))
            }
            Course::Refuse(refusal) => ResponseFuture::refused(limited.answer(refusal, request)),
        }
    }
}

impl<S> Limited<S> {
    /// Tells the handler what was decided.
    pub(crate) fn mark(&self, paid: &Paid<S>, request: &ServiceRequest)
    where
        S: Store,
    {
        if let (Some(decision), true) = (paid.decision(), self.policy.extensions) {
            request.extensions_mut().insert(decision.clone());
        }
        if paid.is_degraded() {
            request.extensions_mut().insert(Degraded);
        }
    }

    /// Makes the response of a refusal, and tells middleware further out what happened here.
    pub(crate) fn answer(
        &self,
        refusal: Refusal,
        request: ServiceRequest,
    ) -> ServiceResponse<BoxBody> {
        let mut response = self.respond.to(&refusal, request.request());
        if let Refusal::Elsewhere(..) = refusal {
            // Whatever the operator's closure answers, what was asked for is a redirect.
            *response.status_mut() = status(&refusal);
        }
        self.policy.fields.write_refusal(&refusal, &mut ActixHeaders(response.headers_mut()));
        if refusal.gives_back() {
            response.extensions_mut().insert(Refused);
        }
        if let (Some(decision), true) = (refusal.into_decision(), self.policy.extensions) {
            response.extensions_mut().insert(decision);
        }
        request.into_response(response)
    }

    /// The response is known: settles what it cost, and tells the client how it stands.
    pub(crate) fn close<B>(&self, paid: Paid<S>, response: &mut Result<ServiceResponse<B>, Error>)
    where
        S: Store,
    {
        match response {
            Err(error) => {
                paid.close(&ErrorReply(error));
            }
            Ok(response) => {
                let Some(decision) = paid.close(&ActixReply(response)) else { return };
                let headers = &mut ActixHeaders(response.headers_mut());
                self.policy.fields.write_served(&decision, headers);
                if self.policy.extensions {
                    response.response_mut().extensions_mut().insert(decision);
                }
            }
        }
    }
}

impl<I: fmt::Debug, R, S> fmt::Debug for RateLimitService<I, R, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService").field("inner", self.inner()).finish_non_exhaustive()
    }
}
