use std::net::SocketAddr;

use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_server::{
    AggregatedDiscoveryService, AggregatedDiscoveryServiceServer,
};
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse,
};
use envoy_types::pb::google::protobuf::Any;
use envoy_types::pb::ratelimit::config::ratelimit::v3::{RateLimitPolicy, RateLimitReplace};
use sluicegate_core::rule::KnownLimits as _;
use sluicegate_tests::certificates::Authority;
use sluicegate_tests::log::Log;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic::{Response, Streaming};

use super::*;
use crate::Policies;

/// A management server that does what a test says.
struct Management(mpsc::Sender<Stream>);

/// A stream of a client, with the header `x-tenant` of its call.
struct Stream {
    tenant: Option<String>,
    requests: Streaming<DiscoveryRequest>,
    responses: mpsc::Sender<Result<DiscoveryResponse, tonic::Status>>,
}

type Outgoing<T> = ReceiverStream<Result<T, tonic::Status>>;

#[tonic::async_trait]
impl AggregatedDiscoveryService for Management {
    type StreamAggregatedResourcesStream = Outgoing<DiscoveryResponse>;
    type DeltaAggregatedResourcesStream = Outgoing<DeltaDiscoveryResponse>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, tonic::Status> {
        let (responses, sent) = mpsc::channel(8);
        let tenant = request.metadata().get("x-tenant").and_then(|value| value.to_str().ok());
        let tenant = tenant.map(str::to_owned);
        let stream = Stream { tenant, requests: request.into_inner(), responses };
        self.0.send(stream).await.map_err(|_| tonic::Status::unavailable("the test is over"))?;
        Ok(Response::new(ReceiverStream::new(sent)))
    }

    async fn delta_aggregated_resources(
        &self,
        _: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, tonic::Status> {
        Err(tonic::Status::unimplemented("only the state of the world"))
    }
}

impl Management {
    /// Serves on a free port, and returns the streams of clients.
    async fn start() -> (SocketAddr, mpsc::Receiver<Stream>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        (address, Self::serve(listener))
    }

    fn serve(listener: TcpListener) -> mpsc::Receiver<Stream> {
        Self::serve_by(Server::builder(), listener)
    }

    fn serve_by(mut server: Server, listener: TcpListener) -> mpsc::Receiver<Stream> {
        let (streams, accepted) = mpsc::channel(8);
        let service = AggregatedDiscoveryServiceServer::new(Self(streams));
        let server = server.add_service(service);
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        accepted
    }
}

impl Stream {
    async fn request(&mut self) -> DiscoveryRequest {
        self.requests.message().await.expect("a stream").expect("a request")
    }

