use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sluicegate_config::Watching;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::error::ServerError;
use super::listener::Listener;
use super::live_files::{LiveCertificate, LiveFiles, Reader, read_all};
#[cfg(unix)]
use super::socket::Socket;
use crate::admin::metrics::Metrics;
use crate::rls::StatsD;
use crate::rooms;
use crate::service::Service;

/// A server whose ports are open.
#[must_use = "`run` serves"]
pub struct Bound {
    pub(super) service: Service,
    pub(super) health: HealthReporter,
    pub(super) listeners: Vec<Listener>,
    #[cfg(unix)]
    pub(super) socket: Option<Listener<Socket>>,
    pub(super) addresses: Addresses,
    pub(super) tls: Option<LiveCertificate>,
    pub(super) metrics: Option<Metrics>,
    pub(super) statsd: Option<StatsD>,
    pub(super) delay: Duration,
    pub(super) drain: Duration,
}

/// The name that Envoy's own rate limit service has for those who ask for its health.
const ENVOYS_NAME: &str = "ratelimit";

/// Where the ports of a server are open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Addresses {
    /// gRPC.
    pub grpc: Option<SocketAddr>,
    /// The HTTP API.
    pub http: Option<SocketAddr>,
    /// The admin port.
    pub admin: Option<SocketAddr>,
    /// The port for metrics alone.
    pub metrics: Option<SocketAddr>,
}

impl Bound {
    /// Where the ports are open. A port 0 has become a free one.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Reads policies and certificates again while the server runs.
    pub fn reload(&self) -> Reload {
        let service = self.service.clone();
        let policies = move || service.policies().reload().map_err(|error| error.to_string());
        let tls = self.tls.as_ref().map(|tls| LiveFiles::new(tls.files(), vec![tls.reader()]));
        Reload { files: vec![Arc::new(policies)], tls }
    }

    /// Serves until `stop` is ready, and then until every request that has come is answered.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { service, health, listeners, metrics, statsd, delay, drain, .. } = self;
        #[cfg(unix)]
        let socket = self.socket;
        for name in rooms::names(&service).into_iter().chain([ENVOYS_NAME]) {
            health.set_service_status(name, ServingStatus::Serving).await;
        }
        let (stopping, watched) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for listener in listeners {
            tasks.spawn(listener.serve(watched.clone(), drain));
        }
        #[cfg(unix)]
        if let Some(socket) = socket {
            tasks.spawn(socket.serve(watched.clone(), drain));
        }
        let upkeep =
            metrics.map(|metrics| tokio::spawn(service.dashboard().clone().follow(metrics)));
        let (ended, last) = oneshot::channel();
        let statistics = statsd.zip(service.statistics().cloned());
        let statsd = statistics.map(|(to, statistics)| tokio::spawn(to.run(statistics, last)));
        stop.await;
        service.health().stop();
        if let Some(masters) = service.masters() {
            masters.stop();
        }
        for name in rooms::names(&service).into_iter().chain(["", ENVOYS_NAME]) {
            health.set_service_status(name, ServingStatus::NotServing).await;
        }
        // Logged last, so that health has changed by the time that the line is read.
        tracing::info!("stopping");
        tokio::time::sleep(delay).await;
        // Nobody listens any more if every port has failed.
        let _ = stopping.send(true);
        while tasks.join_next().await.is_some() {}
        // Reports are counted after the answers to their calls, and some may not be counted yet.
        let _ = tokio::time::timeout(drain, service.counted()).await;
        // The program ends with this, and another server leads at once only if it has heard of that.
        if let Some(masters) = service.masters() {
            masters.resigned().await;
        }
        if let Some(upkeep) = upkeep {
            upkeep.abort();
        }
        // All calls are counted by now.
        drop(ended);
        if let Some(statsd) = statsd {
            let _ = statsd.await;
        }
        tracing::info!("stopped");
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bound").field(&self.addresses).finish()
    }
}

/// Reads policies and certificates again: see [`Bound::reload`].
#[derive(Clone)]
pub struct Reload {
    pub(crate) files: Vec<Reader>,
    pub(crate) tls: Option<LiveFiles>,
}

impl Reload {
    /// Puts what has changed in force. What is not valid stays as it was. Certificates are for new connections; open
    /// connections go on with the old ones.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the files.
    pub fn now(&self) -> Result<(), ServerError> {
        let files = read_all(&self.files).err();
        let tls = self.tls.as_ref().and_then(|tls| tls.reload().err());
        let wrong: Vec<_> = files.into_iter().chain(tls).collect();
        if wrong.is_empty() { Ok(()) } else { Err(ServerError::new(wrong.join("\n"))) }
    }

    /// Reads certificates again when their files change, until the returned value is dropped. What is not valid stays as it
    /// was, and the log says why. [`Policies::watch`](crate::Policies::watch) does the same for policies.
    ///
    /// # Errors
    ///
    /// If the system cannot watch the directory of a file.
    pub fn watch(&self) -> Result<Option<Watching>, ServerError> {
        self.tls.as_ref().map_or(Ok(None), LiveFiles::watch)
    }
}

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reload")
    }
}
