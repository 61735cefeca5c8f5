//! Hand on what is known of the request that others are made for: its criticality, and its deadline.

use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use tower_layer::Layer;
use tower_service::Service;

use crate::layered::Layered;
use crate::outgoing::{Context, OutgoingRequest, grpc};

/// A layer that writes the [`Context`] of requests into their header.
///
/// The class goes into `x-criticality`, and the time that is left in milliseconds into `x-deadline-ms`, which
/// `sluicegate-throttle` reads; for calls of gRPC the time goes into `grpc-timeout`. A field that is there already stays.
///
/// The fields are for services of your own: put the layer around a client that calls no others.
///
/// ```
/// use std::time::Duration;
/// use http::{Request, Response};
/// use sluicegate_client::PropagateLayer;
/// use sluicegate_client::outgoing::Context;
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), std::convert::Infallible> {
/// let mut client = ServiceBuilder::new().layer(PropagateLayer::new()).service_fn(
///     |request: Request<()>| async move {
///         assert_eq!(request.headers()["x-criticality"], "SHEDDABLE");
///         assert!(request.headers().contains_key("x-deadline-ms"));
///         Ok::<_, std::convert::Infallible>(Response::new(()))
///     },
/// );
/// let mut request = Request::get("http://orders.internal/").body(()).unwrap();
/// let context = Context::new().criticality("SHEDDABLE").timeout(Duration::from_millis(500));
/// request.extensions_mut().insert(context);
/// client.ready().await?.call(request).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct PropagateLayer {
    criticality: HeaderName,
    deadline: HeaderName,
}

static CRITICALITY: HeaderName = HeaderName::from_static("x-criticality");
static DEADLINE: HeaderName = HeaderName::from_static("x-deadline-ms");

impl PropagateLayer {
    /// The layer, with the usual names.
    pub fn new() -> Self {
        Self { criticality: CRITICALITY.clone(), deadline: DEADLINE.clone() }
    }

    /// Writes the class into the header `criticality` and the time that is left into `deadline`.
    pub fn names(mut self, criticality: HeaderName, deadline: HeaderName) -> Self {
        (self.criticality, self.deadline) = (criticality, deadline);
        self
    }

    fn write(&self, request: &mut impl OutgoingRequest) {
        let Some(context) = Context::of(request) else { return };
        let headers = request.headers_mut();
        // A class that cannot be a value of a header is not handed on.
        let class = context.importance().and_then(|class| HeaderValue::from_str(class).ok());
        if let Some(class) = class {
            headers.entry(&self.criticality).or_insert(class);
        }
        let Some(left) = context.left() else { return };
        let (name, value) = match grpc::is_call(headers) {
            true => (&grpc::TIMEOUT, grpc::timeout(left)),
            false => (&self.deadline, HeaderValue::from(millis(left))),
        };
        headers.entry(name).or_insert(value);
    }
}

impl Default for PropagateLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for PropagateLayer {
    type Service = Layered<S, Option<Self>>;

    fn layer(&self, inner: S) -> Self::Service {
        Layered { inner, layer: Some(self.clone()) }
    }
}

/// Without a layer, requests pass as they are.
impl<S: Service<R>, R: OutgoingRequest> Service<R> for Layered<S, Option<PropagateLayer>> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: R) -> S::Future {
        if let Some(layer) = &self.layer {
            layer.write(&mut request);
        }
        self.inner.call(request)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn written(fields: &[(&'static str, &'static str)], context: Context) -> http::HeaderMap {
        let mut request = Request::new(());
        for (name, value) in fields {
            request.headers_mut().insert(*name, HeaderValue::from_static(value));
        }
        request.extensions_mut().insert(context);
        PropagateLayer::new().write(&mut request);
        request.headers().clone()
    }

    #[tokio::test(start_paused = true)]
    async fn calls_of_grpc_carry_their_timeout_in_its_own_field() {
        let context = |time| Context::new().timeout(time);
        let grpc = [("content-type", "application/grpc")];
        assert_eq!(written(&grpc, context(Duration::from_millis(250)))["grpc-timeout"], "250m");
        let day = Duration::from_secs(200_000);
        assert_eq!(written(&grpc, context(day))["grpc-timeout"], "55H");
        assert_eq!(written(&[], context(day))["x-deadline-ms"], "200000000");
        for kind in ["application/grpc+proto", "application/grpc;x=y", "Application/gRPC-Web"] {
            let fields = written(&[("content-type", kind)], context(day));
            assert_eq!(fields["grpc-timeout"], "55H", "{kind}");
        }
        for kind in ["application/grpcx", "application/grpc-other", "text/application/grpc"] {
            let fields = written(&[("content-type", kind)], context(day));
            assert_eq!(fields["x-deadline-ms"], "200000000", "{kind}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_that_has_passed_is_not_handed_on() {
        let context = Context::new().timeout(Duration::from_secs(2));
        tokio::time::advance(Duration::from_millis(1_500)).await;
        assert_eq!(written(&[], context.clone())["x-deadline-ms"], "500");
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(written(&[], context)["x-deadline-ms"], "0");
    }

    #[test]
    fn a_field_that_is_there_stays_and_a_class_that_is_no_value_is_left_out() {
        let fields = [("x-criticality", "CRITICAL")];
        let headers = written(&fields, Context::new().criticality("SHEDDABLE"));
        assert_eq!(headers["x-criticality"], "CRITICAL");
        assert!(written(&[], Context::new().criticality("a\r\nb: c")).is_empty());
    }
}