    /// Sends these configurations as a version, and returns what the client says.
    async fn send(&mut self, version: &str, configs: &[RateLimitConfig]) -> DiscoveryRequest {
        let type_url = RateLimitConfig::type_url();
        let resource = |config: &RateLimitConfig| Any {
            type_url: type_url.clone(),
            value: config.encode_to_vec(),
        };
        let response = DiscoveryResponse {
            version_info: version.to_owned(),
            resources: configs.iter().map(resource).collect(),
            type_url: type_url.clone(),
            nonce: format!("nonce of {version}"),
            ..DiscoveryResponse::default()
        };
        self.responses.send(Ok(response)).await.expect("a client");
        let answer = self.request().await;
        assert_eq!(answer.response_nonce, format!("nonce of {version}"));
        answer
    }
}

/// A domain with a limit of `count` requests an hour for each user.
fn config(domain: &str, count: u32) -> RateLimitConfig {
    let limit = RateLimitPolicy {
        unit: RateLimitUnit::Hour as i32,
        requests_per_unit: count,
        ..RateLimitPolicy::default()
    };
    let user = RateLimitDescriptor {
        key: "user".to_owned(),
        rate_limit: Some(limit),
        ..RateLimitDescriptor::default()
    };
    RateLimitConfig { name: domain.to_owned(), domain: domain.to_owned(), descriptors: vec![user] }
}

fn client(address: SocketAddr) -> Xds {
    Xds::new(&format!("http://{address}"), "this one").expect("a URL")
}

/// The limits in force.
fn limits(policies: &Policies) -> Vec<String> {
    let mut limits = Vec::new();
    for domain in policies.domains().iter() {
        domain.each_limit(&mut |limit| limits.push(format!("{} {limit}", domain.name())));
    }
    limits.sort();
    limits
}

const THREE: &str = "a fixed 3/hour named \"user\" carried";

#[tokio::test]
async fn what_a_server_sends_comes_into_force_and_is_acknowledged() {
    let (address, mut streams) = Management::start().await;
    let policies = Policies::new();
    let xds = client(address).metadata(r#"{"zone": ["a", 1, true, null]}"#).expect("an object");
    let mut following = policies.follow(xds.header("X-Tenant", "blue").expect("a header"));
    let mut stream = streams.recv().await.expect("a stream");
    assert_eq!(stream.tenant.as_deref(), Some("blue"));
    let hello = stream.request().await;
    assert_eq!((&*hello.version_info, &*hello.response_nonce), ("", ""));
    assert_eq!(hello.type_url, "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig");
    let node = hello.node.expect("a node");
    assert_eq!(node.id, "this one");
    assert!(node.metadata.is_some_and(|metadata| metadata.fields.contains_key("zone")));

    let answer = stream.send("1", &[config("a", 3), config("b", 4)]).await;
    assert_eq!((&*answer.version_info, answer.error_detail), ("1", None));
    following.first().await;
    assert_eq!(limits(&policies).len(), 2);
    // Each response is the state of the world: what it does not have is gone.
    assert_eq!(stream.send("2", &[config("a", 3)]).await.version_info, "2");
    assert_eq!(limits(&policies), [THREE]);
}

#[tokio::test]
async fn what_is_not_valid_is_refused_with_its_place_and_the_old_stays() {
    let (address, mut streams) = Management::start().await;
    let policies = Policies::new();
    let _following = policies.follow(client(address));
    let mut stream = streams.recv().await.expect("a stream");
    stream.request().await;
    stream.send("1", &[config("a", 3)]).await;
    let mut unknown = config("b", 9);
    unknown.descriptors[0].rate_limit.as_mut().expect("a limit").unit = 99;
    let mut nested = config("c", 9);
    nested.descriptors = vec![RateLimitDescriptor {
        key: "outer".to_owned(),
        descriptors: vec![RateLimitDescriptor::default()],
        ..RateLimitDescriptor::default()
    }];
    for (version, bad, place) in [
        ("2", vec![unknown], "xds: b"),
        ("3", vec![nested], "descriptors[0].descriptors[0]"),
        ("4", vec![config("a", 5), config("a", 6)], "another file has the domain `a`"),
        ("5", vec![config("", 5)], "domain"),
    ] {
        let answer = stream.send(version, &bad).await;
        assert_eq!(answer.version_info, "1", "{version}");
        let error = answer.error_detail.expect("a reason");
        assert!(error.code == 3 && error.message.contains(place), "{error:?}");
        assert_eq!(limits(&policies), [THREE]);
    }
    // What was refused does not stand in the way of the next.
    assert_eq!(stream.send("6", &[config("a", 4)]).await.version_info, "6");
    assert_ne!(limits(&policies), [THREE]);
}

#[tokio::test]
async fn a_file_that_is_broken_does_not_stand_in_the_way_of_what_a_server_sends() {
    let (address, mut streams) = Management::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("own.yaml");
    let own = "domain: own\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 1 } }]";
    std::fs::write(&file, own).expect("a file");
    let policies = Policies::new().envoy(&file).expect("a valid file");
    let _following = policies.follow(client(address));
    let mut stream = streams.recv().await.expect("a stream");
    stream.request().await;
    std::fs::write(&file, "domain: own\ndescriptors: 7").expect("a file");
    assert!(policies.reload().is_err());
    assert_eq!(stream.send("1", &[config("a", 3)]).await.version_info, "1");
    assert_eq!(limits(&policies).len(), 2);
    // What is wrong with the file is told still, and what was sent stays when it is mended.
    assert!(policies.reload().is_err());
    std::fs::write(&file, own.replace("own", "other")).expect("a file");
    policies.reload().expect("a valid file");
    assert_eq!(limits(&policies).len(), 2);
    assert_eq!(stream.send("2", &[]).await.version_info, "2");
    assert_eq!(limits(&policies).len(), 1);
}

#[tokio::test]
async fn what_was_refused_is_acknowledged_when_a_file_makes_room_for_it() {
    let (address, mut streams) = Management::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("own.yaml");
    let own =
        "domain: a\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 1 } }]";
    std::fs::write(&file, own).expect("a file");
    let policies = Policies::new().envoy(&file).expect("a valid file");
    let mut following = policies.follow(client(address));
    let mut stream = streams.recv().await.expect("a stream");
    stream.request().await;
    let refused = stream.send("1", &[config("a", 3)]).await;
    assert_eq!((&*refused.version_info, refused.error_detail.is_some()), ("", true));
    std::fs::write(&file, own.replace("domain: a", "domain: b")).expect("a file");
    policies.reload().expect("a valid file");
    let late = stream.request().await;
    assert_eq!((&*late.version_info, &*late.response_nonce), ("1", "nonce of 1"));
    assert_eq!(late.error_detail, None);
    following.first().await;
    assert_eq!(limits(&policies).len(), 2);
    assert_eq!(stream.send("2", &[config("c", 3)]).await.version_info, "2");
}

#[tokio::test]
async fn a_server_that_is_away_changes_nothing_and_is_called_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let policies = Policies::new();
    let mut following = policies.follow(client(listener.local_addr().expect("an address")));
    // Nobody answers at first.
    drop(listener.accept().await.expect("a connection"));
    let mut streams = Management::serve(listener);
    let mut stream = streams.recv().await.expect("a stream");
    stream.request().await;
    stream.send("1", &[config("a", 3)]).await;
    following.first().await;
    // It ends the stream, and is called again by a client that says what it has.
    drop(stream);
    let mut stream = streams.recv().await.expect("another stream");
    let hello = stream.request().await;
    assert_eq!((&*hello.version_info, &*hello.response_nonce), ("1", ""));
    assert_eq!(limits(&policies), [THREE]);
    // An error ends a stream as well.
    stream.responses.send(Err(tonic::Status::internal("broken"))).await.expect("a client");
    let mut stream = streams.recv().await.expect("another stream");
    stream.request().await;
    assert_eq!(limits(&policies), [THREE]);
    // Nothing comes into force once nobody follows.
    drop(following);
    let ended = stream.requests.message().await;
    assert!(!matches!(ended, Ok(Some(_))), "{ended:?}");
    assert_eq!(limits(&policies), [THREE]);
}

/// The clock moves when nobody has anything to do.
#[tokio::test(start_paused = true)]
async fn a_server_that_accepts_and_says_nothing_is_called_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let authorities = directory.path().join("ca.pem");
    std::fs::write(&authorities, Authority::new("theirs").pem()).expect("a file");
    let mut tls = UpstreamTls::default();
    tls.authorities = Some(authorities);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let secure = Xds::new(&format!("https://{address}"), "").expect("a URL").tls(tls);
    for xds in [secure.expect("valid files"), client(address)] {
        let _following = Policies::new().follow(xds);
        let mut silent = Vec::new();
        for _ in 0..3 {
            let soon = tokio::time::timeout(Duration::from_secs(60), listener.accept());
            silent.push(soon.await.expect("another connection").expect("a connection"));
        }
    }
}

