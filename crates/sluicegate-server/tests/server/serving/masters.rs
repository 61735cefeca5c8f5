//! Servers of which one divides the capacity, and the others pass calls on to it.

use std::error::Error;
use std::time::Duration;

use envoy_types::pb::envoy::service::rate_limit_quota::v3::RateLimitQuotaUsageReports;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_service_client::RateLimitQuotaServiceClient;
use sluicegate_lease::pool::Change;
use sluicegate_lease::{Amount, LeaseClient, Mastership, Role};
use sluicegate_server::{Policies, Server, Service, Tls};
use sluicegate_tests::certificates::Authority;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};
use tonic::{Code, Request};

use super::quotas::{CAPACITY, Envoy};
use super::server::{Running, serve};

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A mastership that the test decides on.
struct Decided(watch::Sender<Role>);

/// A mastership that is the test's once it was given up.
struct GivenUp(watch::Receiver<Role>, Option<oneshot::Sender<()>>);

impl Mastership for GivenUp {
    fn roles(&self) -> watch::Receiver<Role> {
        self.0.clone()
    }

    async fn record(&self, _: Vec<Change>) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        let _ = self.1.take().map(|dropped| dropped.send(()));
    }
}

impl Mastership for Decided {
    fn roles(&self) -> watch::Receiver<Role> {
        self.0.subscribe()
    }

    async fn record(&self, _: Vec<Change>) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

fn master(fence: u32) -> Role {
    Role::Master { fence, until: None, known: Some([].into()) }
}

fn other(address: &str) -> Role {
    Role::Other { master: Some(address.into()) }
}

async fn start(role: Role) -> (Running, watch::Sender<Role>) {
    let role = watch::Sender::new(role);
    let mastership = Decided(role.clone());
    let read = |file: &std::path::Path| Policies::new().capacity(file);
    let set = |service: sluicegate_server::ServiceBuilder| service.mastership(mastership);
    (serve("capacity.toml", CAPACITY, read, set).await, role)
}

/// Why a stream has ended.
async fn end(mut envoy: Envoy) -> Option<Code> {
    let end = async {
        loop {
            match envoy.orders.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(status) => return Some(status.code()),
            }
        }
    };
    timeout(PATIENCE, end).await.expect("the stream ends")
}

/// A stream that the other server answers.
async fn passed(server: &Running) -> Envoy {
    let mut envoy = Envoy::connect(server).await;
    envoy.report("edge", "db", 5);
    let order = timeout(PATIENCE, envoy.orders.message()).await.expect("an order");
    assert!(order.expect("a message").is_some());
    envoy
}

#[tokio::test]
async fn any_server_takes_the_calls_of_any_client() {
    let (one, _one) = start(master(1)).await;
    let (two, _two) = start(other(&one.grpc)).await;
    for server in [&one, &two] {
        let client = LeaseClient::connect(&server.grpc).expect("an address");
        let mut lease = client.resource("db").wants(Amount::units(300)).lease().expect("a lease");
        let granted = async {
            while lease.capacity() < Amount::units(300) {
                lease.changed().await.expect("a client");
            }
        };
        timeout(PATIENCE, granted).await.expect("capacity");
    }
    passed(&two).await;
}

#[tokio::test]
async fn a_master_ends_only_after_it_has_resigned() {
    let (role, roles) = watch::channel(master(1));
    let (dropped, is_given_up) = oneshot::channel();
    let read = |file: &std::path::Path| Policies::new().capacity(file);
    let set = |service: sluicegate_server::ServiceBuilder| {
        service.mastership(GivenUp(roles, Some(dropped)))
    };
    let mut server = serve("capacity.toml", CAPACITY, read, set).await;
    let resigning = tokio::spawn(async move {
        is_given_up.await.expect("a mastership");
        // Its task has told the others.
        drop(role);
    });
    drop(server.stop.take());
    timeout(PATIENCE, server.served).await.expect("it ends").expect("no panic");
    assert!(resigning.is_finished());
}

#[tokio::test]
async fn a_stream_that_is_passed_on_ends_with_the_mastership() {
    // This server hears of another master first.
    let (one, role_of_master) = start(master(1)).await;
    let (two, role) = start(other(&one.grpc)).await;
    let envoy = passed(&two).await;
    role.send_replace(Role::Other { master: None });
    assert_eq!(end(envoy).await, Some(Code::Unavailable));
    // It is elected itself.
    role.send_replace(other(&one.grpc));
    let envoy = passed(&two).await;
    role.send_replace(master(2));
    assert_eq!(end(envoy).await, Some(Code::Unavailable));
    // The master hears of it first.
    let (two, _two) = start(other(&one.grpc)).await;
    let envoy = passed(&two).await;
    role_of_master.send_replace(Role::Other { master: None });
    end(envoy).await;
}

#[tokio::test]
async fn streams_that_are_passed_on_do_not_keep_a_server_from_stopping() {
    let (one, _one) = start(master(1)).await;
    let (mut two, _two) = start(other(&one.grpc)).await;
    let envoy = passed(&two).await;
    drop(two.stop.take());
    end(envoy).await;
    timeout(PATIENCE, two.served).await.expect("it stops").expect("it ends well");
}

