//! Files of Envoy's rate limit service that a management server sends, by the aggregated discovery service of xDS.
//!
//! The variant is the state of the world: each response has all configurations. Each becomes the text of a file, and all of
//! them come into force together, or none. See the
//! [protocol](https://www.envoyproxy.io/docs/envoy/v1.40.0/api-docs/xds_protocol).

use std::collections::BTreeMap;
use std::error::Error;
use std::mem;
use std::path::PathBuf;
use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient as Client;
use envoy_types::pb::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Struct, Value as ProtobufValue};
use envoy_types::pb::google::rpc::Status;
use envoy_types::pb::ratelimit::config::ratelimit::v3::{
    RateLimitConfig, RateLimitDescriptor, RateLimitUnit,
};
use http::Uri;
use http::uri::Scheme;
use prost::{Message as _, Name as _};
use serde_json::{Value, json};
use sluicegate_config::proxy::UpstreamTls;
use sluicegate_config::texts::Found;
use sluicegate_core::adapter::breaker::Backoff;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue};
use tonic::transport::Endpoint;
use tonic::{Code, Request};
use tower::ServiceExt as _;

use super::PoliciesError;
use super::domains::LiveDomains;
use crate::run::{Causes, client_connector};

/// The largest message by default, in bytes, as for all files together.
const LARGEST: usize = 64 << 20;

/// How long a connection may take to be made, and a ping to be answered.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pauses by default before the server is called again.
const PAUSES: Backoff =
    Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(15) };

/// A management server, and how this server presents itself to it.
#[derive(Debug, Clone)]
#[must_use = "`Policies::follow` connects to it"]
pub struct Xds {
    server: Endpoint,
    tls: Option<UpstreamTls>,
    node: Node,
    headers: Vec<(AsciiMetadataKey, AsciiMetadataValue)>,
    largest: usize,
    pauses: Backoff,
}

impl Xds {
    /// The server at `url`, such as `http://gateway:18000` or `https://gateway:18001`, which knows this one as `node`. With
    /// `https`, its certificate has to be by an authority of the system, unless [`tls`](Self::tls) says otherwise.
    ///
    /// # Errors
    ///
    /// If the URL is not one of HTTP.
    pub fn new(url: &str, node: &str) -> Result<Self, PoliciesError> {
        let wrong = || {
            PoliciesError::of(
                "xDS: the URL is not valid: expected one such as http://host:18000".to_owned(),
            )
        };
        let url: Uri = url.parse().map_err(|_| wrong())?;
        let (Some(scheme), Some(authority)) = (url.scheme(), url.authority()) else {
            return Err(wrong());
        };
        let tls = match scheme.as_str() {
            "http" => None,
            "https" => Some(UpstreamTls::default()),
            _ => return Err(wrong()),
        };
        // The connector of this crate speaks TLS, and not tonic, which has to know for its requests alone.
        let server = Endpoint::from_shared(format!("http://{authority}")).map_err(|_| wrong())?;
        let server = server
            .origin(url)
            .http2_keep_alive_interval(PATIENCE)
            .keep_alive_timeout(PATIENCE)
            .keep_alive_while_idle(true);
        let node = Node { id: node.to_owned(), ..Node::default() };
        Ok(Self { server, tls, node, headers: Vec::new(), largest: LARGEST, pauses: PAUSES })
    }

    /// Expects another certificate of the server, or shows one to it. The files are read for each connection, so a
    /// certificate may be renewed at any time.
    ///
    /// # Errors
    ///
    /// If the URL begins with `http`, or a file cannot be read.
    pub fn tls(mut self, tls: UpstreamTls) -> Result<Self, PoliciesError> {
        if self.tls.is_none() {
            return Err(PoliciesError::of(
                "xDS: certificates need a URL that begins with https".to_owned(),
            ));
        }
        client_connector(Some(&tls), (true, PATIENCE))
            .map_err(|error| PoliciesError::of(format!("xDS: {error}")))?;
        self.tls = Some(tls);
        Ok(self)
    }

    /// Sends this along, a JSON object, as the metadata of the node.
    ///
    /// # Errors
    ///
    /// If it is not a JSON object.
    pub fn metadata(mut self, json: &str) -> Result<Self, PoliciesError> {
        let Ok(Value::Object(fields)) = serde_json::from_str(json) else {
            return Err(PoliciesError::of(
                "xDS: the metadata of the node are no JSON object".to_owned(),
            ));
        };
        let fields = fields.into_iter().map(|(name, value)| (name, protobuf(value))).collect();
        self.node.metadata = Some(Struct { fields });
        Ok(self)
    }

