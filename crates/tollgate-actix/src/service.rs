use std::fmt;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::Error;
use actix_web::body::EitherBody;
use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use tollgate_core::{Answer, Charge, Memory, Rule, Store};

use crate::future::{Forward, ResponseFuture};
use crate::judge::{Judged, Paid};
use crate::middleware::Policy;
use crate::view::RequestView;

/// A service behind a [`RateLimit`](crate::RateLimit).
pub struct RateLimitService<I, R, S = Memory> {
    rule: R,
    limited: Rc<Limited<I, S>>,
}

/// What requests under way need: the service, which is called by those that wait when they have
/// waited, and what is done with responses.
pub(crate) struct Limited<I, S> {
    pub(crate) service: I,
    pub(crate) policy: Policy<S>,
}

impl<I, R, S> RateLimitService<I, R, S> {
    pub(crate) fn new(service: I, rule: R, policy: Policy<S>) -> Self {
        Self { rule, limited: Rc::new(Limited { service, policy }) }
    }

    /// The service inside.
    pub fn inner(&self) -> &I {
        &self.limited.service
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
        self.limited.service.poll_ready(cx)
    }

    fn call(&self, request: ServiceRequest) -> Self::Future {
        let Limited { service, policy } = &*self.limited;
        let mut charge = Charge::new();
        if let Err(missing) = self.rule.owes(&RequestView::new(request.request()), &mut charge) {
            return ResponseFuture::refused(policy.refuse_keyless(missing, request));
        }
        if charge.is_empty() {
            return ResponseFuture::running(service.call(request), Paid::Unknown, &self.limited);
        }
        let place = policy.gate.place();
        if let Some((_, patience)) = &place {
            charge = charge.patient(*patience);
        }
        let place = place.map(|(place, _)| place);
        let decision = match policy.store.take(&charge) {
            Answer::Now(decision) => decision,
            Answer::Later(answer) => {
                let forward = Forward::new(request, &self.limited);
                return ResponseFuture::deciding(answer, charge, place, forward);
            }
        };
        match policy.judge(decision, charge, request) {
            Judged::Forward(request, paid) => {
                ResponseFuture::running(service.call(request), paid, &self.limited)
            }
            Judged::Wait(request, wait, ticket) => {
                ResponseFuture::waiting(wait, ticket, place, Forward::new(request, &self.limited))
            }
            Judged::Answer(response) => ResponseFuture::refused(response),
        }
    }
}

impl<I: fmt::Debug, R, S> fmt::Debug for RateLimitService<I, R, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService").field("inner", self.inner()).finish_non_exhaustive()
    }
}
