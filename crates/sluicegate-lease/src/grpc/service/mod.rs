//! The server: one state, a task that drives it, and the gRPC service in front of it.

mod builder;
mod driver;
mod engine;
mod handler;
mod records;

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use tonic::codegen::{Body, BoxFuture, StdError};
use tonic::server::NamedService;

use self::driver::Driver;
use self::engine::Engine;
use self::handler::Handler;
use super::generated::capacity_server::{CapacityServer, SERVICE_NAME};
use crate::server::Server;

pub use self::builder::{CapacityServiceBuilder, StartError};
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
    /// They learn at once whether the server is the master. Nothing waits until they are written down, so elect no
    /// master among several servers for them.
    pub fn with_time<T>(&self, use_it: impl FnOnce(&mut Server, u64) -> T) -> T {
        self.engine.with_time(use_it)
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
