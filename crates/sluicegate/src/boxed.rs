//! Layers whose type does not depend on their rule, store and responder.

use std::fmt;
use std::sync::Arc;

use http::{Request, Response};
use sluicegate_core::Limit;
use sluicegate_core::adapter::{Charge, Refusal};
use sluicegate_core::key::Missing;
use sluicegate_core::rule::{KnownLimits, Rule};
use sluicegate_core::store::BoxStore;

use crate::body::Body;
use crate::rate_limit::layer::RateLimitLayer;
use crate::respond::Respond;
use crate::view::{Framework, HttpView, Plain};

/// A [`RateLimitLayer`] for requests with a body `B` and responses with a body `ResBody`, whatever
/// its rule, store and responder are.
///
/// Such a layer can be stored in a struct, returned from a function and chosen at run time.
/// [`boxed`](crate::service::RateLimitLayerFor::boxed) makes one.
pub type BoxRateLimitLayer<B, ResBody> =
    RateLimitLayer<BoxRule<B>, BoxStore, BoxRespond<B, ResBody>>;

/// A rule of any type, for requests with a body `B`.
///
/// ```
/// use sluicegate::service::BoxRule;
/// use sluicegate::{Global, Ip, Limit};
///
/// fn rule(by_client: bool) -> BoxRule<String> {
///     let limit = Limit::per_minute(100);
///     if by_client { BoxRule::new(limit.by(Ip::peer())) } else { BoxRule::new(limit.by(Global)) }
/// }
/// # let _ = rule(true);
/// ```
pub struct BoxRule<B, W = Plain>(Arc<dyn AnyRule<B, W>>);

/// A rule for requests with a body `B`, as a trait object.
trait AnyRule<B, W: Framework>: for<'a> Rule<HttpView<'a, B, W>> + Send + Sync {}

impl<B, W: Framework, R> AnyRule<B, W> for R where R: for<'a> Rule<HttpView<'a, B, W>> + Send + Sync {}

impl<B, W: Framework> BoxRule<B, W> {
    /// `rule`, without its type.
    pub fn new(rule: impl for<'a> Rule<HttpView<'a, B, W>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(rule))
    }
}

impl<B, W: Framework> Rule<HttpView<'_, B, W>> for BoxRule<B, W> {
    fn charge(&self, view: &HttpView<'_, B, W>, charge: &mut Charge) -> Result<(), Missing> {
        self.0.charge(view, charge)
    }
}

impl<B, W: Framework> KnownLimits for BoxRule<B, W> {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.0.each_limit(each);
    }
}

impl<B, W> Clone for BoxRule<B, W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B, W> fmt::Debug for BoxRule<B, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxRule")
    }
}

/// A [`Respond`] of any type.
pub struct BoxRespond<B, ResBody>(Arc<dyn Respond<B, ResBody> + Send + Sync>);

impl<B, ResBody> BoxRespond<B, ResBody> {
    /// `respond`, without its type.
    pub fn new(respond: impl Respond<B, ResBody> + Send + Sync + 'static) -> Self {
        Self(Arc::new(respond))
    }
}

impl<B, ResBody> Respond<B, ResBody> for BoxRespond<B, ResBody> {
    fn respond(&self, refusal: &Refusal, request: &Request<B>) -> Response<Body<ResBody>> {
        self.0.respond(refusal, request)
    }

    fn redirects(&self, request: &Request<B>) -> bool {
        self.0.redirects(request)
    }
}

impl<B, ResBody> Clone for BoxRespond<B, ResBody> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B, ResBody> fmt::Debug for BoxRespond<B, ResBody> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxRespond")
    }
}
