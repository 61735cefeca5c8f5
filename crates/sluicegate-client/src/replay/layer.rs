use sluicegate::adapter::ConfigError;
use tower_layer::Layer;

use super::service::{Replay, Sending};

/// Layers that can send a request again though its body can be read only once.
///
/// It is around the layers that repeat requests, mostly [`Outgoing`](crate::Outgoing), whose
/// [`replay`](crate::Outgoing::replay) makes it. `into` makes the body of the client below of the one that was kept.
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use http_body_util::combinators::BoxBody;
/// use http_body_util::{BodyExt, Full};
/// use sluicegate_client::replay::{ReplayBody, ReplayLayer};
/// use sluicegate_client::{BoxError, RetryLayer};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// // It is not `Clone`.
/// type Boxed = BoxBody<Bytes, std::convert::Infallible>;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let layers = ReplayLayer::new(RetryLayer::new(), |body: ReplayBody<Boxed>| body.boxed());
/// let mut client = ServiceBuilder::new().layer(layers).service_fn(|request: Request<Boxed>| async {
///     let sent = request.into_body().collect().await?.to_bytes();
///     Ok::<_, BoxError>(Response::new(Full::new(sent)))
/// });
/// let request = Request::put("https://api.example/").body(Full::from("hello").boxed())?;
/// let response = client.ready().await?.call(request).await?;
/// assert_eq!(response.into_body().collect().await?.to_bytes(), "hello");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a layer does nothing until it wraps a service"]
pub struct ReplayLayer<L, F> {
    layers: L,
    into: F,
    most: usize,
}

impl<L, F> ReplayLayer<L, F> {
    /// `layers`, which see bodies that are kept up to 64 KiB.
    pub const fn new(layers: L, into: F) -> Self {
        Self { layers, into, most: 65_536 }
    }

    /// Keeps bodies up to this many bytes. Larger ones are sent once.
    ///
    /// # Errors
    ///
    /// If it is more than 16 MiB: each request under way keeps its body.
    pub fn keep(mut self, most: usize) -> Result<Self, ConfigError> {
        if most > 16 << 20 {
            let text = format!("bodies up to 16 MiB are kept; {most} bytes were asked for");
            return Err(ConfigError::new(text));
        }
        self.most = most;
        Ok(self)
    }
}

impl<S, L, F> Layer<S> for ReplayLayer<L, F>
where
    L: Layer<Sending<S, F>>,
    F: Clone,
{
    type Service = Replay<L::Service>;

    fn layer(&self, inner: S) -> Self::Service {
        Replay::new(self.layers.layer(Sending::new(inner, self.into.clone())), self.most)
    }
}
