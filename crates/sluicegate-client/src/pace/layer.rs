use sluicegate::Memory;
use sluicegate::key::Key;
use tower_layer::Layer;

use super::pacer::Pacer;
use crate::layered::Layered;
use crate::outgoing::{AnyKey, OutgoingView};

/// A layer in which requests wait for their turn.
///
/// A request that is not admitted in time fails with [`Refused`](crate::Refused), and is not sent.
///
/// ```
/// use std::time::Duration;
/// use http::{Request, Response};
/// use sluicegate::Limit;
/// use sluicegate_client::outgoing::Origin;
/// use sluicegate_client::pace::{Pacer, Patience};
/// use sluicegate_client::{BoxError, PaceLayer, Refused};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let pacer = Pacer::new(Limit::per_minute(2)).patience(Patience::AtMost(Duration::from_secs(5)));
/// let mut client = ServiceBuilder::new()
///     .layer(PaceLayer::new(Origin, pacer))
///     .service_fn(|_: Request<()>| async { Ok::<_, BoxError>(Response::new(())) });
/// let request = |uri: &str| Request::get(uri).body(()).unwrap();
///
/// client.ready().await?.call(request("https://api.example/a")).await?;
/// client.ready().await?.call(request("https://api.example/b")).await?;
/// let error = client.ready().await?.call(request("https://api.example/c")).await.unwrap_err();
/// assert!(Refused::find(&*error).unwrap().retry_after().is_some());
/// // Another server has a limit of its own.
/// client.ready().await?.call(request("https://other.example/")).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct PaceLayer<S = Memory> {
    pub(super) key: AnyKey,
    pub(super) pacer: Pacer<S>,
}

impl<S> PaceLayer<S> {
    /// Requests wait for the turn of the key that `key` reads: an [`Origin`](crate::outgoing::Origin), a header, a route
    /// of your own, [`Global`](sluicegate::Global) for one limit over all.
    pub fn new<K>(key: K, pacer: Pacer<S>) -> Self
    where
        K: for<'a> Key<OutgoingView<'a>> + Send + Sync + 'static,
    {
        Self { key: AnyKey::new(key), pacer }
    }
}

impl<I, S: Clone> Layer<I> for PaceLayer<S> {
    type Service = Layered<I, Self>;

    fn layer(&self, inner: I) -> Self::Service {
        Layered { inner, layer: self.clone() }
    }
}
