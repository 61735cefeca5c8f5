//! An upgraded connection: bytes in both directions, until both ends have closed.

use std::fmt;
use std::io;

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use metrics::gauge;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::sync::OwnedSemaphorePermit;

/// How many bytes each direction holds. Ten thousand idle connections have two of these each.
const BUFFER: usize = 4 * 1024;

/// The two ends of an upgraded connection.
pub(crate) struct Tunnel {
    client: OnUpgrade,
    upstream: Upgraded,
    /// The place among the requests of the application.
    place: OwnedSemaphorePermit,
}

impl Tunnel {
    pub(crate) fn new(client: OnUpgrade, upstream: Upgraded, place: OwnedSemaphorePermit) -> Self {
        Self { client, upstream, place }
    }

    /// Passes bytes on until both ends have closed, or one of them fails.
    pub(crate) async fn run(self) -> io::Result<()> {
        let Self { client, upstream, place } = self;
        let client = client.await.map_err(io::Error::other)?;
        let _open = Open::new();
        let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
        let done = copy_bidirectional_with_sizes(&mut client, &mut upstream, BUFFER, BUFFER).await;
        drop(place);
        done.map(|_| ())
    }
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tunnel")
    }
}

/// Counts open tunnels.
struct Open;

impl Open {
    fn new() -> Self {
        gauge!("sluicegate_proxy_upgraded_connections").increment(1);
        Self
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        gauge!("sluicegate_proxy_upgraded_connections").decrement(1);
    }
}
