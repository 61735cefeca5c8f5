//! Accepts connections, a bounded number at a time.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::connection::Connections;

/// How long to pause when the system has no more descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// One port.
pub(super) struct Listener {
    pub(super) listener: TcpListener,
    pub(super) connections: Connections,
    /// The most connections at a time. Others wait to be accepted.
    pub(super) most: usize,
}

impl Listener {
    /// Serves until `stopping` is true, and then until every request is answered, for at most `drain`.
    pub(super) async fn serve(self, mut stopping: watch::Receiver<bool>, drain: Duration) {
        let graceful = GracefulShutdown::new();
        let places = Arc::new(Semaphore::new(self.most));
        let mut tasks = JoinSet::new();
        loop {
            let place = Arc::clone(&places).acquire_owned();
            let next = async {
                let place = place.await;
                (accept(&self.listener).await, place)
            };
            let ((stream, peer), place) = tokio::select! {
                next = next => next,
                _ = stopping.wait_for(|stopping| *stopping) => break,
            };
            let served = self.connections.clone().serve(stream, peer, graceful.watcher());
            tasks.spawn(async move {
                served.await;
                drop(place);
            });
            while tasks.try_join_next().is_some() {}
        }
        drop(self.listener);
        if tokio::time::timeout(drain, graceful.shutdown()).await.is_err() {
            tracing::warn!(connections = tasks.len(), "stopped before every request was answered");
        }
    }
}

/// The next connection. An error here is about one connection, or about the limits of the system.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_about_the_client(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn is_about_the_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
