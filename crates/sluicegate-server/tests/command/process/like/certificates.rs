//! Certificates of the gRPC port and of its clients.

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use sluicegate_tests::certificates::Authority;
use sluicegate_tests::servers::Server;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};

use super::super::client::{Client, Sent};
use super::super::sluicegate::{FILE, Sluicegate};
use super::started_with;

/// Whether the server of this authority answers a client with this certificate.
async fn answers(
    server: &Sluicegate,
    authority: &Authority,
    own: Option<&(String, String)>,
) -> bool {
    let trusted = Certificate::from_pem(authority.pem());
    let mut tls = ClientTlsConfig::new().ca_certificate(trusted).domain_name("limits.test");
    if let Some((certificate, key)) = own {
        tls = tls.identity(Identity::from_pem(certificate, key));
    }
    let channel = Channel::from_shared(format!("https://{}", server.grpc)).expect("an address");
    let channel = channel.tls_config(tls).expect("certificates").connect().await;
    let Ok(channel) = channel else { return false };
    let descriptors = vec![RateLimitDescriptor::default()];
    let request = RateLimitRequest { domain: "edge".to_owned(), descriptors, hits_addend: 0 };
    RateLimitServiceClient::new(channel).should_rate_limit(request).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_checked_by_authority_and_name_and_certificates_change_while_it_runs() {
    let (old, new, clients) =
        (Authority::new("old"), Authority::new("new"), Authority::new("clients"));
    let files = tempfile::tempdir().expect("a folder");
    let path = |name: &str| files.path().join(name).to_str().expect("a path").to_owned();
    let write = |(certificate, key): (String, String)| {
        std::fs::write(path("key.pem"), key).expect("a file");
        std::fs::write(path("certificate.pem"), certificate).expect("a file");
    };
    write(old.sign("limits.test"));
    std::fs::write(path("clients.pem"), clients.pem()).expect("a file");
    let redis = Server::start();
    let server = started_with(
        FILE,
        &[
            ("REDIS_SOCKET_TYPE", "tcp"),
            ("REDIS_URL", &redis.address().to_string()),
            ("GRPC_SERVER_USE_TLS", "true"),
            ("GRPC_SERVER_TLS_CERT", &path("certificate.pem")),
            ("GRPC_SERVER_TLS_KEY", &path("key.pem")),
            ("GRPC_CLIENT_TLS_CACERT", &path("clients.pem")),
            ("GRPC_CLIENT_TLS_SAN", "envoy.test"),
        ],
    );
    let envoy = clients.sign("envoy.test");
    assert!(answers(&server, &old, Some(&envoy)).await);
    assert!(!answers(&server, &new, Some(&envoy)).await);
    for other in [None, Some(clients.sign("other.test")), Some(new.sign("envoy.test"))] {
        assert!(!answers(&server, &old, other.as_ref()).await);
    }
    // The port for HTTP has no certificate, as in that service.
    assert_eq!(Client::http_1(server.http).await.send().await, Sent::Answered);

    write(new.sign("limits.test"));
    server.says("certificate read again");
    assert!(answers(&server, &new, Some(&envoy)).await);
    assert!(!answers(&server, &old, Some(&envoy)).await);
}
