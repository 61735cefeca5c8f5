//! The server: one state, a task that drives it, and the gRPC service in front of it.

mod driver;
mod engine;
mod handler;

use std::convert::Infallible;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::task::{Context, Poll};

use sluicegate_core::adapter::ConfigError;
use tonic::Status;
use tonic::codegen::{Body, BoxFuture, StdError};
use tonic::metadata::MetadataMap;
use tonic::server::NamedService;

use self::driver::Driver;
use self::engine::{Engine, NoAnswer};
use self::handler::{Check, Handler};
use crate::client::MOST_AT_ONCE;
use crate::grpc::channel::GrpcTransport;
use crate::grpc::generated::capacity_server::{CapacityServer, SERVICE_NAME};
use crate::grpc::mastership::{AlwaysMaster, DynMastership, Mastership};
use crate::server::Server;

pub use self::handler::Call;

/// A server of leases, as a gRPC service for a tonic server of your own.
///
/// It drives a [`Server`] with a clock and a task, which ends when the last clone of the service is dropped.
///
/// ```no_run
/// use sluicegate_lease::{AlwaysMaster, Amount, CapacityService, Server, Template, Templates};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let templates = Templates::new([Template::new("*", Amount::units(100))])?;
/// let service = CapacityService::builder(Server::root("root", templates))
///     .mastership(AlwaysMaster::new())
///     .start()?;
/// tonic::transport::Server::builder().add_service(service).serve("[::]:5555".parse()?).await?;
/// # Ok(())
/// # }
/// ```
///
/// It believes each client the name that it gives. Where clients do not trust each other, [check](
/// CapacityServiceBuilder::check) who calls.
#[derive(Clone)]
pub struct CapacityService {
    grpc: CapacityServer<Handler>,
    engine: Arc<Engine>,
    driver: Arc<Driver>,
}

impl CapacityService {
    /// Makes a service that is configured further.
    pub fn builder(server: Server) -> CapacityServiceBuilder {
        CapacityServiceBuilder::new(server)
    }

    /// Looks at the server, or changes it, such as its templates. Requests wait meanwhile.
    pub fn with<T>(&self, use_it: impl FnOnce(&mut Server) -> T) -> T {
        self.engine.with(use_it)
    }

    /// Like [`with`](Self::with), with the time of the server in milliseconds: for clients in the same process that ask
    /// its [pool](Server::pool) themselves.
    ///
    /// They learn at once whether the server is the master: see [`Pool::fence`](crate::Pool::fence). Where one of several
    /// servers is, tell them what they have only after [`confirm`](Self::confirm).
    pub fn with_time<T>(&self, use_it: impl FnOnce(&mut Server, u64) -> T) -> T {
        self.engine.with_time(use_it)
    }

    /// Waits until every client of the pool is written down in the list of the [`Mastership`], as the service does before it
    /// answers a request. So the next master knows of all that this one has granted with that fence.
    ///
    /// # Errors
    /// The list cannot be written, or this server is no longer the master with this fence. What was granted must not be
    /// used.
    pub async fn confirm(&self, fence: u64) -> Result<(), Status> {
        self.engine.confirm(fence).await.map_err(|no_answer| match no_answer {
            NoAnswer::NotMaster(_) => Status::unavailable("this server is not the master any more"),
            NoAnswer::Status(status) => status,
        })
    }

    /// Whether too many clients wait to be written down. It takes no further ones then.
    pub fn is_behind(&self) -> bool {
        self.engine.is_behind()
    }
}

impl fmt::Debug for CapacityService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CapacityService").field("driver", &self.driver).finish_non_exhaustive()
    }
}

impl NamedService for CapacityService {
    const NAME: &'static str = SERVICE_NAME;
}

impl<B> tower_service::Service<http::Request<B>> for CapacityService
where
    B: Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        self.grpc.call(request)
    }
}

