//! Real servers and clients, over sockets.

mod doorman;
mod hostile;
mod leases;
mod masters;
mod requests;
mod tree;

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Channel;

use crate::amount::Amount;
use crate::grpc::generated::capacity_client::CapacityClient;
use crate::grpc::generated::capacity_server::{Capacity, CapacityServer};
use crate::grpc::{AlwaysMaster, CapacityService};
use crate::lease::{Lease, LeaseClient};
use crate::server::Server;
use crate::template::{Template, Templates};

/// A server on a free port. It ends when this is dropped.
struct Running {
    address: SocketAddr,
    task: AbortHandle,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Running {
    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A client that sends any message.
    async fn raw(&self) -> CapacityClient<Channel> {
        CapacityClient::connect(self.url()).await.unwrap()
    }
}

/// Finds a free port.
async fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// Serves on a port.
fn serve_on(listener: TcpListener, service: CapacityService) -> Running {
    let address = listener.local_addr().unwrap();
    let server = tonic::transport::Server::builder().add_service(service);
    let task = tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    Running { address, task: task.abort_handle() }
}

async fn serve(service: &CapacityService) -> Running {
    serve_on(listen().await, service.clone())
}

/// Serves answers that are made up.
async fn serve_raw(answers: impl Capacity) -> Running {
    let listener = listen().await;
    let address = listener.local_addr().unwrap();
    let server = tonic::transport::Server::builder().add_service(CapacityServer::new(answers));
    let task = tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    Running { address, task: task.abort_handle() }
}

/// Capacities of 100 units.
fn templates() -> Templates {
    Templates::new([Template::new("*", Amount::units(100)).safe(Amount::units(3))]).unwrap()
}

fn root() -> CapacityService {
    let server = Server::root("root", templates());
    CapacityService::builder(server)
        .mastership(AlwaysMaster::new().fence(1).first())
        .start()
        .unwrap()
}

fn outstanding(service: &CapacityService, resource: &str) -> Amount {
    service.with(|server| server.pool().outstanding(resource))
}

/// Waits until everything is given back. A client that ends does not wait long for the answer.
async fn nothing_is_outstanding(service: &CapacityService, resource: &str) {
    let given_back = async {
        while !outstanding(service, resource).is_zero() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    // A lease that nobody gives back ends after a minute.
    tokio::time::timeout(Duration::from_secs(30), given_back).await.expect("it is given back");
}

/// Leases 30 units, and waits for the first grant.
async fn lease(client: &LeaseClient, resource: &str) -> Lease {
    let mut lease = client.resource(resource).wants(Amount::units(30)).lease().unwrap();
    granted(&mut lease, 30).await;
    lease
}

/// Waits until so much may be used. Nothing in a test takes as long as this waits.
async fn granted(lease: &mut Lease, units: u64) {
    let wait = async {
        while lease.capacity() != Amount::units(units) {
            lease.changed().await.unwrap();
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), wait).await;
    assert!(waited.is_ok(), "it has {:?}", lease.state());
}
