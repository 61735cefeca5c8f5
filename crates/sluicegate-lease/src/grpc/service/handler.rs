use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::SystemTime;

use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use super::engine::{Engine, NoAnswer};
use crate::grpc::generated as proto;
use crate::grpc::generated::capacity_server::Capacity;
use crate::grpc::wire::{ReadRequest, WriteResponse, check_release, check_request, read_release};
use crate::message;
use crate::pool::AskError;

/// A call of a client, as a [check](super::CapacityServiceBuilder::check) sees it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Call<'a> {
    /// It asks for capacity. Every resource has at least one demand.
    Ask(&'a message::Request),
    /// It gives capacity back.
    Release(&'a message::Release),
}

impl Call<'_> {
    /// Who calls, by its own account.
    pub fn client(&self) -> &str {
        match self {
            Self::Ask(request) => &request.client,
            Self::Release(release) => &release.client,
        }
    }
}

/// See [`CapacityServiceBuilder::check`](super::CapacityServiceBuilder::check).
pub(super) type Check =
    Arc<dyn Fn(&MetadataMap, Call<'_>) -> Result<(), Status> + Send + Sync + 'static>;

/// Translates between messages and the engine.
#[derive(Clone)]
pub(super) struct Handler {
    engine: Arc<Engine>,
    address: Option<Box<str>>,
    check: Option<Check>,
    max_resources: usize,
}

impl Handler {
    pub(super) fn new(
        engine: Arc<Engine>,
        address: Option<Box<str>>,
        check: Option<Check>,
        max_resources: usize,
    ) -> Self {
        Self { engine, address, check, max_resources }
    }

    fn check(&self, metadata: &MetadataMap, call: Call<'_>) -> Result<(), Status> {
        self.check.as_ref().map_or(Ok(()), |check| check(metadata, call))
    }

    async fn answer<A: WriteResponse>(
        &self,
        request: Request<impl ReadRequest>,
    ) -> Result<Response<A>, Status> {
        let connection = connection(&request);
        let (metadata, _, message) = request.into_parts();
        let mut request = message.read()?;
        if request.instance == 0 {
            request.instance = connection;
        }
        check_request(&request, self.max_resources)?;
        self.check(&metadata, Call::Ask(&request))?;
        let is_plain = request.sequence == 0;
        let response = match self.engine.answer(&mut request).await {
            Ok(response) => response,
            Err(NoAnswer::NotMaster(master)) => {
                return Ok(Response::new(A::redirect(master.map(Into::into))));
            }
            Err(NoAnswer::Status(status)) => return Err(status),
        };
        match response.answers.iter().find_map(|answer| answer.as_ref().err()) {
            // A client of Doorman would read an answer of another kind as a grant.
            Some(error) if is_plain => Err(refusal(error)),
            _ => Ok(Response::new(A::write(&request, &response, seconds_since_1970()))),
        }
    }
}

/// The instance of a client that names none, such as one of Doorman: its connection, by the address of the peer.
///
/// After a broken connection, it is a new client. What it had counts until that has ended.
fn connection<T>(request: &Request<T>) -> u64 {
    request.remote_addr().map_or(0, |peer| {
        let mut hasher = DefaultHasher::new();
        peer.hash(&mut hasher);
        // No program draws the same number in a lifetime.
        hasher.finish().max(2)
    })
}

fn refusal(error: &AskError) -> Status {
    Status::resource_exhausted(error.to_string())
}

fn seconds_since_1970() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[tonic::async_trait]
impl Capacity for Handler {
    async fn discovery(
        &self,
        _: Request<proto::DiscoveryRequest>,
    ) -> Result<Response<proto::DiscoveryResponse>, Status> {
        let master = self.engine.master();
        let is_master = master.is_ok();
        let address = match master {
            Ok(()) => self.address.clone(),
            Err(master) => master,
        };
        let mastership = proto::Mastership { master_address: address.map(Into::into) };
        Ok(Response::new(proto::DiscoveryResponse { mastership, is_master }))
    }

    async fn get_capacity(
        &self,
        request: Request<proto::GetCapacityRequest>,
    ) -> Result<Response<proto::GetCapacityResponse>, Status> {
        self.answer(request).await
    }

    async fn get_server_capacity(
        &self,
        request: Request<proto::GetServerCapacityRequest>,
    ) -> Result<Response<proto::GetServerCapacityResponse>, Status> {
        self.answer(request).await
    }

    async fn release_capacity(
        &self,
        request: Request<proto::ReleaseCapacityRequest>,
    ) -> Result<Response<proto::ReleaseCapacityResponse>, Status> {
        let connection = connection(&request);
        let (metadata, _, message) = request.into_parts();
        let mut release = read_release(message);
        if release.instance == 0 {
            release.instance = connection;
        }
        check_release(&release, self.max_resources)?;
        self.check(&metadata, Call::Release(&release))?;
        match self.engine.release(&mut release) {
            Ok(()) => Ok(Response::new(proto::ReleaseCapacityResponse { mastership: None })),
            Err(NoAnswer::Status(status)) => Err(status),
            Err(NoAnswer::NotMaster(master)) => {
                let mastership = proto::Mastership { master_address: master.map(Into::into) };
                let mastership = Some(mastership);
                Ok(Response::new(proto::ReleaseCapacityResponse { mastership }))
            }
        }
    }
}