#[tokio::test]
async fn servers_that_take_each_other_for_the_master_do_not_pass_a_call_on_in_circles() {
    let (one, role) = start(Role::Other { master: None }).await;
    let (two, _two) = start(other(&one.grpc)).await;
    role.send_replace(other(&two.grpc));
    let client = LeaseClient::connect(&one.grpc).expect("an address");
    let _lease = client.resource("db").wants(Amount::units(1)).lease().expect("a lease");
    let refused = async {
        while client.problem().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, refused).await.expect("a refusal");
    let problem = client.problem();
    assert!(format!("{problem:?}").contains("does not do so any more"), "{problem:?}");
}

#[tokio::test]
async fn a_client_that_says_its_call_was_passed_on_is_refused_by_all_but_the_master() {
    let (one, _one) = start(master(1)).await;
    let (two, _two) = start(other(&one.grpc)).await;
    for (server, is_refused) in [(&one, false), (&two, true)] {
        let client = RateLimitQuotaServiceClient::connect(server.grpc.clone()).await;
        let reports = tokio_stream::pending::<RateLimitQuotaUsageReports>();
        let mut call = Request::new(reports);
        let field = "127.0.0.1:1".parse().expect("a value");
        call.metadata_mut().insert("x-sluicegate-passed-on-for", field);
        let called = client.expect("a connection").stream_rate_limit_quotas(call).await;
        let refused = called.err().map(|status| status.code());
        assert_eq!(refused, is_refused.then_some(Code::Unavailable));
    }
}

#[tokio::test]
async fn a_call_waits_for_the_next_master_where_the_last_one_is_away() {
    let away = "http://127.0.0.1:1";
    let (one, _one) = start(master(1)).await;
    // The next one is another server, or the one that was called, or there is none for some time.
    for next in [Some(other(&one.grpc)), Some(master(2)), None] {
        let (two, role) = start(other(away)).await;
        let opened = tokio::spawn(async move {
            let client = RateLimitQuotaServiceClient::connect(two.grpc.clone()).await;
            let reports = tokio_stream::pending::<RateLimitQuotaUsageReports>();
            client.expect("a connection").stream_rate_limit_quotas(reports).await.map(|_| ())
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!opened.is_finished());
        let is_next = next.is_some();
        if let Some(next) = next {
            role.send_replace(next);
        }
        let opened = timeout(PATIENCE, opened).await.expect("an answer").expect("a task");
        assert_eq!(opened.is_ok(), is_next);
        if let Err(status) = opened {
            assert_eq!(status.code(), Code::Unavailable);
            let said = format!("{away} cannot be reached");
            assert!(status.message().contains(&said), "{status}");
        }
    }
}

#[tokio::test]
async fn servers_with_mutual_tls_show_their_certificates_to_each_other() {
    assert_eq!(order_over_mutual_tls("localhost", "localhost", None).await, Ok(()));
}

/// As pods are, whose addresses no certificate has.
#[tokio::test]
async fn servers_are_called_by_addresses_that_their_certificates_lack() {
    let name = "limits.example";
    assert_eq!(order_over_mutual_tls("127.0.0.1", name, Some(name)).await, Ok(()));
    for other in [None, Some("other.example")] {
        let refused = order_over_mutual_tls("127.0.0.1", name, other).await.expect_err("an error");
        assert!(refused.contains("certificate"), "{refused}");
    }
}

/// Calls a server with a certificate for `name`. It passes the call on to the master at `host`, in whose certificate it
/// expects `expected`.
async fn order_over_mutual_tls(
    host: &str,
    name: &str,
    expected: Option<&str>,
) -> Result<(), String> {
    let authority = Authority::new("all");
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let (certificate, key) = authority.sign(name);
    std::fs::write(at("capacity.toml"), CAPACITY).expect("a file");
    std::fs::write(at("server.pem"), &certificate).expect("a file");
    std::fs::write(at("server.key"), &key).expect("a file");
    std::fs::write(at("clients.pem"), authority.pem()).expect("a file");
    let start = async |role: Role| {
        let role = watch::Sender::new(role);
        let policies = Policies::new().capacity(at("capacity.toml")).expect("a valid file");
        let service = Service::builder(policies).mastership(Decided(role.clone())).build();
        let any = "127.0.0.1:0".parse().expect("an address");
        let mut tls = Tls::new(at("server.pem"), at("server.key")).clients(at("clients.pem"));
        if let Some(expected) = expected {
            tls = tls.name_of_others(expected);
        }
        let server = Server::new(service.expect("a service")).grpc(any).tls(tls);
        let bound = server.bind().await.expect("a free port");
        let port = bound.addresses().grpc.expect("a port").port();
        tokio::spawn(bound.run(std::future::pending()));
        (format!("https://{host}:{port}"), role)
    };
    let (one, _one) = start(master(1)).await;
    let (two, _two) = start(other(&one)).await;
    let tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(authority.pem()))
        .identity(Identity::from_pem(certificate, key))
        .domain_name(name);
    let channel = Channel::from_shared(two).expect("an address").tls_config(tls).expect("TLS");
    let channel = channel.connect().await.expect("a connection");
    let reports = tokio_stream::pending::<RateLimitQuotaUsageReports>();
    let mut client = RateLimitQuotaServiceClient::new(channel.clone());
    let opened = timeout(PATIENCE, client.stream_rate_limit_quotas(reports)).await;
    opened.expect("an answer").map_err(|status| status.message().to_owned())?;
    let mut envoy = Envoy::over(channel).await;
    envoy.report("edge", "db", 5);
    let order = timeout(PATIENCE, envoy.orders.message()).await.expect("an order");
    assert!(order.expect("a message").is_some());
    Ok(())
}
