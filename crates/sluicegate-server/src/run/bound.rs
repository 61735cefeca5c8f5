use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::connection::Certificate;
use super::error::ServerError;
use super::listener::Listener;
use super::tls::Tls;
use crate::admin::metrics::Metrics;
use crate::rooms;
use crate::service::Service;

/// How often measurements are moved into histograms.
const TIDY: Duration = Duration::from_secs(5);

/// A server whose ports are open.
#[must_use = "`run` serves"]
pub struct Bound(Parts);

pub(super) struct Parts {
    pub(super) service: Service,
    pub(super) health: HealthReporter,
    pub(super) listeners: Vec<Listener>,
    pub(super) addresses: Addresses,
    pub(super) tls: Option<(Tls, Certificate)>,
    pub(super) metrics: Option<Metrics>,
    pub(super) delay: Duration,
    pub(super) drain: Duration,
}

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
}

impl Bound {
    pub(super) fn new(parts: Parts) -> Self {
        Self(parts)
    }

    /// Where the ports are open. A port 0 has become a free one.
    pub fn addresses(&self) -> Addresses {
        self.0.addresses
    }

    /// Reads policies and certificates again while the server runs.
    pub fn reload(&self) -> Reload {
        Reload { service: self.0.service.clone(), tls: self.0.tls.clone() }
    }

    /// Serves until `stop` is ready, and then until every request that has come is answered.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Parts { service, health, listeners, metrics, delay, drain, .. } = self.0;
        for name in rooms::names(&service) {
            health.set_service_status(name, ServingStatus::Serving).await;
        }
        let (stopping, watched) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for listener in listeners {
            tasks.spawn(listener.serve(watched.clone(), drain));
        }
        let upkeep = metrics.map(|metrics| {
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(TIDY).await;
                    metrics.tidy();
                }
            })
        });
        stop.await;
        tracing::info!("stopping");
        service.stop();
        for name in rooms::names(&service).into_iter().chain([""]) {
            health.set_service_status(name, ServingStatus::NotServing).await;
        }
        tokio::time::sleep(delay).await;
        // Nobody listens any more if every port has failed.
        let _ = stopping.send(true);
        while tasks.join_next().await.is_some() {}
        if let Some(upkeep) = upkeep {
            upkeep.abort();
        }
        tracing::info!("stopped");
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bound").field(&self.0.addresses).finish()
    }
}

/// Reads policies and certificates again: see [`Bound::reload`].
#[derive(Clone)]
pub struct Reload {
    service: Service,
    tls: Option<(Tls, Certificate)>,
}

impl Reload {
    /// Puts what has changed in force. What is not valid stays as it was.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the files.
    pub fn now(&self) -> Result<(), ServerError> {
        let policies = self.service.policies().reload().map_err(|error| error.to_string());
        let certificate = self.certificate().map_err(|error| error.to_string());
        let wrong: Vec<_> = [policies, certificate].into_iter().filter_map(Result::err).collect();
        if wrong.is_empty() { Ok(()) } else { Err(ServerError::new(wrong.join("\n"))) }
    }

    fn certificate(&self) -> Result<(), ServerError> {
        if let Some((tls, certificate)) = &self.tls {
            certificate.store(Arc::new(tls.acceptor()?));
        }
        Ok(())
    }
}

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reload")
    }
}