    /// Sends a header along with the call.
    ///
    /// # Errors
    ///
    /// If a header cannot have this name or this value.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, PoliciesError> {
        let wrong = || {
            PoliciesError::of(format!("xDS: `{name}` is no header of ASCII, or its value is not"))
        };
        let key = name.to_ascii_lowercase().parse().map_err(|_| wrong())?;
        self.headers.push((key, value.parse().map_err(|_| wrong())?));
        Ok(self)
    }

    /// How many bytes a message of the server may have. The default is 64 MiB.
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.largest = bytes;
        self
    }

    /// How long to wait before the server is called again: `first` after one failure, and twice as long after each further one,
    /// up to `longest`. Up to half of it is left out at random. The default is 0.5 to 15 seconds.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.pauses = Backoff { first, longest: longest.max(first) };
        self
    }

    /// Takes what the server sends, until the returned value is dropped.
    pub(super) fn follow(self, domains: LiveDomains) -> Following {
        let (told, first) = watch::channel(false);
        let task = tokio::spawn(async move {
            let mut session = Session::new(&self.node);
            let mut failed = 0_u32;
            loop {
                let began = Instant::now();
                let ended = self.stream(&mut session, &domains, &told).await;
                let has_answered = mem::take(&mut session.has_answered);
                // One that answers and ends each stream at once is not called as often as that.
                let has_lasted = has_answered && began.elapsed() >= self.pauses.longest;
                failed = if has_lasted { 1 } else { failed.saturating_add(1) };
                let why = ended.map_or_else(
                    |error| Causes(&*error).to_string(),
                    |()| "the stream has ended".to_owned(),
                );
                if has_answered || failed == 1 {
                    tracing::warn!("xDS: {why}. What is in force stays in force");
                } else {
                    tracing::debug!("xDS: {why}");
                }
                tokio::time::sleep(self.pauses.after(failed)).await;
            }
        });
        Following { task: task.abort_handle(), first }
    }

    /// One stream, until it ends.
    async fn stream(
        &self,
        session: &mut Session,
        domains: &LiveDomains,
        told: &watch::Sender<bool>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let connector = client_connector(self.tls.as_ref(), (true, PATIENCE))?;
        let scheme = if self.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP };
        let connector = connector.map_request(move |uri: Uri| {
            let mut parts = uri.into_parts();
            parts.scheme = Some(scheme.clone());
            Uri::from_parts(parts).unwrap_or_default()
        });
        let channel = self.server.connect_with_connector(connector).await?;
        let mut client = Client::new(channel).max_decoding_message_size(self.largest);
        let (requests, sent) = mpsc::channel(1);
        requests.send(session.hello()).await?;
        let mut call = Request::new(ReceiverStream::new(sent));
        for (name, value) in &self.headers {
            call.metadata_mut().append(name.clone(), value.clone());
        }
        let mut responses = client.stream_aggregated_resources(call).await?.into_inner();
        // What was sent last, without the configurations, if it was refused beside the files: it may come into force when
        // they change.
        let mut refused = None;
        loop {
            let message = tokio::select! {
                message = responses.message() => message?,
                is_last = domains.comes_late(), if refused.is_some() => {
                    if let Some(response) = refused.take_if(|_| is_last) {
                        told.send_replace(true);
                        requests.send(session.answer(&response, Ok(()))).await?;
                    }
                    continue;
                }
            };
            let Some(response) = message else { return Ok(()) };
            // A server that sends something is there, although it may be the version in force.
            session.has_answered = true;
            if response.type_url != RateLimitConfig::type_url() {
                continue;
            }
            let domains = domains.clone();
            // Thousands of limits take a while to read, and calls go on meanwhile.
            let (response, read, outcome) = tokio::task::spawn_blocking(move || {
                let texts = texts(&response);
                let read = texts.is_ok();
                let outcome = texts.and_then(|texts| {
                    domains.receive(texts).map_err(|problems| problems.to_string())
                });
                (response, read, outcome)
            })
            .await?;
            if outcome.is_ok() {
                told.send_replace(true);
            }
            let may_come_late = read && outcome.is_err();
            requests.send(session.answer(&response, outcome)).await?;
            let response = DiscoveryResponse { resources: Vec::new(), ..response };
            refused = may_come_late.then_some(response);
        }
    }
}

