//! The tables describe the messages that are really sent.

use envoy_types::pb::envoy::config::core::v3::address::Address as Kinds;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::core::v3::{
    Address, HeaderMap, HeaderValue, HeaderValueOption, SocketAddress,
};
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
use envoy_types::pb::envoy::service::auth::v3::attribute_context::{HttpRequest, Peer, Request};
use envoy_types::pb::envoy::service::auth::v3::check_response::HttpResponse;
use envoy_types::pb::envoy::service::auth::v3::{
    AttributeContext, CheckRequest, CheckResponse, DeniedHttpResponse, OkHttpResponse,
};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{
    DescriptorStatus, RateLimit,
};
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use envoy_types::pb::envoy::r#type::v3::HttpStatus;
use envoy_types::pb::google::protobuf::Timestamp;
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Duration, Struct, UInt64Value, Value};
use envoy_types::pb::google::rpc;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};

/// A message as text, read by its description.
fn described(name: &str, message: &impl Message) -> String {
    let set = super::described(true, true);
    let pool =
        DescriptorPool::from_file_descriptor_set(set).expect("descriptions that fit together");
    let description = pool.get_message_by_name(name).expect("the message");
    let bytes = message.encode_to_vec();
    let read = DynamicMessage::decode(description, bytes.as_slice()).expect("a message");
    assert_eq!(read.encode_to_vec().len(), bytes.len());
    format!("{read}")
}

#[test]
fn a_request_is_described() {
    let request = RateLimitRequest {
        domain: "edge".to_owned(),
        descriptors: vec![RateLimitDescriptor {
            entries: vec![Entry { key: "user".to_owned(), value: "alice".to_owned() }],
            limit: Some(RateLimitOverride { requests_per_unit: 7, unit: 6 }),
            hits_addend: Some(UInt64Value { value: 8 }),
            is_negative_hits: true,
        }],
        hits_addend: 9,
    };
    assert_eq!(
        described("envoy.service.ratelimit.v3.RateLimitRequest", &request),
        "domain:\"edge\",descriptors:[{entries:[{key:\"user\",value:\"alice\"}],limit{requests_per_unit:7,unit:YEAR},\
         hits_addend{value:8},is_negative_hits:true}],hits_addend:9"
    );
}