/// A server that comes back as it was, and is lost again.
#[tokio::test]
async fn each_loss_of_a_server_that_has_answered_is_a_warning() {
    let log = Log::of("sluicegate_server::policies::xds");
    let _attached = log.attach();
    let (address, mut streams) = Management::start().await;
    let pause = Duration::from_millis(1);
    let _following = Policies::new().follow(client(address).backoff(pause, pause));
    for _ in 0..3 {
        let mut stream = streams.recv().await.expect("a stream");
        stream.request().await;
        stream.send("1", &[config("a", 3)]).await;
    }
    streams.recv().await.expect("another stream");
    let lines = log.taken();
    assert!(lines.len() == 3 && lines.iter().all(|line| line.starts_with("WARN ")), "{lines:?}");
}

/// What is sent each time may have many limits, which have to be read.
#[tokio::test]
async fn a_server_that_answers_and_ends_each_stream_is_called_ever_less_often() {
    let (address, mut streams) = Management::start().await;
    let pauses = (Duration::from_millis(20), Duration::from_secs(600));
    let _following = Policies::new().follow(client(address).backoff(pauses.0, pauses.1));
    let began = std::time::Instant::now();
    for _ in 0..6 {
        let mut stream = streams.recv().await.expect("a stream");
        stream.request().await;
        stream.send("1", &[config("a", 3)]).await;
    }
    // At least half of 20, 40, 80, 160 and 320 ms.
    assert!(began.elapsed() >= Duration::from_millis(310), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_message_that_is_too_large_ends_the_stream_and_what_is_in_force_stays() {
    let (address, mut streams) = Management::start().await;
    let policies = Policies::new();
    let pause = Duration::from_millis(1);
    let _following = policies.follow(client(address).max_message(1_000).backoff(pause, pause));
    let mut stream = streams.recv().await.expect("a stream");
    stream.request().await;
    stream.send("1", &[config("a", 3)]).await;
    let large: Vec<_> = (0..100).map(|at| config(&format!("domain-{at}"), 9)).collect();
    let resources = large
        .iter()
        .map(|config| Any { type_url: RateLimitConfig::type_url(), value: config.encode_to_vec() });
    let response = DiscoveryResponse {
        version_info: "2".to_owned(),
        resources: resources.collect(),
        type_url: RateLimitConfig::type_url(),
        ..DiscoveryResponse::default()
    };
    stream.responses.send(Ok(response)).await.expect("a client");
    let mut stream = streams.recv().await.expect("another stream");
    assert_eq!(stream.request().await.version_info, "1");
    assert_eq!(limits(&policies), [THREE]);
}

#[tokio::test]
async fn a_thousand_configurations_that_change_never_leave_a_domain_without_its_limit() {
    let (address, mut streams) = Management::start().await;
    let policies = Policies::new();
    let mut following = policies.follow(client(address));
    let mut stream = streams.recv().await.expect("a stream");
    stream.request().await;
    let world =
        |count| (0..1_000).map(|at| config(&format!("domain-{at}"), count)).collect::<Vec<_>>();
    stream.send("0", &world(1)).await;
    following.first().await;
    let reader = {
        let policies = policies.clone();
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let is_over = std::sync::Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut looks = 0_u64;
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let domains = policies.domains();
                assert!(domains.named("domain-7").is_some_and(|domain| domain.len() == 1));
                assert_eq!(domains.iter().count(), 1_000);
                looks += 1;
            }
            looks
        });
        (stop, thread)
    };
    for version in 1..=5 {
        assert_eq!(stream.send(&version.to_string(), &world(version)).await.error_detail, None);
    }
    reader.0.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(reader.1.join().expect("no domain was missing") > 0);
    assert!(limits(&policies).iter().all(|limit| limit.contains("fixed 5/hour")));
}

