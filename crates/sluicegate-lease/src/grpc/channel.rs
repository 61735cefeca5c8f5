use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use sluicegate_core::adapter::ConfigError;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};

use super::generated::capacity_client::CapacityClient;
use super::wire::{ReadResponse, write_release, write_request, write_server_request};
use crate::lease::{LeaseClient, LeaseClientBuilder, Transport, TransportError};
use crate::message::{Release, Request, Response};

/// Carries requests over gRPC, to the master among one or more servers.
///
/// It connects with the first request, so a server that is not there yet is only a request without an answer. A server
/// that is not the master names the master, and the next request goes there. After a failure, the next server of the
/// list is asked.
#[derive(Clone)]
pub struct GrpcTransport {
    route: Arc<Mutex<Route>>,
    /// Whether it carries the requests of a server, which speaks for clients of its own.
    is_server: bool,
}

/// Where requests go.
struct Route {
    servers: Vec<Uri>,
    /// Which of them is asked.
    at: usize,
    /// The master, if a server has named another one.
    master: Option<Uri>,
    client: Option<CapacityClient<Channel>>,
    /// Counts connections that are not used any more, so that a request knows whether its own still is.
    generation: u64,
    dial: Arc<dyn Fn(Endpoint) -> Channel + Send + Sync>,
}

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(3);
/// Finds connections that have died silently.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// A request that was dropped after this time has failed.
const PATIENCE: Duration = Duration::from_secs(1);

impl GrpcTransport {
    /// Makes a transport to the master among these servers, such as `http://10.0.0.7:5555`.
    ///
    /// # Errors
    /// There is no address, or one that cannot be right.
    pub fn new<S: AsRef<str>>(servers: impl IntoIterator<Item = S>) -> Result<Self, ConfigError> {
        let servers = servers.into_iter().map(|server| address(server.as_ref(), &Scheme::HTTP));
        let servers: Vec<Uri> = servers.collect::<Result<_, _>>()?;
        if servers.is_empty() {
            return Err(ConfigError::new("a client needs the address of at least one server"));
        }
        let route = Route {
            servers,
            at: 0,
            master: None,
            client: None,
            generation: 0,
            dial: Arc::new(|endpoint| endpoint.connect_lazy()),
        };
        Ok(Self { route: Arc::new(Mutex::new(route)), is_server: false })
    }

    /// Sets how connections are made: with certificates of your own, or over something that is not TCP. The channel
    /// has to be lazy, as [`Endpoint::connect_lazy`] makes it.
    #[must_use]
    pub fn dial(self, dial: impl Fn(Endpoint) -> Channel + Send + Sync + 'static) -> Self {
        self.route().dial = Arc::new(dial);
        self
    }

    /// Speaks for the clients of a server.
    pub(super) fn of_server(mut self) -> Self {
        self.is_server = true;
        self
    }

    fn route(&self) -> MutexGuard<'_, Route> {
        self.route.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempt(&self) -> (CapacityClient<Channel>, Attempt) {
        let mut route = self.route();
        let client = route.client();
        let generation = route.generation;
        let attempt = Attempt {
            route: self.route.clone(),
            generation,
            began: Instant::now(),
            has_ended: false,
        };
        (client, attempt)
    }
}

impl fmt::Debug for GrpcTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let route = self.route();
        f.debug_struct("GrpcTransport")
            .field("servers", &route.servers)
            .field("master", &route.master)
            .finish_non_exhaustive()
    }
}

impl Route {
    fn target(&self) -> &Uri {
        self.master.as_ref().unwrap_or(&self.servers[self.at])
    }

    fn client(&mut self) -> CapacityClient<Channel> {
        if let Some(client) = &self.client {
            return client.clone();
        }
        let endpoint = Endpoint::from(self.target().clone())
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(CONNECT)
            .keep_alive_while_idle(true);
        let client = CapacityClient::new((self.dial)(with_tls(endpoint)));
        self.client.insert(client).clone()
    }

