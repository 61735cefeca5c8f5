//! What gRPC tools find out about a server.

use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use sluicegate_server::Policies;

use super::server::{Running, serve, start, start_rules};

const ONE: &str = "domain: edge
descriptors:
- key: user
  rate_limit: { unit: hour, requests_per_unit: 1 }
";

const RULES: &str = "[[rules]]\nname = \"all\"\nkey = \"global\"\nlimits = [\"1/hour\"]\n";

const RLS: &str = "envoy.service.ratelimit.v3.RateLimitService";
const CAPACITY: &str = "[[capacity]]\nname = \"db\"\nlimit = \"100/second\"\n";

const LEASES: &str = "doorman.Capacity";
const RLQS: &str = "envoy.service.rate_limit_quota.v3.RateLimitQuotaService";
const EXT_AUTHZ: &str = "envoy.service.auth.v3.Authorization";

async fn start_capacity() -> Running {
    let read = |file: &std::path::Path| Policies::new().capacity(file);
    serve("capacity.toml", CAPACITY, read, |service| service).await
}

async fn channel(server: &Running) -> Channel {
    let address = Channel::from_shared(server.grpc.clone()).expect("an address");
    address.connect().await.expect("a connection")
}

async fn reflected(channel: &Channel, question: MessageRequest) -> MessageResponse {
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(question) };
    let mut client = ServerReflectionClient::new(channel.clone());
    let answers = client.server_reflection_info(tokio_stream::once(request)).await;
    let mut answers = answers.expect("a stream").into_inner();
    let answer = answers.message().await.expect("an answer").expect("an answer");
    answer.message_response.expect("a message")
}

/// The services that reflection lists, but for itself and health.
async fn listed(channel: &Channel) -> Vec<String> {
    let answer = reflected(channel, MessageRequest::ListServices(String::new())).await;
    let MessageResponse::ListServicesResponse(listed) = answer else { panic!("{answer:?}") };
    let names = listed.service.into_iter().map(|service| service.name);
    names.filter(|name| !name.starts_with("grpc.")).collect()
}

#[tokio::test]
async fn every_service_that_is_served_is_listed_and_described_and_healthy() {
    for (server, served) in [
        (start(ONE).await, vec![RLS]),
        (start_rules(RULES).await, vec![EXT_AUTHZ, RLS]),
        (start_capacity().await, vec![LEASES, RLQS, RLS]),
    ] {
        let channel = channel(&server).await;
        let mut listed = listed(&channel).await;
        listed.sort();
        assert_eq!(listed, served);
        // Probes of Envoy's own rate limit service ask for the second one.
        for service in served.into_iter().chain(["", "ratelimit"]) {
            let request = HealthCheckRequest { service: service.to_owned() };
            let health = HealthClient::new(channel.clone()).check(request).await;
            assert_eq!(health.expect("an answer").get_ref().status, 1, "{service}");
        }
    }
}

#[tokio::test]
async fn tools_find_the_methods_and_the_messages_of_a_service() {
    let (rules, capacity) = (start_rules(RULES).await, start_capacity().await);
    let (rules, capacity) = (channel(&rules).await, channel(&capacity).await);
    let symbol = |name: &str| MessageRequest::FileContainingSymbol(name.to_owned());
    let file = |name: &str| MessageRequest::FileByFilename(name.to_owned());
    for (channel, question, answer) in [
        (&rules, symbol(RLS), "ShouldRateLimit"),
        (&rules, symbol(EXT_AUTHZ), "CheckResponse"),
        (&rules, symbol("envoy.service.auth.v3.AttributeContext.HttpRequest"), "raw_body"),
        (&rules, file("google/protobuf/struct.proto"), "ListValue"),
        (&rules, file("envoy/config/core/v3/base.proto"), "HeaderMap"),
        (&capacity, symbol(LEASES), "ReleaseCapacity"),
        (&capacity, symbol(RLQS), "StreamRateLimitQuotas"),
        (&capacity, symbol("doorman.GetCapacityResponse"), "fence"),
    ] {
        let MessageResponse::FileDescriptorResponse(files) = reflected(channel, question).await
        else {
            panic!("no description of {answer}")
        };
        let told = files.file_descriptor_proto.concat();
        assert!(String::from_utf8_lossy(&told).contains(answer), "{answer}");
    }
}
