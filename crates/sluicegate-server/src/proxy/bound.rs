use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::admin::metrics::Metrics;
use sluicegate_config::Live;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::health::Health;
use crate::proxy::connector::Connector;
use crate::run::{Listener, LiveCertificate, LiveFiles, Reader, Reload};
use crate::status::Dashboard;

/// A proxy whose ports are open.
#[must_use = "`run` serves"]
pub struct Bound {
    pub(crate) live: Live,
    pub(crate) proxied: Listener,
    pub(crate) admin: Option<Listener>,
    pub(crate) tls: Option<LiveCertificate>,
    pub(crate) connector: Connector,
    pub(crate) metrics: Option<Metrics>,
    pub(crate) dashboard: Dashboard,
    pub(crate) health: Arc<Health>,
    pub(crate) delay: Duration,
    pub(crate) drain: Duration,
}

impl Bound {
    /// Where the proxy listens. A port 0 has become a free one.
    pub fn address(&self) -> SocketAddr {
        self.proxied.address()
    }

    /// Where the admin port is, if there is one.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(Listener::address)
    }

    /// Reads policies and certificates again while the proxy runs: those of `[listen]`, and those of `[upstream]`.
    pub fn reload(&self) -> Reload {
        let (live, connector) = (self.live.clone(), self.connector.clone());
        let policies = move || live.reload().map(drop).map_err(|error| error.to_string());
        let upstream = move || connector.reload().map_err(|error| error.to_string());
        let mut readers: Vec<Reader> = vec![Arc::new(upstream)];
        readers.extend(self.tls.as_ref().map(LiveCertificate::reader));
        let listen = self.tls.iter().flat_map(LiveCertificate::files);
        let tls = LiveFiles::new(listen.chain(self.connector.files()), readers);
        Reload { files: vec![Arc::new(policies)], tls: Some(tls) }
    }

    /// Serves until `stop` is ready, and then until every request is answered and every upgraded connection is closed, but
    /// no longer than the time to drain. The admin port stays open until then.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { proxied, admin, metrics, dashboard, health, delay, drain, .. } = self;
        let (stop_serving, watched) = watch::channel(false);
        let (stop_admin, admin_watched) = watch::channel(false);
        let mut background = JoinSet::new();
        let is_shown = admin.is_some();
        if let Some(admin) = admin {
            background.spawn(admin.serve(admin_watched, Duration::from_secs(1)));
        }
        if let Some(metrics) = metrics {
            // Without its port, nobody sees the dashboard.
            if is_shown {
                background.spawn(dashboard.follow(metrics));
            } else {
                background.spawn(metrics.keep_tidy());
            }
        }
        let serving = tokio::spawn(proxied.serve(watched, drain));
        stop.await;
        // Set before the line is logged, so that `/readyz` has changed by the time that it is read.
        health.stop();
        tracing::info!("stopping");
        tokio::time::sleep(delay).await;
        // An error means that the port has failed.
        let _ = stop_serving.send(true);
        let _ = serving.await;
        let _ = stop_admin.send(true);
        background.shutdown().await;
        tracing::info!("stopped");
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bound").field(&self.address()).finish()
    }
}
