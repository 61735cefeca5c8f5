use std::fmt;
use std::mem;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::body::{BoxBody, EitherBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use actix_web::{Error, HttpMessage};
use sluicegate_core::adapter::{
    Answer, Charge, Course, Debit, Desk, Field, Hold, Known, Paid, Policy, Receipt, Refusal,
    Refused, Rest, is_stored_for_others,
};
use sluicegate_core::response::Degraded;
use sluicegate_core::rule::Rule;
use sluicegate_core::store::{Store, Ticket};
use sluicegate_core::{Fields, Memory};

use crate::body::Body;
use crate::future::{Forward, ResponseFuture};
use crate::headers::{ActixHeaders, name};
use crate::middleware::Limited;
use crate::reply::{ActixReply, ErrorReply, Unsettled};
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
        let policy = &limited.policy;
        let mut charge = Charge::new();
        if let Err(missing) = self.rule.charge(&RequestView::new(request.request()), &mut charge) {
            return ResponseFuture::refused(limited.answer(policy.keyless(missing), request));
        }
        if charge.is_empty() {
            return ResponseFuture::running(service.call(request), Paid::unknown());
        }
        let place = policy.queue(&mut charge);
        let answer = policy.store.take(&charge);
        if let Some(outcome) = answer.at_once() {
            // The usual way, on which nothing large is moved about.
            policy.admitted(&charge, outcome);
            let paid = Paid::charged(Rc::clone(&self.inside), &mut charge, outcome);
            limited.mark(&paid, &request);
            return ResponseFuture::running(service.call(request), paid);
        }
        let outcome = match answer {
            Answer::Now(outcome) => outcome,
            Answer::Later(answer) => {
                let forward = Forward::new(request, &self.inside);
                return ResponseFuture::deciding(answer, charge, place, forward);
            }
        };
        match policy.judge(outcome, &charge, place) {
            Course::Serve(served) => {
                let paid = served.paid(&mut charge, || Rc::clone(&self.inside));
                limited.mark(&paid, &request);
                ResponseFuture::running(service.call(request), paid)
            }
            Course::Wait(wait, outcome, place) => {
                let ticket = Ticket::new(Rc::clone(&self.inside), charge, outcome);
                ResponseFuture::waiting(wait, ticket, place, Forward::new(request, &self.inside))
            }
            Course::Refuse(refusal) => ResponseFuture::refused(limited.answer(refusal, request)),
        }
    }
}

impl<S> Limited<S> {
    /// Tells the handler what was decided.
    pub(crate) fn mark<T: Desk>(&self, paid: &Paid<T>, request: &ServiceRequest) {
        if self.policy.extensions {
            if let Some(decision) = paid.decision() {
                request.extensions_mut().insert(decision);
            }
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

    /// Tells the client how it stands, and middleware further out what was decided.
    fn tell<T: Desk, B>(&self, paid: &Paid<T>, response: &mut ServiceResponse<B>) {
        let Policy { fields, extensions, .. } = self.policy;
        if fields == Fields::NONE && !extensions {
            return;
        }
        if fields.is_draft() && !extensions && self.tell_at_once(paid, response.headers_mut()) {
            return;
        }
        let Some(decision) = paid.decision() else { return };
        fields.write_served(&decision, &mut ActixHeaders(response.headers_mut()));
        if extensions {
            response.response_mut().extensions_mut().insert(decision);
        }
    }

    /// The usual fields of the usual charge: half of that is written already.
    fn tell_at_once<T: Desk>(&self, paid: &Paid<T>, headers: &mut HeaderMap) -> bool {
        // Somebody else has said when to come back: no window announced may end after that.
        let is_told =
            headers.contains_key(RETRY_AFTER) || is_stored_for_others(&ActixHeaders(&mut *headers));
        paid.tell(|at, line| {
            if let (Ok(line), false) = (HeaderValue::from_str(line), is_told) {
                headers.append(name(Field::RateLimitPolicy), self.policies[at].clone());
                headers.append(name(Field::RateLimit), line);
            }
        })
    }
}

/// The response is known: settles what it cost, and tells of it. What waits for the end of its body goes
/// along with that; an upgraded connection is the body of its response.
pub(crate) fn close<I: 'static, S: Store + 'static, B>(
    paid: &mut Paid<Rc<Inside<I, S>>>,
    response: Result<ServiceResponse<B>, Error>,
) -> Result<ServiceResponse<Body<B>>, Error> {
    let mut response = response.inspect_err(|error| {
        // actix-web makes the body of an error by itself, and where is not to be seen from here.
        let reply = ErrorReply(error);
        paid.close(&reply);
        paid.end(Some(&reply));
    })?;
    if paid.close(&ActixReply(&response)) {
        if let Some(inside) = paid.desk() {
            inside.limited.tell(paid, &mut response);
        }
    }
    if paid.rest() == Rest::Nothing {
        return Ok(response.map_body(|_, body| Body::new(body)));
    }
    let paid = mem::replace(paid, Paid::unknown());
    let held = Box::new(Unsettled::new(paid, &response));
    Ok(response.map_body(|_, body| Body::holding(body, Some(held))))
}

impl<I, S: Store> Desk for Inside<I, S> {
    fn known(&self) -> &[Known] {
        &self.limited.policy.known
    }

    fn hold(&self) -> Hold {
        self.limited.policy.hold
    }
}

/// Requests are settled through what they hold anyway.
impl<I, S: Store> Store for Inside<I, S> {
    type Future = S::Future;

    fn take(&self, charge: &Charge) -> Answer<S::Future> {
        self.limited.policy.store.take(charge)
    }

    fn peek(&self, charge: &Charge) -> Answer<S::Future> {
        self.limited.policy.store.peek(charge)
    }

    fn reset(&self, charge: &Charge) -> Answer<S::Future> {
        self.limited.policy.store.reset(charge)
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        self.limited.policy.store.settle(debit, receipt, spent);
    }
}

impl<I: fmt::Debug, R, S> fmt::Debug for RateLimitService<I, R, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService").field("inner", self.inner()).finish_non_exhaustive()
    }
}
