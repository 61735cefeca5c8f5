use std::error::Error;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use tonic::Status;
use tonic::metadata::MetadataMap;

use super::CapacityService;
use super::driver::Driver;
use super::engine::Engine;
use super::handler::{Call, Check, Handler};
use crate::grpc::channel::GrpcTransport;
use crate::grpc::generated::capacity_server::CapacityServer;
use crate::grpc::mastership::{AlwaysMaster, Elected, Mastership};
use crate::server::Server;

/// Configures a [`CapacityService`].
pub struct CapacityServiceBuilder {
    server: Server,
    mastership: Box<dyn Elected>,
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
            max_resources: 1_000,
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
    pub fn start(self) -> Result<CapacityService, StartError> {
        match (self.server.has_parent(), &self.parent) {
            (true, None) => return Err(StartError::NoParent),
            (false, Some(_)) => return Err(StartError::Parent),
            _ => {}
        }
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

/// Why a service cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// The server leases its capacity, and there is nobody to lease it from.
    NoParent,
    /// The server has its own capacity, and was given a parent.
    Parent,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoParent => "the server leases its capacity from a parent, and none was set",
            Self::Parent => "the server has a parent, so make it by `Server::child`",
        })
    }
}

impl Error for StartError {}
