//! Servers on free ports, and their clients.

use std::error::Error;
use std::net::SocketAddr;

use axum::Router;
use bytes::Bytes;
use http::{Request, Response};
use sluicegate_tonic::{ManualClock, Memory};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tonic::body::Body;
use tonic::service::Routes;
use tonic::transport::{Channel, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::server::health_reporter;
use tower::{Layer, Service};

/// A store whose time stands still.
pub(crate) fn still() -> Memory {
    Memory::builder().clock(ManualClock::new()).build()
}

/// Serves the health service of tonic behind `layer`.
pub(crate) async fn serve<L, ResBody>(layer: L) -> SocketAddr
where
    L: Layer<Routes> + Clone + Send + 'static,
    L::Service: Service<Request<Body>, Response = Response<ResBody>> + Clone + Send + 'static,
    <L::Service as Service<Request<Body>>>::Future: Send,
    <L::Service as Service<Request<Body>>>::Error: Into<Box<dyn Error + Send + Sync>> + Send,
    ResBody: http_body::Body<Data = Bytes> + Send + 'static,
    ResBody::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (address, incoming) = listen().await;
    let server = Server::builder().accept_http1(true).layer(layer).add_service(health_reporter().1);
    tokio::spawn(server.serve_with_incoming(incoming));
    address
}

/// A free port, and the connections to it.
pub(crate) async fn listen() -> (SocketAddr, TcpListenerStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    (listener.local_addr().unwrap(), TcpListenerStream::new(listener))
}

/// Serves a router of axum.
pub(crate) async fn serve_axum(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    address
}

pub(crate) async fn client(address: SocketAddr) -> HealthClient<Channel> {
    let channel = Channel::from_shared(format!("http://{address}")).unwrap();
    HealthClient::new(channel.connect().await.unwrap())
}

pub(crate) async fn check(client: &mut HealthClient<Channel>) -> Result<(), Status> {
    client.check(HealthCheckRequest::default()).await.map(drop)
}

/// The answer to a request of HTTP/1.1 with this line and these fields. It has no body.
pub(crate) async fn plain(address: SocketAddr, line: &str, fields: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n{fields}\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
