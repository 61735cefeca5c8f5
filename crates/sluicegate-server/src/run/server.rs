use std::net::SocketAddr;
#[cfg(unix)]
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use tonic::service::{Routes, RoutesBuilder};
use tonic_health::server::{HealthReporter, health_reporter};

use super::bound::{Addresses, Bound};
use super::connection::{Age, Connections, IDLE};
use super::error::ServerError;
use super::live_files::LiveCertificate;
use super::routed::Shortcut;
#[cfg(unix)]
use super::socket::Socket;
use super::tls::Tls;
use crate::admin::metrics::{self, Metrics};
use crate::admin::{Token, guarded};
use crate::auth::Forward;
use crate::rls::{Rls, StatsD};
use crate::rooms;
use crate::service::Service;

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
    #[cfg(unix)]
    socket: Option<PathBuf>,
    http: Option<SocketAddr>,
    admin: Option<SocketAddr>,
    token: Option<Token>,
    metrics: Option<Metrics>,
    exposed: Option<(SocketAddr, String)>,
    statsd: Option<StatsD>,
    tls: Option<Tls>,
    connections: usize,
    idle: Duration,
    age: Option<Age>,
    delay: Duration,
    drain: Duration,
}

impl Server {
    /// A server without ports.
    pub fn new(service: Service) -> Self {
        Self {
            service,
            grpc: None,
            #[cfg(unix)]
            socket: None,
            http: None,
            admin: None,
            token: None,
            metrics: None,
            exposed: None,
            statsd: None,
            tls: None,
            connections: CONNECTIONS,
            idle: IDLE,
            age: None,
            delay: Duration::ZERO,
            drain: DRAIN,
        }
    }

    /// Serves gRPC here. Envoy's documentation has port 8081.
    pub fn grpc(mut self, address: SocketAddr) -> Self {
        self.grpc = Some(address);
        self
    }

