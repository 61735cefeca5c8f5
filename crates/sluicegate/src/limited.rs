//! What requests under way need of their layer, and what is done with responses.

use std::mem;
use std::sync::Arc;

use http::header::HeaderValue;
use http::{Request, Response, StatusCode};
use sluicegate_core::adapter::{self, AsEnforcer, Enforcer, Refusal, Rest, Unsettled};
use sluicegate_core::store::Store;

use crate::body::Body;
use crate::headers::{HttpExtensions, HttpHead};
use crate::held::{Held, find_line};
use crate::reply::HttpReply;
use crate::respond::{Respond, status};
use crate::sleep::TokioTimer;
use crate::upgrade::Upgrade;

/// What a request has paid at a layer.
pub(crate) type Paid<S, P> = adapter::Paid<Arc<Limited<S, P>>>;

/// A request that waits for a layer's store, or for its turn.
pub(crate) type Pending<S, P> = adapter::Pending<Arc<Limited<S, P>>, TokioTimer>;

/// The rule of a layer, and its settings.
///
/// Requests under way keep the settings only. So the type of a rule is not part of the type of a future, and a future
/// can be spawned whatever the lifetimes are in the type of its rule.
pub(crate) struct Inside<R, S, P> {
    pub(crate) rule: R,
    pub(crate) limited: Arc<Limited<S, P>>,
}

/// The settings of a layer, for its services and the requests under way.
pub(crate) struct Limited<S, P> {
    pub(crate) enforcer: Enforcer<S>,
    pub(crate) respond: P,
    /// The item of each known limit in the `RateLimit-Policy` field.
    pub(crate) policies: Box<[HeaderValue]>,
}

impl<S: Store, P> AsEnforcer for Limited<S, P> {
    type Store = S;

    #[inline]
    fn as_enforcer(&self) -> &Enforcer<S> {
        &self.enforcer
    }
}

impl<S, P> Limited<S, P> {
    /// Tells the handler of the decision, and makes sure that a connection that it upgrades keeps what is held.
    #[inline]
    pub(crate) fn mark<E: AsEnforcer, B>(
        &self,
        paid: &adapter::Paid<E>,
        request: &mut Request<B>,
    ) -> Option<Upgrade> {
        self.enforcer.mark(paid, &mut HttpExtensions(request.extensions_mut()));
        if paid.may_wait() { Upgrade::of(request) } else { None }
    }

    /// Makes the response of a refusal.
    pub(crate) fn answer<B, ResBody>(
        &self,
        refusal: Refusal,
        request: &Request<B>,
    ) -> Response<Body<ResBody>>
    where
        P: Respond<B, ResBody>,
    {
        let mut response = self.respond.respond(&refusal, request);
        let is_elsewhere = matches!(refusal, Refusal::Elsewhere(..));
        if is_elsewhere && self.respond.redirects(request) {
            // Whatever the operator's closure returns, the rejection is a redirect.
            *response.status_mut() = status(&refusal);
        }
        self.enforcer.write_refusal(refusal, &mut HttpHead::of(&mut response, &self.policies));
        response
    }
}

/// Settles what the response cost, and tells the client. Returns what the body holds: what waits for its end. Where the
/// response upgrades the connection, that holds it instead.
///
/// The response stays where the service has written it: moving what has just been written makes the processor wait.
#[inline]
pub(crate) fn close<S, P, ResBody>(
    paid: &mut Paid<S, P>,
    upgrade: &mut Option<Upgrade>,
    response: &mut Response<ResBody>,
) -> Option<Box<dyn Held>>
where
    S: Store + Send + Sync + 'static,
    P: Send + Sync + 'static,
{
    if paid.close(&HttpReply(response)) {
        if let Some(limited) = paid.enforcer() {
            let mut head = HttpHead::of(response, &limited.policies);
            limited.enforcer.write_served(paid, &mut head);
        }
    }
    if paid.rest() == Rest::Nothing && upgrade.is_none() {
        return None;
    }
    let held = (paid.rest() != Rest::Nothing).then(|| {
        let paid = mem::replace(paid, Paid::nothing());
        let reply = HttpReply(response);
        let headers = || response.headers().clone();
        Box::new(Unsettled::new(paid, &reply, || reply.running(), headers, find_line))
            as Box<dyn Held>
    });
    hold(held, upgrade.take(), response.status())
}

/// Hands what is held to the connection that a response of `status` upgrades. Returns it where the body holds it.
pub(crate) fn hold(
    held: Option<Box<dyn Held>>,
    upgrade: Option<Upgrade>,
    status: StatusCode,
) -> Option<Box<dyn Held>> {
    match upgrade {
        Some(upgrade) if upgrade.is_accepted(status) => {
            upgrade.accept(held);
            None
        }
        _ => held,
    }
}