    /// Asks another server next, over a new connection.
    fn failed(&mut self) {
        // A master that fails is forgotten first: the server that named it may know the next one.
        if self.master.take().is_none() {
            self.at = (self.at + 1) % self.servers.len();
        }
        self.disconnect();
    }

    /// Lets the next request make another connection. What becomes of requests on this one changes nothing any more.
    fn disconnect(&mut self) {
        self.client = None;
        self.generation += 1;
    }

    /// Asks the master next. Without encryption it is not asked if the first server was to be asked with it.
    fn redirect(&mut self, master: &str) -> Result<(), ConfigError> {
        let scheme = self.servers[self.at].scheme().cloned().unwrap_or(Scheme::HTTP);
        let master = address(master, &scheme)?;
        if scheme == Scheme::HTTPS && master.scheme() != Some(&scheme) {
            return Err(ConfigError::new(format!(
                "the master at `{master}` would be asked without encryption"
            )));
        }
        // The connection to the same server is kept: it has only said what is known.
        if *self.target() != master {
            self.disconnect();
        }
        self.master = Some(master);
        Ok(())
    }
}

#[cfg(feature = "tls")]
pub(crate) fn with_tls(endpoint: Endpoint) -> Endpoint {
    use tonic::transport::ClientTlsConfig;

    if endpoint.uri().scheme() != Some(&Scheme::HTTPS) {
        return endpoint;
    }
    // It fails without a provider of cryptography, which the feature brings along.
    endpoint.clone().tls_config(ClientTlsConfig::new().with_native_roots()).unwrap_or(endpoint)
}

#[cfg(not(feature = "tls"))]
pub(crate) fn with_tls(endpoint: Endpoint) -> Endpoint {
    endpoint
}

/// A request on its way. If it is dropped after a while, the server did not answer in time.
struct Attempt {
    route: Arc<Mutex<Route>>,
    generation: u64,
    began: Instant,
    has_ended: bool,
}

impl Attempt {
    /// Follows the answer.
    fn end<R: ReadResponse>(
        mut self,
        answer: Result<tonic::Response<R>, tonic::Status>,
        resources: &[Box<str>],
    ) -> Result<Response, TransportError> {
        self.has_ended = true;
        let read = || {
            let mut answer = answer.map_err(|status| TransportError::Failed(status.into()))?;
            match answer.get_mut().master() {
                Some(master) => Err(self.redirected(&master)),
                None => answer
                    .into_inner()
                    .read(resources)
                    .map_err(|unreadable| TransportError::Failed(unreadable.into())),
            }
        };
        read().inspect_err(|error| {
            if let TransportError::Failed(_) = error {
                self.failed();
            }
        })
    }

    fn redirected(&self, master: &str) -> TransportError {
        if master.is_empty() {
            return TransportError::Failed("the server does not know who the master is".into());
        }
        match self.on_route(|route| route.redirect(master)) {
            Some(Err(error)) => TransportError::Failed(error.into()),
            Some(Ok(())) | None => TransportError::Redirected,
        }
    }

    fn failed(&self) {
        self.on_route(Route::failed);
    }

    /// Does something unless the connection of this request is not used any more.
    fn on_route<T>(&self, change: impl FnOnce(&mut Route) -> T) -> Option<T> {
        let mut route = self.route.lock().unwrap_or_else(PoisonError::into_inner);
        // Many requests may fail on one connection. The first to do so turns the route, and the rest must not turn it
        // on past servers that were never asked.
        (route.generation == self.generation).then(|| change(&mut route))
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        // A caller that has gone for reasons of its own after a moment says nothing about the server.
        if !self.has_ended && self.began.elapsed() >= PATIENCE {
            self.failed();
        }
    }
}

