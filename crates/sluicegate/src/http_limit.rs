//! What is done to requests and responses of the `http` crate, by every adapter for a framework that has them.

use std::sync::Arc;

use http::header::HeaderValue;
use http::{HeaderMap, Request, Response, StatusCode};
use sluicegate_core::adapter::{
    self, AsEnforcer, BodyGuard, Enforcer, HeaderLines, KnownLimit, Refusal,
};
use sluicegate_core::store::Store;

use crate::body::Body;
use crate::headers::{HttpExtensions, HttpHead};
use crate::reply::{HttpReply, find_line};
use crate::respond::{Respond, status};
use crate::upgrade::Upgrade;

/// What a request has paid at a limit.
pub(crate) type Paid<S, P> = adapter::Paid<Arc<HttpLimit<S, P>>>;

/// What the body of a response keeps until it has ended.
pub(crate) type Guard = Box<dyn BodyGuard + Send + Sync>;

/// The settings of a limit, and what is done to requests and responses of the `http` crate: all that an adapter needs
/// for a framework with these types. In an [`Arc`], it is the handle for [`Enforcer::admit`].
///
/// Requests under way keep it, and not the rule. So the type of a rule is not part of the type of a future, and a future
/// can be spawned whatever the lifetimes are in the type of its rule.
///
/// A framework that has its own type of response moves the head into an [`http::Response`] and back.
///
/// ```
/// use std::sync::Arc;
/// use http::{Request, Response};
/// use sluicegate::adapter::{Admission, Enforcer, HttpLimit, HttpView, Plain, TokioTimer};
/// use sluicegate::response::{Body, Problem};
/// use sluicegate::rule::Rule;
/// use sluicegate::Memory;
///
/// type Limit = HttpLimit<Memory, Problem>;
///
/// /// Answers a request by `handle`, unless `rule` refuses it.
/// async fn limited<R>(
///     rule: &R,
///     limit: &Arc<Limit>,
///     mut request: Request<String>,
///     handle: impl AsyncFnOnce(Request<String>) -> Response<String>,
/// ) -> Response<Body<String>>
/// where
///     R: for<'a> Rule<HttpView<'a, String, Plain>>,
/// {
///     let view = HttpView::<_, Plain>::new(&request);
///     let admission = limit.enforcer().admit::<_, _, TokioTimer>(rule, &view, || limit.clone());
///     let paid = match admission {
///         Admission::Proceed(paid) => Ok(paid),
///         Admission::Refuse(refusal) => Err(refusal),
///         Admission::Pending(pending) => pending.await,
///     };
///     match paid {
///         Ok(mut paid) => {
///             let mut upgrade = limit.mark(&paid, &mut request);
///             let mut response = handle(request).await;
///             let guard = Limit::close(&mut paid, &mut upgrade, &mut response);
///             response.map(|body| Body::guarded(body, guard))
///         }
///         Err(refusal) => limit.answer(refusal, &request),
///     }
/// }
/// ```
#[derive(Debug)]
pub struct HttpLimit<S, P> {
    enforcer: Enforcer<S>,
    respond: P,
    /// The item of each known limit in the `RateLimit-Policy` field.
    policies: Box<[HeaderValue]>,
}

impl<S, P> HttpLimit<S, P> {
    /// Admits requests by `enforcer`, and makes the responses of refusals by `respond`.
    pub fn new(enforcer: Enforcer<S>, respond: P) -> Self {
        let policies = enforcer.known.iter().map(policy_item).collect();
        Self { enforcer, respond, policies }
    }

    /// How requests are admitted.
    #[inline]
    pub fn enforcer(&self) -> &Enforcer<S> {
        &self.enforcer
    }

    /// Tells the handler of the decision, and makes sure that a connection that it upgrades keeps what is held.
    #[inline]
    pub fn mark<E: AsEnforcer, B>(
        &self,
        paid: &adapter::Paid<E>,
        request: &mut Request<B>,
    ) -> Option<Upgrade> {
        self.enforcer.mark(paid, &mut HttpExtensions(request.extensions_mut()));
        if paid.may_wait() { Upgrade::of(request) } else { None }
    }

    /// Makes the response of a refusal.
    pub fn answer<B, ResBody>(
        &self,
        refusal: Refusal,
        request: &Request<B>,
    ) -> Response<Body<ResBody>>
    where
        P: Respond<B, ResBody>,
    {
        let refusal = match refusal {
            // A client that does not follow redirects is told whether to come again, and when.
            Refusal::Elsewhere(decision, _) if !self.respond.redirects(request) => {
                match decision.never_fits() {
                    true => Refusal::NeverFits(decision, 422),
                    false => Refusal::TooMany(decision),
                }
            }
            refusal => refusal,
        };
        let mut response = self.respond.respond(&refusal, request);
        if let Refusal::Elsewhere(..) = refusal {
            // Whatever the operator's closure returns, the rejection is a redirect.
            *response.status_mut() = status(&refusal);
        }
        self.enforcer.write_refusal(refusal, &mut HttpHead::of(&mut response, &self.policies));
        response
    }
}

impl<S, P> HttpLimit<S, P>
where
    S: Store + Send + Sync + 'static,
    P: Send + Sync + 'static,
{
    /// Settles what the response cost, and tells the client. Returns what the body [keeps](Body::guarded): what waits
    /// for its end. Where the response upgrades the connection, that keeps it instead.
    ///
    /// The response stays where the service has written it: moving what has just been written makes the processor wait.
    #[inline]
    pub fn close<ResBody>(
        paid: &mut Paid<S, P>,
        upgrade: &mut Option<Upgrade>,
        response: &mut Response<ResBody>,
    ) -> Option<Guard> {
        if paid.close(&HttpReply(response)) {
            if let Some(limit) = paid.enforcer() {
                let mut head = HttpHead::of(response, &limit.policies);
                limit.enforcer.write_served(paid, &mut head);
            }
        }
        let guard = paid.take_rest().map(|rest| Box::new(rest) as Guard);
        if upgrade.is_none() { guard } else { hold(guard, upgrade.take(), response.status()) }
    }
}

impl<S: Store, P> AsEnforcer for HttpLimit<S, P> {
    type Store = S;

    #[inline]
    fn as_enforcer(&self) -> &Enforcer<S> {
        &self.enforcer
    }
}

/// Hands what is held to the connection that a response of `status` upgrades. Returns it where the body keeps it.
pub(crate) fn hold(
    guard: Option<Guard>,
    upgrade: Option<Upgrade>,
    status: StatusCode,
) -> Option<Guard> {
    match upgrade {
        Some(upgrade) if upgrade.is_accepted(status) => {
            upgrade.accept(guard);
            None
        }
        _ => guard,
    }
}

/// Names of limits are visible ASCII, so there always is one.
fn policy_item(known: &KnownLimit) -> HeaderValue {
    match known.lasting_policy() {
        Some(policy) => HeaderValue::from_static(policy),
        None => HeaderValue::from_str(known.policy()).unwrap_or(HeaderValue::from_static("")),
    }
}

/// Header fields or trailers of the `http` crate.
pub(crate) struct HttpLines(pub(crate) HeaderMap);

impl HeaderLines for HttpLines {
    fn first_line(&self, name: &str) -> Option<&[u8]> {
        find_line(&self.0, name)
    }
}
