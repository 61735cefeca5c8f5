//! TLS and mutual TLS.

use std::path::Path;
use std::time::Duration;

use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use sluicegate_server::{Addresses, Policies, Reload, Server, Service, Tls};
use sluicegate_tests::certificates::Authority;
use tempfile::TempDir;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};

use super::server::descriptor;

const ONE: &str = "domain: edge
descriptors:
- key: user
  rate_limit: { unit: hour, requests_per_unit: 1 }
";

struct Secured {
    directory: TempDir,
    addresses: Addresses,
    reload: Reload,
}

fn write(directory: &Path, (certificate, key): &(String, String)) {
    std::fs::write(directory.join("server.pem"), certificate).expect("a file");
    std::fs::write(directory.join("server.key"), key).expect("a file");
}

async fn start(certificate: &(String, String), clients: Option<&Authority>) -> Secured {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), certificate);
    start_in(directory, clients).await
}

async fn start_in(directory: TempDir, clients: Option<&Authority>) -> Secured {
    start_with(directory, clients, |tls| tls).await
}

async fn start_with(
    directory: TempDir,
    clients: Option<&Authority>,
    set: impl FnOnce(Tls) -> Tls,
) -> Secured {
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("ratelimit.yaml"), ONE).expect("a file");
    let mut tls = Tls::new(at("server.pem"), at("server.key"));
    if let Some(clients) = clients {
        std::fs::write(at("clients.pem"), clients.pem()).expect("a file");
        tls = tls.clients(at("clients.pem"));
    }
    let policies = Policies::new().envoy(at("ratelimit.yaml")).expect("a valid file");
    let service = Service::builder(policies).build().expect("a service");
    let any = "127.0.0.1:0".parse().expect("an address");
    let bound = Server::new(service).grpc(any).tls(set(tls)).bind().await.expect("a free port");
    let (addresses, reload) = (bound.addresses(), bound.reload());
    tokio::spawn(bound.run(std::future::pending()));
    Secured { directory, addresses, reload }
}

impl Secured {
    async fn ask(&self, trusted: &Authority, own: Option<(String, String)>) -> Result<(), String> {
        let mut tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(trusted.pem()))
            .domain_name("sluicegate.test");
        if let Some((certificate, key)) = own {
            tls = tls.identity(Identity::from_pem(certificate, key));
        }
        let address = format!("https://{}", self.addresses.grpc.expect("a port"));
        let channel = Channel::from_shared(address).expect("an address");
        let channel = channel.tls_config(tls).map_err(|error| error.to_string())?;
        let channel = channel.connect().await.map_err(|error| error.to_string())?;
        let request = RateLimitRequest {
            domain: "edge".to_owned(),
            descriptors: vec![descriptor(&[("user", "a")])],
            hits_addend: 0,
        };
        let answer = RateLimitServiceClient::new(channel).should_rate_limit(request).await;
        answer.map(|_| ()).map_err(|error| error.to_string())
    }
}

#[tokio::test]
async fn a_client_trusts_the_certificate_in_force_which_a_reload_replaces() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let server = start(&old.sign("sluicegate.test"), None).await;
    server.ask(&old, None).await.expect("an answer");
    server.ask(&new, None).await.expect_err("another authority");

    write(server.directory.path(), &new.sign("sluicegate.test"));
    server.reload.now().expect("a certificate");
    server.ask(&new, None).await.expect("an answer");
    server.ask(&old, None).await.expect_err("the old authority");

    // A file that is no certificate leaves the one in force.
    write(server.directory.path(), &("no certificate".to_owned(), "no key".to_owned()));
    let problem = server.reload.now().expect_err("no certificate").to_string();
    assert!(problem.contains("server.pem"), "{problem}");
    server.ask(&new, None).await.expect("an answer");
}

#[tokio::test]
async fn a_certificate_that_cannot_be_read_does_not_keep_policies_from_being_read() {
    let authority = Authority::new("one");
    let server = start(&authority.sign("sluicegate.test"), None).await;
    write(server.directory.path(), &("no certificate".to_owned(), "no key".to_owned()));
    let policies = server.directory.path().join("ratelimit.yaml");
    std::fs::write(&policies, "domain: [").expect("a file");
    let problem = server.reload.now().expect_err("two files that are not valid").to_string();
    assert!(problem.contains("server.pem"), "{problem}");
    assert!(problem.contains("ratelimit.yaml:1:"), "{problem}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_certificate_that_kubernetes_replaces_is_in_force_without_a_signal() {
    use std::os::unix::fs::symlink;

    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    for (hidden, authority) in [("..old", &old), ("..new", &new)] {
        std::fs::create_dir(at(hidden)).expect("a directory");
        write(&at(hidden), &authority.sign("sluicegate.test"));
    }
    symlink("..old", at("..data")).expect("a link");
    for file in ["server.pem", "server.key"] {
        symlink(format!("..data/{file}"), at(file)).expect("a link");
    }
    let server = start_in(directory, None).await;
    let _watching = server.reload.watch().expect("a directory that can be watched");
    server.ask(&old, None).await.expect("an answer");

    let at = |name: &str| server.directory.path().join(name);
    symlink("..new", at("..data_tmp")).expect("a link");
    std::fs::rename(at("..data_tmp"), at("..data")).expect("another link");
    let renewed = async {
        while server.ask(&new, None).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), renewed).await.expect("the new certificate");
    server.ask(&old, None).await.expect_err("the old certificate is gone");
}

#[tokio::test]
async fn mutual_tls_admits_only_clients_of_the_named_authority() {
    let (servers, clients, others) = ["servers", "clients", "others"].map(Authority::new).into();
    let server = start(&servers.sign("sluicegate.test"), Some(&clients)).await;
    server.ask(&servers, Some(clients.sign("client"))).await.expect("an answer");
    server.ask(&servers, None).await.expect_err("no certificate");
    server.ask(&servers, Some(others.sign("client"))).await.expect_err("another authority");
}

#[tokio::test]
async fn mutual_tls_admits_only_clients_with_the_name_that_is_expected() {
    let (servers, clients, others) = ["servers", "clients", "others"].map(Authority::new).into();
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), &servers.sign("sluicegate.test"));
    let named = |tls: Tls| tls.client_name("envoy.test");
    let server = start_with(directory, Some(&clients), named).await;
    server.ask(&servers, Some(clients.sign("envoy.test"))).await.expect("an answer");
    server.ask(&servers, Some(clients.sign("other.test"))).await.expect_err("another name");
    server.ask(&servers, Some(others.sign("envoy.test"))).await.expect_err("another authority");
    server.ask(&servers, None).await.expect_err("no certificate");

    let at = |name: &str| server.directory.path().join(name);
    let nobody = Tls::new(at("server.pem"), at("server.key")).client_name("envoy.test");
    let service = Service::builder(Policies::new()).build().expect("a service");
    let any = "127.0.0.1:0".parse().expect("an address");
    let bound = Server::new(service).grpc(any).tls(nobody).bind().await;
    assert!(bound.is_err_and(|error| error.to_string().contains("authorities")));
}

#[tokio::test]
async fn a_client_without_tls_gets_nothing() {
    let authority = Authority::new("one");
    let server = start(&authority.sign("sluicegate.test"), None).await;
    let address = format!("http://{}", server.addresses.grpc.expect("a port"));
    let mut client = match RateLimitServiceClient::connect(address).await {
        Ok(client) => client,
        Err(_) => return,
    };
    client.should_rate_limit(RateLimitRequest::default()).await.expect_err("no TLS");
}