/// Configures a [`CapacityService`].
pub struct CapacityServiceBuilder {
    server: Server,
    mastership: Box<dyn DynMastership>,
    parent: Option<GrpcTransport>,
    address: Option<Box<str>>,
    check: Option<Check>,
    max_resources: usize,
    max_message: usize,
}

impl CapacityServiceBuilder {
    pub(super) fn new(server: Server) -> Self {
        Self {
            server,
            mastership: Box::new(AlwaysMaster::new()),
            parent: None,
            address: None,
            check: None,
            max_resources: MOST_AT_ONCE,
            max_message: 1 << 20,
        }
    }

    /// Sets what says which server is the master. The default is [`AlwaysMaster::new`].
    #[must_use]
    pub fn mastership(mut self, mastership: impl Mastership) -> Self {
        self.mastership = Box::new(mastership);
        self
    }

    /// Sets the server that this one leases its capacity from: see [`Server::child`].
    #[must_use]
    pub fn parent(mut self, parent: GrpcTransport) -> Self {
        self.parent = Some(parent.of_server());
        self
    }

    /// Sets the address at which clients reach this server, for those that ask for it by `Discovery`.
    #[must_use]
    pub fn address(mut self, address: impl Into<Box<str>>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// Sets what each call has to pass: whether the caller is who it says, and may have the weights that it asks for.
    /// A call that does not pass changes nothing.
    ///
    /// ```
    /// # use sluicegate_lease::{Amount, Call, CapacityService, Server, Template, Templates};
    /// use tonic::Status;
    ///
    /// # let templates = Templates::new([Template::new("*", Amount::units(100))])?;
    /// CapacityService::builder(Server::root("root", templates)).check(|metadata, call| {
    ///     let token = metadata.get("x-client").and_then(|token| token.to_str().ok());
    ///     if token != Some(call.client()) {
    ///         return Err(Status::permission_denied("the client has another name"));
    ///     }
    ///     match call {
    ///         Call::Ask(request) if request.resources.iter().any(|one| one.demands[0].want.weight > 10) => {
    ///             Err(Status::permission_denied("a weight is at most 10"))
    ///         }
    ///         _ => Ok(()),
    ///     }
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn check(
        mut self,
        check: impl Fn(&MetadataMap, Call<'_>) -> Result<(), Status> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(Arc::new(check));
        self
    }

    /// Sets for how many resources one request may ask. The default is 1,000, which is also as many as a client of
    /// this crate leases.
    #[must_use]
    pub fn max_resources(mut self, max_resources: usize) -> Self {
        self.max_resources = max_resources;
        self
    }

    /// Sets how many bytes a request may have. The default is a mebibyte.
    #[must_use]
    pub fn max_message(mut self, max_message: usize) -> Self {
        self.max_message = max_message;
        self
    }

    /// Starts the task that drives the server.
    ///
    /// # Errors
    /// The server leases its capacity from a parent, and no parent was set, or the other way round.
    ///
    /// # Panics
    /// It is called outside of a Tokio runtime.
    pub fn start(self) -> Result<CapacityService, ConfigError> {
        let is_complete = match (self.server.has_parent(), &self.parent) {
            (true, None) => Err("the server leases its capacity from a parent, and none was set"),
            (false, Some(_)) => Err("the server has a parent, so make it by `Server::child`"),
            _ => Ok(()),
        };
        is_complete.map_err(ConfigError::new)?;
        let seed = RandomState::new().hash_one(0);
        let engine = Arc::new(Engine::new(self.server, self.mastership, seed));
        let handler = Handler::new(engine.clone(), self.address, self.check, self.max_resources);
        let grpc = CapacityServer::new(handler).max_decoding_message_size(self.max_message);
        let driver = Arc::new(Driver::start(engine.clone(), self.parent));
        Ok(CapacityService { grpc, engine, driver })
    }
}

impl fmt::Debug for CapacityServiceBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CapacityServiceBuilder")
            .field("parent", &self.parent)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