#[test]
fn an_answer_is_described() {
    let number = Value { kind: Some(Kind::NumberValue(2.0)) };
    let response = RateLimitResponse {
        overall_code: 2,
        statuses: vec![DescriptorStatus {
            code: 1,
            current_limit: Some(RateLimit {
                name: "usual".to_owned(),
                requests_per_unit: 5,
                unit: 7,
            }),
            limit_remaining: 4,
            duration_until_reset: Some(Duration { seconds: 3, nanos: 2 }),
            quota: None,
        }],
        response_headers_to_add: vec![HeaderValue {
            key: "a".to_owned(),
            value: "b".to_owned(),
            raw_value: vec![b'c'],
        }],
        dynamic_metadata: Some(Struct { fields: [("spent".to_owned(), number)].into() }),
        ..RateLimitResponse::default()
    };
    let described = described("envoy.service.ratelimit.v3.RateLimitResponse", &response);
    for part in [
        "overall_code:OVER_LIMIT",
        "code:OK",
        "current_limit{requests_per_unit:5,unit:WEEK,name:\"usual\"}",
        "limit_remaining:4",
        "duration_until_reset{seconds:3,nanos:2}",
        "response_headers_to_add:[{key:\"a\",value:\"b\",raw_value:\"c\"}]",
        "key:\"spent\",value{number_value:2",
    ] {
        assert!(described.contains(part), "{part}: {described}");
    }
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn a_question_of_ext_authz_is_described() {
    let socket = SocketAddress {
        address: text("192.0.2.7"),
        port_specifier: Some(PortSpecifier::PortValue(80)),
        ..SocketAddress::default()
    };
    let peer = || Peer {
        address: Some(Address { address: Some(Kinds::SocketAddress(socket.clone())) }),
        service: text("front"),
        labels: [(text("zone"), text("a"))].into(),
        principal: text("spiffe://x"),
        certificate: text("pem"),
    };
    let field = || HeaderValue { key: text("a"), value: text("b"), raw_value: vec![b'c'] };
    let http = HttpRequest {
        id: text("1"),
        method: text("GET"),
        headers: [(text("x"), text("y"))].into(),
        path: text("/x"),
        host: text("api.example"),
        scheme: text("https"),
        query: text("q"),
        fragment: text("f"),
        size: -1,
        protocol: text("HTTP/2"),
        body: text("body"),
        raw_body: vec![b'r'],
        header_map: Some(HeaderMap { headers: vec![field()] }),
    };
    let request = Request { time: Some(Timestamp { seconds: 5, nanos: 6 }), http: Some(http) };
    let request = CheckRequest {
        attributes: Some(AttributeContext {
            source: Some(peer()),
            destination: Some(peer()),
            request: Some(request),
            context_extensions: [(text("k"), text("v"))].into(),
            ..AttributeContext::default()
        }),
    };
    let described = described("envoy.service.auth.v3.CheckRequest", &request);
    for part in [
        "source{address{socket_address{address:\"192.0.2.7\",port_value:80}}",
        "labels:[{key:\"zone\",value:\"a\"}]",
        "time{seconds:5,nanos:6}",
        "method:\"GET\",headers:[{key:\"x\",value:\"y\"}],path:\"/x\",host:\"api.example\"",
        "header_map{headers:[{key:\"a\",value:\"b\",raw_value:\"c\"}]}",
        "context_extensions:[{key:\"k\",value:\"v\"}]",
    ] {
        assert!(described.contains(part), "{part}: {described}");
    }
}

#[test]
fn an_answer_of_ext_authz_is_described() {
    let field = || HeaderValueOption {
        header: Some(HeaderValue {
            key: text("retry-after"),
            value: text("3"),
            ..HeaderValue::default()
        }),
        ..HeaderValueOption::default()
    };
    let denied = DeniedHttpResponse {
        status: Some(HttpStatus { code: 429 }),
        headers: vec![field()],
        body: text("too many"),
    };
    let ok = OkHttpResponse {
        headers: vec![field()],
        response_headers_to_add: vec![field()],
        ..OkHttpResponse::default()
    };
    for (answer, said) in [
        (
            HttpResponse::DeniedResponse(denied),
            "denied_response{status{code:TooManyRequests},headers:[{header{key:\"retry-after\",value:\"3\"}}],body:\"too many\"}",
        ),
        (
            HttpResponse::OkResponse(ok),
            "ok_response{headers:[{header{key:\"retry-after\",value:\"3\"}}],response_headers_to_add:[{header{",
        ),
    ] {
        let status = rpc::Status { code: 7, message: text("no"), ..rpc::Status::default() };
        let response = CheckResponse {
            status: Some(status),
            http_response: Some(answer),
            ..CheckResponse::default()
        };
        let described = described("envoy.service.auth.v3.CheckResponse", &response);
        assert!(described.starts_with("status{code:7,message:\"no\"}"), "{described}");
        assert!(described.contains(said), "{said}: {described}");
    }
}

#[test]
fn a_report_and_an_answer_of_quotas_are_described() {
    use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::bucket_action::{
        BucketAction as Kinds, QuotaAssignmentAction,
    };
    use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::BucketAction;
    use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_usage_reports::BucketQuotaUsage;
    use envoy_types::pb::envoy::service::rate_limit_quota::v3::{
        BucketId, RateLimitQuotaResponse, RateLimitQuotaUsageReports,
    };
    use envoy_types::pb::envoy::r#type::v3::rate_limit_strategy::Strategy;
    use envoy_types::pb::envoy::r#type::v3::{RateLimitStrategy, TokenBucket};
    use envoy_types::pb::google::protobuf::UInt32Value;

    let bucket = || Some(BucketId { bucket: [(text("service"), text("db"))].into() });
    let time = |seconds| Some(Duration { seconds, nanos: 0 });
    let usage = BucketQuotaUsage {
        bucket_id: bucket(),
        time_elapsed: time(5),
        num_requests_allowed: 6,
        num_requests_denied: 7,
    };
    let reports =
        RateLimitQuotaUsageReports { domain: text("edge"), bucket_quota_usages: vec![usage] };
    let told = described("envoy.service.rate_limit_quota.v3.RateLimitQuotaUsageReports", &reports);
    let said = "bucket_id{bucket:[{key:\"service\",value:\"db\"}]},time_elapsed{seconds:5},\
                num_requests_allowed:6,num_requests_denied:7";
    assert!(told.contains(said), "{told}");

    let tokens = TokenBucket {
        max_tokens: 8,
        tokens_per_fill: Some(UInt32Value { value: 9 }),
        fill_interval: time(10),
    };
    let strategy = RateLimitStrategy { strategy: Some(Strategy::TokenBucket(tokens)) };
    let action = QuotaAssignmentAction {
        assignment_time_to_live: time(11),
        rate_limit_strategy: Some(strategy),
    };
    let action = BucketAction {
        bucket_id: bucket(),
        bucket_action: Some(Kinds::QuotaAssignmentAction(action)),
    };
    let answer = RateLimitQuotaResponse { bucket_action: vec![action] };
    let told = described("envoy.service.rate_limit_quota.v3.RateLimitQuotaResponse", &answer);
    let said = "quota_assignment_action{assignment_time_to_live{seconds:11},rate_limit_strategy{\
                token_bucket{max_tokens:8,tokens_per_fill{value:9},fill_interval{seconds:10}}}}";
    assert!(told.contains(said), "{told}");
}
