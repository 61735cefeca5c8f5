use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use arc_swap::ArcSwap;
use sluicegate::Memory;
use sluicegate::rule::KnownLimits;
use sluicegate::store::{BoxStore, Store};
use sluicegate_config::Live;
use sluicegate_server::admin::{Token, metrics::Metrics};
use sluicegate_server::listen::{Certificate, Listener, check_admin};
use sluicegate_server::{ServerError, Tls};

use crate::admin::{self, AdminPort};
use crate::bound::{Bound, Parts};
use crate::connection::Port;
use crate::connector::Connector;
use crate::forward::Forward;
use crate::stack::Stack;

/// The most connections to the admin port.
const ADMIN_CONNECTIONS: usize = 100;

/// How long requests may take to be answered once the proxy stops.
const DRAIN: Duration = Duration::from_secs(30);

/// A proxy in front of one application, by the policies of a file with `[listen]` and `[upstream]`. No port is open yet.
#[derive(Debug)]
#[must_use = "`bind` opens the ports"]
pub struct Proxy {
    live: Live,
    store: BoxStore,
    address: Option<SocketAddr>,
    admin: Option<SocketAddr>,
    token: Option<Token>,
    metrics: Option<Metrics>,
    delay: Duration,
    drain: Duration,
}

impl Proxy {
    /// A proxy by these policies, which counts in the memory of the process.
    pub fn new(live: Live) -> Self {
        Self {
            live,
            store: BoxStore::new(Memory::new()),
            address: None,
            admin: None,
            token: None,
            metrics: None,
            delay: Duration::ZERO,
            drain: DRAIN,
        }
    }

    /// Counts in this store.
    pub fn store<S>(mut self, store: S) -> Self
    where
        S: Store<Future: Send + 'static> + Send + Sync + 'static,
    {
        self.store = BoxStore::new(store);
        self
    }

    /// Listens here, and not at the address in `[listen]`.
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// Serves health and metrics here, without TLS. They are never on the proxied port, where every path is the
    /// application's.
    pub fn admin(mut self, address: SocketAddr) -> Self {
        self.admin = Some(address);
        self
    }

    /// Asks clients of `/metrics` for this token. An admin port that is not on the loopback address needs one. Health is
    /// open to all who reach the port.
    pub fn token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }

    /// Shows these metrics on the admin port.
    pub fn metrics(mut self, metrics: &Metrics) -> Self {
        self.metrics = Some(metrics.clone());
        self
    }

    /// How long to go on as before once it is asked to stop, while `/readyz` says that it is not ready. Give load
    /// balancers as long as they need to notice. The default is no time.
    pub fn drain_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// How long requests may take to be answered, and upgraded connections to be closed, after that. The default is 30
    /// seconds.
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Opens the ports. Connections wait until [`Bound::run`] serves them.
    ///
    /// # Errors
    ///
    /// If the file has no `[listen]` or no `[upstream]`, the store cannot keep a limit, a port cannot be opened, a
    /// certificate cannot be read, no authority of the system can be read for an application with TLS, or the admin port is
    /// open to the world without a token.
    pub async fn bind(self) -> Result<Bound, ServerError> {
        let policies = self.live.policies();
        let (Some(listen), Some(upstream)) = (policies.listen(), policies.upstream()) else {
            return Err(ServerError::new(
                "the file does not say where to listen, or which application gets the requests: expected `[listen]` \
                 with an `address`, and `[upstream]` with a `url`",
            ));
        };
        let (mut listen, upstream) = (listen.clone(), upstream.clone());
        listen.address = self.address.unwrap_or(listen.address);
        self.keep_limits()?;
        if let Some(address) = self.admin {
            check_admin(address, self.token.as_ref())?;
        }
        let tls = listen.tls.clone().map(|(certificate, key, clients)| {
            let tls = Tls::new(certificate, key);
            match clients {
                Some(authorities) => tls.clients(authorities),
                None => tls,
            }
        });
        let certificate = tls.as_ref().map(Tls::acceptor).transpose()?;
        let certificate: Option<Certificate> =
            certificate.map(|acceptor| Arc::new(ArcSwap::from_pointee(acceptor)));
        let connector = Connector::new(&upstream)?;
        let forward = Forward::new(connector.clone(), upstream.clone(), listen.clone())?;
        let stack = Stack::new(&self.live, self.store, &listen, forward);
        let (address, most) = (listen.address, listen.connections);
        let port = Port::new(stack, listen, certificate.clone(), self.live.clone());
        let proxied = Listener::bind("proxied", address, port, most).await?;
        let stopping = Arc::new(AtomicBool::new(false));
        let admin = match self.admin {
            Some(address) => {
                let routes = admin::routes(&upstream, &stopping, self.metrics.as_ref(), self.token);
                let port = AdminPort::new(routes);
                Some(Listener::bind("admin", address, port, ADMIN_CONNECTIONS).await?)
            }
            None => None,
        };
        Ok(Bound::new(Parts {
            live: self.live,
            proxied,
            admin,
            tls: tls.zip(certificate),
            connector,
            metrics: self.metrics,
            stopping,
            delay: self.delay,
            drain: self.drain,
        }))
    }

    /// Refuses files with limits that the store cannot keep, now and later.
    fn keep_limits(&self) -> Result<(), ServerError> {
        let mut unkept = Vec::new();
        self.live.each_limit(&mut |limit| {
            if let Err(error) = self.store.check(limit) {
                unkept.push(format!("the store cannot keep the limit `{limit}`: {error}"));
            }
        });
        if !unkept.is_empty() {
            return Err(ServerError::new(unkept.join("\n")));
        }
        let kept = self.live.kept_by(self.store.clone());
        kept.map_err(|error| ServerError::new(error.to_string()))
    }
}