impl Transport for GrpcTransport {
    fn ask(
        &mut self,
        request: Request,
    ) -> impl Future<Output = Result<Response, TransportError>> + Send + 'static {
        let (mut client, attempt) = self.attempt();
        let is_server = self.is_server;
        async move {
            let names = request.resources.iter().map(|resource| resource.resource.clone());
            let resources: Vec<Box<str>> = names.collect();
            if is_server {
                let answer = client.get_server_capacity(write_server_request(request)).await;
                attempt.end(answer, &resources)
            } else {
                let answer = client.get_capacity(write_request(request)).await;
                attempt.end(answer, &resources)
            }
        }
    }

    fn release(
        &mut self,
        release: Release,
    ) -> impl Future<Output = Result<(), TransportError>> + Send + 'static {
        let (mut client, _) = self.attempt();
        async move {
            let released = client.release_capacity(write_release(release)).await;
            let released = released.map_err(|status| TransportError::Failed(status.into()))?;
            match released.into_inner().mastership {
                Some(_) => Err(TransportError::Redirected),
                None => Ok(()),
            }
        }
    }
}

/// Checks the address of a server, such as `http://10.0.0.7:5555`. Without a scheme, it has that of `default`.
pub(crate) fn address(text: &str, default: &Scheme) -> Result<Uri, ConfigError> {
    let shown = || text.chars().take(MAX_SHOWN).collect::<String>();
    let wrong =
        |problem: &str| Err(ConfigError::new(format!("the address `{}` {problem}", shown())));
    let uri = match text.contains("://") {
        true => text.parse::<Uri>(),
        false => format!("{default}://{text}").parse(),
    };
    let Some(uri) = uri.ok().filter(|uri| uri.host().is_some_and(|host| !host.is_empty())) else {
        return Err(ConfigError::new(format!(
            "`{}` is not the address of a server, such as `http://10.0.0.7:5555`",
            shown()
        )));
    };
    if uri.scheme() == Some(&Scheme::HTTPS) && !cfg!(feature = "tls") {
        return wrong("needs the feature `tls`");
    }
    if ![Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&uri.scheme()) {
        return wrong("does not begin with http:// or https://");
    }
    Ok(uri)
}

/// How much of a wrong address is shown.
const MAX_SHOWN: usize = 100;

impl LeaseClient {
    /// Makes a client with a random name that asks the server at `address`, such as `http://10.0.0.7:5555`.
    ///
    /// It connects in the background, also to a server that is started later.
    ///
    /// # Errors
    /// The address cannot be right.
    ///
    /// # Panics
    /// It is called outside of a Tokio runtime.
    #[cfg_attr(docsrs, doc(cfg(feature = "grpc")))]
    pub fn connect(address: &str) -> Result<Self, ConfigError> {
        Self::builder().connect([address])
    }
}

impl LeaseClientBuilder {
    /// Makes a client that asks the master among the servers at these addresses. Not all of them have to be listed: a
    /// server that is not the master names the master.
    ///
    /// # Errors
    /// There is no address, or one that cannot be right.
    ///
    /// # Panics
    /// It is called outside of a Tokio runtime.
    #[cfg_attr(docsrs, doc(cfg(feature = "grpc")))]
    pub fn connect<S: AsRef<str>>(
        self,
        addresses: impl IntoIterator<Item = S>,
    ) -> Result<LeaseClient, ConfigError> {
        Ok(self.over(GrpcTransport::new(addresses)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_scheme_has_that_of_the_first_server() {
        let uri = address("10.0.0.7:5555", &Scheme::HTTP).unwrap();
        assert_eq!(uri, "http://10.0.0.7:5555");
    }

    #[test]
    fn an_address_that_cannot_be_right_is_named() {
        let error = |text: &str| address(text, &Scheme::HTTP).unwrap_err().to_string();
        assert_eq!(
            error("not an address"),
            "`not an address` is not the address of a server, such as `http://10.0.0.7:5555`"
        );
        assert_eq!(
            error("ftp://host"),
            "the address `ftp://host` does not begin with http:// or https://"
        );
        assert!(error(&"x".repeat(100_000)).len() < 300);
        assert!(error("").contains("is not the address"));
    }
}
