use std::fmt;
use std::mem;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::Error;
use actix_web::body::{BoxBody, EitherBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use sluicegate_core::Memory;
use sluicegate_core::adapter::{self, Admission, AsEnforcer, Enforcer, Refusal, Rest, Unsettled};
use sluicegate_core::rule::Rule;
use sluicegate_core::store::Store;

use crate::body::Body;
use crate::future::{Forward, ResponseFuture};
use crate::headers::{ActixExtensions, ActixHead};
use crate::middleware::Limited;
use crate::reply::{ActixReply, ErrorReply, find_line};
use crate::respond::status;
use crate::sleep::TokioTimer;
use crate::view::RequestView;

/// What a request has paid at a middleware.
pub(crate) type Paid<I, S> = adapter::Paid<Rc<Inside<I, S>>>;

/// A request that waits for a middleware's store, or for its turn.
pub(crate) type Pending<I, S> = adapter::Pending<Rc<Inside<I, S>>, TokioTimer>;

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
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    R: for<'a> Rule<RequestView<'a>>,
    S: Store + 'static,
{
    type Response = ServiceResponse<EitherBody<Body<B>>>;
    type Error = Error;
    type Future = ResponseFuture<I, S>;

    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inside.service.poll_ready(cx)
    }

    fn call(&self, request: ServiceRequest) -> Self::Future {
        let Inside { service, limited } = &*self.inside;
        let enforcer = &limited.enforcer;
        let handle = || Rc::clone(&self.inside);
        let view = RequestView::new(request.request());
        let undecided = match enforcer.admit_at_once(&self.rule, &view, handle) {
            Err(undecided) => undecided,
            Ok(paid) => {
                // The usual way, on which nothing large is moved about.
                limited.mark(&paid, &request);
                return ResponseFuture::running(service.call(request), paid);
            }
        };
        match enforcer.admit_otherwise(undecided, handle) {
            Admission::Proceed(paid) => {
                limited.mark(&paid, &request);
                ResponseFuture::running(service.call(request), paid)
            }
            Admission::Refuse(refusal) => ResponseFuture::refused(limited.answer(refusal, request)),
            Admission::Pending(pending) => {
                ResponseFuture::pending(pending, Forward::new(request, &self.inside))
            }
        }
    }
}

impl<S> Limited<S> {
    /// Tells the handler of the decision.
    pub(crate) fn mark<E: AsEnforcer>(&self, paid: &adapter::Paid<E>, request: &ServiceRequest) {
        self.enforcer.mark(paid, &mut ActixExtensions(request));
    }

    /// Makes the response of a refusal.
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
        self.enforcer.write_refusal(refusal, &mut ActixHead::of(&mut response, &self.policies));
        request.into_response(response)
    }
}

/// Settles what the response cost, and tells the client. What waits for the end of the body goes along with the body;
/// an upgraded connection is the body of its response.
pub(crate) fn close<I: 'static, S: Store + 'static, B>(
    paid: &mut Paid<I, S>,
    response: Result<ServiceResponse<B>, Error>,
) -> Result<ServiceResponse<Body<B>>, Error> {
    let mut response = response.inspect_err(|error| {
        // actix-web makes the body of an error by itself, and where is not to be seen from here.
        let reply = ErrorReply(error);
        paid.close(&reply);
        paid.end(Some(&reply));
    })?;
    if paid.close(&ActixReply(&response)) {
        if let Some(inside) = paid.enforcer() {
            let Limited { enforcer, policies, .. } = &inside.limited;
            enforcer.write_served(paid, &mut ActixHead::of(response.response_mut(), policies));
        }
    }
    if paid.rest() == Rest::Nothing {
        return Ok(response.map_body(|_, body| Body::new(body)));
    }
    let paid = mem::replace(paid, Paid::nothing());
    let reply = ActixReply(&response);
    let headers = || response.headers().clone();
    let held = Box::new(Unsettled::new(paid, &reply, || reply.left(), headers, find_line));
    Ok(response.map_body(|_, body| Body::holding(body, Some(held))))
}

impl<I, S: Store> AsEnforcer for Inside<I, S> {
    type Store = S;

    #[inline]
    fn as_enforcer(&self) -> &Enforcer<S> {
        &self.limited.enforcer
    }
}

impl<I: fmt::Debug, R, S> fmt::Debug for RateLimitService<I, R, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService").field("inner", self.inner()).finish_non_exhaustive()
    }
}
