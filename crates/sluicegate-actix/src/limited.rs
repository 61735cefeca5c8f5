//! What requests under way need of their middleware, and what is done with responses.

use std::rc::Rc;
use std::sync::Arc;

use actix_web::Error;
use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::HeaderValue;
use sluicegate_core::Memory;
use sluicegate_core::adapter::{self, AsEnforcer, BodyGuard, Enforcer, Refusal};
use sluicegate_core::store::Store;

use crate::body::Body;
use crate::headers::{ActixExtensions, ActixHead};
use crate::reply::{ActixReply, ErrorReply};
use crate::respond::{Respond, status};
use crate::shared::Tally;

/// What a request has paid at a middleware.
pub(crate) type Paid<I, S> = adapter::Paid<Rc<Inside<I, S>>>;

/// All that does not depend on the rule.
#[derive(Clone)]
pub(crate) struct Limited<S> {
    pub(crate) enforcer: Enforcer<S>,
    pub(crate) respond: Respond,
    /// The item of each limit that is known in the `RateLimit-Policy` field.
    pub(crate) policies: Arc<[HeaderValue]>,
    /// Data shared by the workers, which lives as long as one of them uses it.
    pub(crate) _tally: Arc<Tally>,
    /// The default store, likewise shared and kept alive.
    pub(crate) _memory: Option<Arc<Memory>>,
}

/// What requests in flight need: the service, which waiting requests call after their wait, and the handling of
/// responses.
pub(crate) struct Inside<I, S> {
    pub(crate) service: I,
    pub(crate) limited: Limited<S>,
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
            // Whatever the operator's closure returns, the rejection is a redirect.
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
        paid.close(&ErrorReply(error));
        drop(paid.take_rest());
    })?;
    if paid.close(&ActixReply(&response)) {
        if let Some(inside) = paid.enforcer() {
            let Limited { enforcer, policies, .. } = &inside.limited;
            enforcer.write_served(paid, &mut ActixHead::of(response.response_mut(), policies));
        }
    }
    let guard = paid.take_rest().map(|rest| Box::new(rest) as Box<dyn BodyGuard>);
    Ok(response.map_body(|_, body| Body::guarded(body, guard)))
}

impl<I, S: Store> AsEnforcer for Inside<I, S> {
    type Store = S;

    #[inline]
    fn as_enforcer(&self) -> &Enforcer<S> {
        &self.limited.enforcer
    }
}
