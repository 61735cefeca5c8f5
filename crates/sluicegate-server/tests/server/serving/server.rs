//! A server on free ports, and what tests ask it.

use std::path::{Path, PathBuf};

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use envoy_types::pb::google::protobuf::UInt64Value;
use sluicegate_core::{ManualClock, Memory};
use sluicegate_server::{Policies, PoliciesError, Reload, Server, Service, ServiceBuilder};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::Channel;

pub(crate) struct Running {
    pub(crate) client: RateLimitServiceClient<Channel>,
    pub(crate) http: String,
    pub(crate) grpc: String,
    pub(crate) clock: ManualClock,
    pub(crate) reload: Reload,
    pub(crate) file: PathBuf,
    pub(crate) stop: Option<oneshot::Sender<()>>,
    pub(crate) served: JoinHandle<()>,
    _directory: TempDir,
}

pub(crate) async fn start(file: &str) -> Running {
    start_with(file, |service| service).await
}

/// A server with rules instead of a file of Envoy's service.
pub(crate) async fn start_rules(rules: &str) -> Running {
    serve("rules.toml", rules, |file| Policies::new().rules(file), |service| service).await
}

pub(crate) async fn start_with(
    text: &str,
    set: impl FnOnce(ServiceBuilder) -> ServiceBuilder,
) -> Running {
    serve("ratelimit.yaml", text, |file| Policies::new().envoy(file), set).await
}

pub(crate) async fn serve(
    name: &str,
    text: &str,
    read: impl FnOnce(&Path) -> Result<Policies, PoliciesError>,
    set: impl FnOnce(ServiceBuilder) -> ServiceBuilder,
) -> Running {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join(name);
    std::fs::write(&file, text).expect("a file");
    let clock = ManualClock::new();
    let policies = read(&file).unwrap_or_else(|error| panic!("{error}"));
    let store = Memory::builder().clock(&clock).build();
    let service = set(Service::builder(policies).store(store)).build().expect("a service");
    let any = "127.0.0.1:0".parse().expect("an address");
    let bound = Server::new(service).grpc(any).http(any).bind().await.expect("free ports");
    let reload = bound.reload();
    let addresses = bound.addresses();
    let grpc = format!("http://{}", addresses.grpc.expect("a port"));
    let http = addresses.http.expect("a port").to_string();
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(bound.run(async move {
        let _ = stopped.await;
    }));
    let client = RateLimitServiceClient::connect(grpc.clone()).await.expect("a connection");
    let stop = Some(stop);
    Running { client, http, grpc, clock, reload, file, stop, served, _directory: directory }
}

impl Running {
    pub(crate) async fn ask(&mut self, descriptors: Vec<RateLimitDescriptor>) -> RateLimitResponse {
        let domain = "edge".to_owned();
        let request = RateLimitRequest { domain, descriptors, hits_addend: 0 };
        self.client.should_rate_limit(request).await.expect("an answer").into_inner()
    }

    /// Whether a request of one descriptor is over its limit.
    pub(crate) async fn is_over(&mut self, entries: &[(&str, &str)]) -> bool {
        is_over(&self.ask(vec![descriptor(entries)]).await)
    }
}

pub(crate) fn is_over(response: &RateLimitResponse) -> bool {
    match response.overall_code() {
        Code::Ok => false,
        Code::OverLimit => true,
        Code::Unknown => panic!("an answer without a code"),
    }
}

/// The code of each status, and what is left.
pub(crate) fn statuses(response: &RateLimitResponse) -> Vec<(Code, u32)> {
    let statuses = response.statuses.iter();
    statuses.map(|status| (status.code(), status.limit_remaining)).collect()
}

pub(crate) fn descriptor(entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let entries = entries
        .iter()
        .map(|(key, value)| Entry { key: (*key).to_owned(), value: (*value).to_owned() });
    RateLimitDescriptor { entries: entries.collect(), ..RateLimitDescriptor::default() }
}

pub(crate) fn hits(mut descriptor: RateLimitDescriptor, hits: u64) -> RateLimitDescriptor {
    descriptor.hits_addend = Some(UInt64Value { value: hits });
    descriptor
}

pub(crate) fn back(descriptor: RateLimitDescriptor, count: u64) -> RateLimitDescriptor {
    RateLimitDescriptor { is_negative_hits: true, ..hits(descriptor, count) }
}