#[test]
fn a_descriptor_is_written_as_a_file_has_it() {
    let limit = RateLimitPolicy {
        unit: RateLimitUnit::Week as i32,
        requests_per_unit: 7,
        unlimited: false,
        name: "weekly".to_owned(),
        replaces: vec![RateLimitReplace { name: "daily".to_owned() }],
    };
    let inner = RateLimitDescriptor {
        key: "path".to_owned(),
        value: "a \"quoted\"\n*".to_owned(),
        rate_limit: Some(limit),
        shadow_mode: true,
        detailed_metric: true,
        quota_mode: true,
        ..RateLimitDescriptor::default()
    };
    let free = RateLimitPolicy { unlimited: true, ..RateLimitPolicy::default() };
    let outer = RateLimitDescriptor {
        key: "user".to_owned(),
        rate_limit: Some(free),
        descriptors: vec![inner],
        ..RateLimitDescriptor::default()
    };
    assert_eq!(
        written(&outer),
        json!({
            "key": "user",
            "rate_limit": { "unlimited": true },
            "descriptors": [{
                "key": "path",
                "value": "a \"quoted\"\n*",
                "rate_limit": {
                    "unit": "week",
                    "requests_per_unit": 7,
                    "name": "weekly",
                    "replaces": [{ "name": "daily" }],
                },
                "shadow_mode": true,
                "detailed_metric": true,
                "quota_mode": true,
            }],
        })
    );
}