    /// Serves gRPC at a Unix socket in this file too, with or without the port. It has the certificate of the port. The file
    /// is removed when the server ends.
    #[cfg(unix)]
    pub fn grpc_socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.socket = Some(path.into());
        self
    }

    /// Serves the HTTP API and health here. Envoy's documentation has port 8080.
    pub fn http(mut self, address: SocketAddr) -> Self {
        self.http = Some(address);
        self
    }

    /// Serves the dashboard, metrics and the policies in force here, without TLS.
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

    /// Shows the [metrics](Self::metrics) at this path here too, such as `/metrics`, and nothing else. There is no token: open it
    /// to Prometheus alone.
    pub fn metrics_port(mut self, address: SocketAddr, path: &str) -> Self {
        self.exposed = Some((address, path.to_owned()));
        self
    }

    /// Sends the [statistics](crate::ServiceBuilder::statistics) of the service there.
    pub fn statsd(mut self, server: StatsD) -> Self {
        self.statsd = Some(server);
        self
    }

    /// Speaks TLS on the gRPC and the HTTP port, or on the gRPC port alone: see [`Tls::grpc_only`].
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// The most connections on each port; the default is 10,000. Others wait to be accepted.
    pub fn connections(mut self, most: usize) -> Self {
        self.connections = most;
        self
    }

    /// How long a connection stays open without a request; the default is 75 seconds. Let it be longer than the time for
    /// which load balancers keep idle connections. Otherwise they send requests on connections that the server is just
    /// closing. On the gRPC port, connections in HTTP/2 stay open for as long as the client answers pings.
    pub fn idle_timeout(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// How old a connection on the gRPC port becomes: up to a tenth more or less than `age`. Then its client is told to make its next
    /// calls on a new connection, by a `GOAWAY`. After `grace`, calls and streams that have not ended are cut off.
    ///
    /// gRPC clients keep a connection for as long as they can. Without a maximum age, which is the default, a load balancer
    /// that divides connections sends nothing to a server that was added.
    ///
    /// Streams of the quota service (RLQS) do not end by themselves, so they are cut off too. Let each Envoy send its name as
    /// `x-sluicegate-client`: without one, what its old stream had stays held until its time to live has passed.
    pub fn connection_age(mut self, age: Duration, grace: Duration) -> Self {
        self.age = Some(Age { most: age, grace });
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
    /// If there is no port, StatsD is to get statistics that the service does not have, a port cannot be opened, a certificate cannot be read, the number of connections, the idle
    /// timeout or the age of connections is 0, or the admin port is open to the world without a token.
    pub async fn bind(self) -> Result<Bound, ServerError> {
        if self.connections == 0 {
            return Err(ServerError::new("0 connections: expected at least 1"));
        }
        if self.idle.is_zero() {
            return Err(ServerError::new("an idle timeout of 0: expected at least 1 ms"));
        }
        if self.age.is_some_and(|age| age.most.is_zero()) {
            return Err(ServerError::new("an age of connections of 0: expected at least 1 ms"));
        }
        if self.statsd.is_some() && self.service.statistics().is_none() {
            return Err(ServerError::new("StatsD: the service has no statistics"));
        }
        if self.exposed.as_ref().is_some_and(|(_, path)| !metrics::is_path(path)) {
            let what = "the path of metrics has to begin with a slash, and may have no braces";
            return Err(ServerError::new(what));
        }
        if let Some(address) = self.admin {
            check_admin(address, self.token.as_ref())?;
        }
        #[cfg(unix)]
        let has_socket = self.socket.is_some();
        #[cfg(not(unix))]
        let has_socket = false;
        if !has_socket && self.grpc.or(self.http).or(self.admin).is_none() {
            return Err(ServerError::new("every port is off: expected at least one"));
        }
        // Whether the tokens will be told, the file does not say: the clients of `POST /v1/take` reserve what a request
        // may use and settle what it did use, and a proxy that asks about the same request can do neither. So a server
        // with the port starts, and the operator is warned; one without it can only ever charge wrongly, and does not.
        let policies = self.service.rules().map(|rules| rules.live().policies());
        let counts_tokens = policies.as_ref().is_some_and(|policies| policies.counts_tokens());
        if counts_tokens && self.http.is_none() {
            return Err(ServerError::new(format!("{UNSEEN}: expected the HTTP port to be open")));
        } else if counts_tokens {
            tracing::warn!("{UNSEEN}");
        }
        if let Some(rule) = policies.as_ref().and_then(|policies| policies.needs_answer()) {
            tracing::warn!("the rule `{rule}` {UNANSWERED}");
        }
        let tls = self.tls.as_ref().map(LiveCertificate::read).transpose()?;
        let certificate = tls.as_ref().map(LiveCertificate::in_force);
        if let (Some(masters), Some(tls)) = (self.service.masters(), &self.tls) {
            masters.use_tls(tls);
        }
        let (health, grpc) = grpc(&self.service)?;
        let admin = guarded(rooms::admin(&self.service, self.metrics.as_ref()), self.token);
        let (http, plain) = rooms::http(&self.service);
        let path = self.exposed.as_ref().map_or(metrics::PATH, |(_, path)| path);
        let exposed = metrics::routes(path, self.metrics.as_ref(), self.service.statistics());
        let exposed_at = self.exposed.as_ref().map(|(address, _)| *address);
        let is_grpc_only = self.tls.as_ref().is_some_and(|tls| tls.is_grpc_only);
        #[cfg(unix)]
        let socket = self.socket.as_deref().map(Socket::bind).transpose()?.map(|socket| {
            let plainly =
                Connections::new(self.service.health(), grpc.clone(), certificate.clone());
            let shortcut = Some(Shortcut::Unary(Rls::new(&self.service)));
            let (age, idle) = (self.age, self.idle);
            let connections = Connections { shortcut, age, idle, keeps_http_2: true, ..plainly };
            connections.listen_at(socket, self.connections)
        });
        let ports = [
            ("gRPC", self.grpc, grpc, certificate.as_ref()),
            ("HTTP", self.http, http, certificate.as_ref().filter(|_| !is_grpc_only)),
            ("admin", self.admin, admin, None),
            ("metrics", exposed_at, exposed, None),
        ];
        let mut listeners = Vec::new();
        let mut addresses = Addresses::default();
        for (name, address, routes, certificate) in ports {
            let Some(address) = address else { continue };
            let (shortcut, age) = match name {
                "gRPC" => (Some(Shortcut::Unary(Rls::new(&self.service))), self.age),
                "HTTP" => (Some(Shortcut::Http(Forward::new(&self.service), plain.clone())), None),
                _ => (None, None),
            };
            let plainly = Connections::new(self.service.health(), routes, certificate.cloned());
            let (idle, keeps_http_2) = (self.idle, name == "gRPC");
            let connections = Connections { shortcut, age, idle, keeps_http_2, ..plainly };
            let listener = connections.listen(name, address, self.connections).await?;
            match name {
                "gRPC" => addresses.grpc = Some(listener.address()),
                "HTTP" => addresses.http = Some(listener.address()),
                "metrics" => addresses.metrics = Some(listener.address()),
                _ => addresses.admin = Some(listener.address()),
            }
            listeners.push(listener);
        }
        Ok(Bound {
            service: self.service,
            health,
            listeners,
            #[cfg(unix)]
            socket,
            addresses,
            tls,
            metrics: self.metrics,
            statsd: self.statsd,
            delay: self.delay,
            drain: self.drain,
        })
    }
}

/// What the server cannot see.
const UNSEEN: &str = "a rule counts tokens, which only clients of `POST /v1/take` can tell: a proxy that asks about a request \
                      shows no body, so that each request costs the `default` or is answered with an error";

/// What the server learns too late.
const UNANSWERED: &str = "depends on the response, which a proxy that asks about a request does not show: every request counts, and a limit of \
                          requests in flight lets each one go at once. `sluicegate proxy` and clients of `POST /v1/take` show it";

/// Checks that an admin port is on the loopback address, or has a token.
///
/// # Errors
///
/// If it is open to others.
pub(crate) fn check_admin(address: SocketAddr, token: Option<&Token>) -> Result<(), ServerError> {
    if address.ip().is_loopback() || token.is_some() {
        return Ok(());
    }
    Err(ServerError::new(format!(
        "the admin port at {address} is open to others: expected a loopback address such as 127.0.0.1, or a token"
    )))
}

/// The routes of the gRPC port, and how its health is reported.
fn grpc(service: &Service) -> Result<(HealthReporter, Router), ServerError> {
    let (reporter, health) = health_reporter();
    let mut routes: RoutesBuilder = Routes::builder();
    routes.add_service(health);
    rooms::grpc(service, &mut routes);
    let described = rooms::add_reflection(service, &mut routes);
    described.map_err(|error| ServerError::because("gRPC reflection cannot be set up", error))?;
    Ok((reporter, routes.routes().prepare().into_axum_router()))
}
