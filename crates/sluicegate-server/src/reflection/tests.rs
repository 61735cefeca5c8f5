//! The tables describe the messages that are really sent.

use envoy_types::pb::envoy::config::core::v3::HeaderValue;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{
    DescriptorStatus, RateLimit,
};
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Duration, Struct, UInt64Value, Value};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};

use super::{files, make};

/// A message as text, read by its description.
fn described(name: &str, message: &impl Message) -> String {
    let set = make::set(&files::FILES);
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