#[test]
fn settings_that_make_no_sense_are_errors() {
    for url in ["", "gateway:18000", "https://", "http://", "ftp://x"] {
        let error = Xds::new(url, "x").expect_err(url);
        assert!(error.to_string().contains("http://host:18000"), "{error}");
    }
    let xds = || Xds::new("http://gateway:18000", "x").expect("a URL");
    assert!(xds().metadata("[]").is_err() && xds().metadata("{").is_err());
    assert!(xds().header("a b", "c").is_err() && xds().header("a", "\n").is_err());
}

/// The server asks for certificates of an authority, and its own is by another one.
#[tokio::test]
async fn a_server_with_tls_is_checked_and_checks_this_one() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let (certificate, key) = theirs.sign("gateway");
    let tls = ServerTlsConfig::new()
        .identity(Identity::from_pem(certificate, key))
        .client_ca_root(Certificate::from_pem(ours.pem()));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let server = Server::builder().tls_config(tls).expect("valid certificates");
    let mut streams = Management::serve_by(server, listener);

    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    };
    let (certificate, key) = ours.sign("this one");
    let mut tls = UpstreamTls::default();
    tls.authorities = Some(write("ca.pem", theirs.pem()));
    tls.identity = Some((write("cert.pem", &certificate), write("key.pem", &key)));
    tls.server_name = Some("gateway".to_owned());
    let xds = || Xds::new(&format!("https://{address}"), "this one").expect("a URL");

    let refused = async |xds: &Xds| {
        let mut session = Session::new(&xds.node);
        let told = watch::channel(false).0;
        let ended = xds.stream(&mut session, &LiveDomains::default(), &told).await;
        Causes(&*ended.expect_err("no stream")).to_string()
    };
    // Each of these lacks one thing.
    let mut untrusted = tls.clone();
    untrusted.authorities = Some(write("other.pem", ours.pem()));
    let why = refused(&xds().tls(untrusted).expect("valid files")).await;
    assert!(why.contains("UnknownIssuer"), "{why}");
    let mut by_address = tls.clone();
    by_address.server_name = None;
    let why = refused(&xds().tls(by_address).expect("valid files")).await;
    assert!(why.contains("not valid for name"), "{why}");
    let mut nobody = tls.clone();
    nobody.identity = None;
    refused(&xds().tls(nobody).expect("valid files")).await;

    // The files are read for each connection.
    let (unknown, key_of_unknown) = theirs.sign("this one");
    write("cert.pem", &unknown);
    write("key.pem", &key_of_unknown);
    let xds = xds().tls(tls).expect("valid files");
    refused(&xds).await;
    write("cert.pem", &certificate);
    write("key.pem", &key);
    let _following = Policies::new().follow(xds);
    let mut stream = streams.recv().await.expect("a stream");
    stream.request().await;
    assert_eq!(stream.send("1", &[config("a", 3)]).await.version_info, "1");
}

#[test]
fn certificates_are_for_a_url_of_tls_alone_and_files_are_read_at_once() {
    let plain = Xds::new("http://gateway:18000", "").expect("a URL").tls(UpstreamTls::default());
    assert!(plain.expect_err("no TLS").to_string().contains("begins with https"));
    let mut tls = UpstreamTls::default();
    tls.authorities = Some("/nowhere/ca.pem".into());
    let missing = Xds::new("https://gateway:18001", "").expect("a URL").tls(tls);
    let why = missing.expect_err("no file").to_string();
    assert!(why.starts_with("xDS: /nowhere/ca.pem: the file cannot be read"), "{why}");
}
