use std::fmt;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::Error;
use actix_web::body::EitherBody;
use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use sluicegate_core::Memory;
use sluicegate_core::adapter::Admission;
use sluicegate_core::rule::Rule;
use sluicegate_core::store::Store;

use super::future::ResponseFuture;
use crate::body::Body;
use crate::limited::{Inside, Limited};
use crate::view::RequestView;

/// A service behind a [`RateLimit`](crate::RateLimit).
pub struct RateLimitService<I, R, S = Memory> {
    rule: R,
    inside: Rc<Inside<I, S>>,
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
        let view = RequestView::new(request.request());
        match limited.enforcer.admit(&self.rule, &view, || Rc::clone(&self.inside)) {
            Admission::Proceed(paid) => {
                limited.mark(&paid, &request);
                ResponseFuture::running(service.call(request), paid)
            }
            Admission::Refuse(refusal) => ResponseFuture::refused(limited.answer(refusal, request)),
            Admission::Pending(pending) => {
                ResponseFuture::pending(pending, request, Rc::clone(&self.inside))
            }
        }
    }
}

impl<I: fmt::Debug, R, S> fmt::Debug for RateLimitService<I, R, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService").field("inner", self.inner()).finish_non_exhaustive()
    }
}
