use std::fmt;

use super::requests::Requests;
use super::throttle_layer::ThrottleLayer;

/// Rate limits and a throttle in one call, in the right order. The limits decide first, because they are cheap and know
/// the client. Requests that they admit enter the queue of the throttle. A request that the throttle sheds gives its
/// charges and places back.
///
/// ```
/// # #[cfg(feature = "tower")] {
/// use std::time::Duration;
/// use sluicegate::{Ip, Limit, RateLimitLayer};
/// use sluicegate_throttle::Throttle;
/// use sluicegate_throttle::layer::Guard;
///
/// let throttle = Throttle::builder().in_flight(100).queue(Duration::from_millis(200)).build()?;
/// let limits = RateLimitLayer::new(Limit::per_minute(100).by(Ip::peer()));
/// let guard = Guard::new(limits, throttle.layer());
/// # let _ = guard;
/// # }
/// # Ok::<(), sluicegate_throttle::ConfigError>(())
/// ```
///
/// It is a layer of tower, with the limits of `sluicegate` or `sluicegate-axum`, and a middleware of actix-web, with those
/// of `sluicegate-actix`: `.wrap(Guard::new(RateLimit::new(..), throttle.layer()))`.
#[derive(Clone)]
#[must_use]
pub struct Guard<L, R = Requests> {
    limits: L,
    throttle: ThrottleLayer<R>,
}

impl<L, R> Guard<L, R> {
    /// `limits` around `throttle`.
    pub const fn new(limits: L, throttle: ThrottleLayer<R>) -> Self {
        Self { limits, throttle }
    }
}

#[cfg(feature = "tower")]
mod tower {
    use tower_layer::Layer;

    use super::Guard;
    use crate::layer::service::ThrottleService;

    impl<I, L, R> Layer<I> for Guard<L, R>
    where
        L: Layer<ThrottleService<I, R>>,
        R: Clone,
    {
        type Service = L::Service;

        fn layer(&self, inner: I) -> L::Service {
            self.limits.layer(self.throttle.layer(inner))
        }
    }
}

#[cfg(feature = "actix")]
mod actix {
    use actix_web::dev::{ServiceRequest, Transform};

    use super::Guard;
    use crate::layer::actix::ActixService;

    impl<I, L, R> Transform<I, ServiceRequest> for Guard<L, R>
    where
        L: Transform<ActixService<I, R>, ServiceRequest>,
        R: Clone,
    {
        type Response = L::Response;
        type Error = L::Error;
        type Transform = L::Transform;
        type InitError = L::InitError;
        type Future = L::Future;

        fn new_transform(&self, service: I) -> L::Future {
            self.limits.new_transform(ActixService::new(service, &self.throttle))
        }
    }
}

impl<L: fmt::Debug, R: fmt::Debug> fmt::Debug for Guard<L, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limits, throttle } = self;
        f.debug_struct("Guard").field("limits", limits).field("throttle", throttle).finish()
    }
}
