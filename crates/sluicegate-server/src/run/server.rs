use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use tokio::net::TcpListener;
use tonic::service::{Routes, RoutesBuilder};
use tonic_health::server::{HealthReporter, health_reporter};

use super::bound::{Addresses, Bound, Parts};
use super::connection::{Certificate, Connections};
use super::error::ServerError;
use super::listener::Listener;
use super::tls::Tls;
use crate::admin::metrics::Metrics;
use crate::admin::{Token, guarded};
use crate::service::Service;
use crate::{reflection, rooms};

/// How long requests may take to be answered once the server stops.
const DRAIN: Duration = Duration::from_secs(30);

/// The most connections on each port.
const CONNECTIONS: usize = 10_000;

/// The ports of a [`Service`], none of which is open yet.
#[derive(Debug, Clone)]
#[must_use = "`bind` opens the ports"]
pub struct Server {
    service: Service,
    grpc: Option<SocketAddr>,
    http: Option<SocketAddr>,
    admin: Option<SocketAddr>,
    token: Option<Token>,
    metrics: Option<Metrics>,
    tls: Option<Tls>,
    connections: usize,
    delay: Duration,
    drain: Duration,
}

impl Server {
    /// A server without ports.
    pub fn new(service: Service) -> Self {
        Self {
            service,
            grpc: None,
            http: None,
            admin: None,
            token: None,
            metrics: None,
            tls: None,
            connections: CONNECTIONS,
            delay: Duration::ZERO,
            drain: DRAIN,
        }
    }

    /// Serves gRPC here. Envoy's documentation has port 8081.
    pub fn grpc(mut self, address: SocketAddr) -> Self {
        self.grpc = Some(address);
        self
    }

    /// Serves the HTTP API and health here. Envoy's documentation has port 8080.
    pub fn http(mut self, address: SocketAddr) -> Self {
        self.http = Some(address);
        self
    }

    /// Serves metrics and the policies in force here, without TLS.
    pub fn admin(mut self, address: SocketAddr) -> Self {
        self.admin = Some(address);
        self
    }

    /// Asks clients of the admin port for this token. An admin port that is not on the loopback address needs one.
    pub fn token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }

    /// Shows these metrics on the admin port.
    pub fn metrics(mut self, metrics: &Metrics) -> Self {
        self.metrics = Some(metrics.clone());
        self
    }

    /// Speaks TLS on the gRPC and the HTTP port.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// The most connections on each port; the default is 10,000. Others wait to be accepted.
    pub fn connections(mut self, most: usize) -> Self {
        self.connections = most;
        self
    }

    /// How long to go on as before once it is asked to stop, while health says that it is not ready. Give load
    /// balancers as long as they need to notice. The default is no time.
    pub fn drain_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// How long requests may take to be answered after that. The default is 30 seconds.
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Opens the ports. Nobody is served before [`Bound::run`].
    ///
    /// # Errors
    ///
    /// If there is no port, a port cannot be opened, a certificate cannot be read, no connection is allowed, or the admin port is open
    /// to the world without a token.
    pub async fn bind(self) -> Result<Bound, ServerError> {
        if self.connections == 0 {
            return Err(ServerError::new("0 connections: expected at least 1"));
        }
        let open = self.admin.filter(|address| !address.ip().is_loopback());
        if let (Some(address), None) = (open, &self.token) {
            return Err(ServerError::new(format!(
                "the admin port at {address} is open to others: expected a loopback address such as 127.0.0.1, or a \
                 token"
            )));
        }
        if self.grpc.or(self.http).or(self.admin).is_none() {
            return Err(ServerError::new("every port is off: expected at least one"));
        }
        let certificate = self.tls.as_ref().map(Tls::acceptor).transpose()?;
        let certificate: Option<Certificate> =
            certificate.map(|acceptor| Arc::new(ArcSwap::from_pointee(acceptor)));
        let (health, grpc) = grpc(&self.service)?;
        let admin = rooms::admin(&self.service, self.metrics.as_ref());
        let ports = [
            ("gRPC", self.grpc, grpc, certificate.as_ref()),
            ("HTTP", self.http, rooms::http(&self.service), certificate.as_ref()),
            ("admin", self.admin, guarded(admin, self.token), None),
        ];
        let mut listeners = Vec::new();
        let mut addresses = Addresses::default();
        for (name, address, routes, certificate) in ports {
            let Some(address) = address else { continue };
            let opened = TcpListener::bind(address).await;
            let listener = opened.map_err(|error| ServerError::bind(name, address, error))?;
            let opened = listener.local_addr();
            let opened = opened.map_err(|error| ServerError::bind(name, address, error))?;
            match name {
                "gRPC" => addresses.grpc = Some(opened),
                "HTTP" => addresses.http = Some(opened),
                _ => addresses.admin = Some(opened),
            }
            let mut connections = Connections::new(routes, certificate.cloned());
            if name == "gRPC" {
                connections = connections.http2_only();
            }
            listeners.push(Listener { listener, connections, most: self.connections });
        }
        Ok(Bound::new(Parts {
            service: self.service,
            health,
            listeners,
            addresses,
            tls: self.tls.zip(certificate),
            metrics: self.metrics,
            delay: self.delay,
            drain: self.drain,
        }))
    }
}

/// The routes of the gRPC port, and how its health is reported.
fn grpc(service: &Service) -> Result<(HealthReporter, Router), ServerError> {
    let (reporter, health) = health_reporter();
    let mut routes: RoutesBuilder = Routes::builder();
    routes.add_service(health);
    rooms::grpc(service, &mut routes);
    let described = reflection::add(&mut routes);
    described.map_err(|error| ServerError::because("gRPC reflection cannot be set up", error))?;
    Ok((reporter, routes.routes().prepare().into_axum_router()))
}