/// Policies that a management server sends: see [`Policies::follow`](super::Policies::follow).
#[derive(Debug)]
#[must_use = "dropped, nothing that the server sends comes into force any more"]
pub struct Following {
    task: AbortHandle,
    first: watch::Receiver<bool>,
}

impl Following {
    /// Waits until what the server sends has come into force for the first time.
    pub async fn first(&mut self) {
        // An error: it is being dropped.
        let _ = self.first.wait_for(|has_come| *has_come).await;
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the requests of a stream say.
struct Session {
    node: Node,
    /// The version in force, also over several streams.
    version: String,
    /// Whether the server has sent something on this stream.
    has_answered: bool,
}

impl Session {
    fn new(node: &Node) -> Self {
        Self { node: node.clone(), version: String::new(), has_answered: false }
    }

    /// The first request of a stream.
    fn hello(&self) -> DiscoveryRequest {
        DiscoveryRequest {
            version_info: self.version.clone(),
            node: Some(self.node.clone()),
            type_url: RateLimitConfig::type_url(),
            ..DiscoveryRequest::default()
        }
    }

    /// The answer to a response: it is in force, or it is not, for this reason.
    fn answer(
        &mut self,
        response: &DiscoveryResponse,
        outcome: Result<(), String>,
    ) -> DiscoveryRequest {
        if outcome.is_ok() {
            self.version.clone_from(&response.version_info);
        }
        let error_detail = outcome.err().map(|message| Status {
            code: Code::InvalidArgument as i32,
            message,
            details: Vec::new(),
        });
        let response_nonce = response.nonce.clone();
        DiscoveryRequest { response_nonce, error_detail, ..self.hello() }
    }
}

/// Each configuration as the text of a file. JSON is YAML.
fn texts(response: &DiscoveryResponse) -> Result<Found, String> {
    let mut found = BTreeMap::new();
    for (at, resource) in response.resources.iter().enumerate() {
        let config = RateLimitConfig::decode(&*resource.value)
            .map_err(|error| format!("resource {at} is no RateLimitConfig: {error}"))?;
        let named = if config.name.is_empty() { &config.domain } else { &config.name };
        let mut path = PathBuf::from(format!("xds: {named}"));
        if found.contains_key(&path) {
            path = PathBuf::from(format!("xds: {named} (resource {at})"));
        }
        let text = json!({
            "domain": config.domain,
            "descriptors": config.descriptors.iter().map(written).collect::<Vec<_>>(),
        });
        found.insert(path, Ok(text.to_string()));
    }
    Ok(found)
}

/// A descriptor as files have it, where what is absent has no key.
fn written(descriptor: &RateLimitDescriptor) -> Value {
    let mut fields = json!({ "key": descriptor.key });
    if !descriptor.value.is_empty() {
        fields["value"] = json!(descriptor.value);
    }
    if let Some(limit) = &descriptor.rate_limit {
        let mut rate = json!({});
        if limit.unlimited {
            rate["unlimited"] = json!(true);
        } else {
            let unit = RateLimitUnit::try_from(limit.unit).unwrap_or(RateLimitUnit::Unknown);
            rate["unit"] = json!(unit.as_str_name().to_ascii_lowercase());
            rate["requests_per_unit"] = json!(limit.requests_per_unit);
        }
        if !limit.name.is_empty() {
            rate["name"] = json!(limit.name);
        }
        if !limit.replaces.is_empty() {
            let names = limit.replaces.iter().map(|replaced| json!({ "name": replaced.name }));
            rate["replaces"] = names.collect();
        }
        fields["rate_limit"] = rate;
    }
    for (name, is_set) in [
        ("shadow_mode", descriptor.shadow_mode),
        ("detailed_metric", descriptor.detailed_metric),
        ("quota_mode", descriptor.quota_mode),
    ] {
        if is_set {
            fields[name] = json!(true);
        }
    }
    if !descriptor.descriptors.is_empty() {
        fields["descriptors"] = descriptor.descriptors.iter().map(written).collect();
    }
    fields
}

/// JSON as protobuf has it.
fn protobuf(value: Value) -> ProtobufValue {
    use envoy_types::pb::google::protobuf::ListValue;

    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(is) => Kind::BoolValue(is),
        // Every number of protobuf's JSON is one of these.
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => Kind::StringValue(text),
        Value::Array(values) => {
            Kind::ListValue(ListValue { values: values.into_iter().map(protobuf).collect() })
        }
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, protobuf(value)));
            Kind::StructValue(Struct { fields: fields.collect() })
        }
    };
    ProtobufValue { kind: Some(kind) }
}

#[cfg(test)]
mod tests;
