//! The client's certificate as a key.

use std::net::SocketAddr;

use sluicegate_tests::certificates::Authority;
use sluicegate_tonic::key::PeerCertificate;
use sluicegate_tonic::{First, Ip, Limit, RateLimitLayer};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Code;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity, Server, ServerTlsConfig};
use tonic_health::pb::health_client::HealthClient;
use tonic_health::server::health_reporter;

use crate::servers::{check, client, serve};

fn sign(authority: &Authority) -> Identity {
    let (certificate, key) = authority.sign("localhost");
    Identity::from_pem(certificate, key)
}

/// A server that asks clients for a certificate. One call an hour for each key.
async fn serve_by(authority: &Authority) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = ServerTlsConfig::new()
        .identity(sign(authority))
        .client_ca_root(Certificate::from_pem(authority.pem()))
        .client_auth_optional(true);
    let rule = Limit::per_hour(1).by(First((PeerCertificate, Ip::peer())));
    let (_, health) = health_reporter();
    let server = Server::builder().tls_config(tls).unwrap();
    let server = server.layer(RateLimitLayer::new(rule)).add_service(health);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    address
}

async fn client_of(
    authority: &Authority,
    at: SocketAddr,
    identity: Option<&Identity>,
) -> HealthClient<Channel> {
    let mut tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(authority.pem()))
        .domain_name("localhost");
    if let Some(identity) = identity {
        tls = tls.identity(identity.clone());
    }
    let channel = Channel::from_shared(format!("https://{at}")).unwrap();
    HealthClient::new(channel.tls_config(tls).unwrap().connect().await.unwrap())
}

#[tokio::test]
async fn each_certificate_has_a_budget_of_its_own() {
    let authority = Authority::new("one");
    let address = serve_by(&authority).await;
    let [one, other] = [sign(&authority), sign(&authority)];
    // A client without a certificate is known by its address.
    for identity in [Some(&one), Some(&other), None] {
        for is_admitted in [true, false] {
            let mut client = client_of(&authority, address, identity).await;
            let code = check(&mut client).await.map_err(|status| status.code());
            assert_eq!(code, if is_admitted { Ok(()) } else { Err(Code::ResourceExhausted) });
        }
    }
}

#[tokio::test]
async fn a_connection_without_tls_is_the_servers_mistake() {
    let layer = RateLimitLayer::new(Limit::per_hour(1).by(PeerCertificate));
    let mut client = client(serve(layer).await).await;
    assert_eq!(check(&mut client).await.unwrap_err().code(), Code::Internal);
}
