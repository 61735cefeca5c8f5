//! The messages of the protocol, with the texts of buckets as bytes: Envoy makes them of what clients send, which need not be
//! UTF-8. One that could not be read would end the stream of all buckets.
//!
//! Texts and bytes are the same on the wire.

use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::bucket_action::{
    AbandonAction, QuotaAssignmentAction,
};
use envoy_types::pb::google::protobuf::Duration;
use prost::Message;
use prost::bytes::Bytes;

/// `envoy.service.rate_limit_quota.v3.RateLimitQuotaUsageReports`
#[derive(Clone, PartialEq, Message)]
pub(super) struct Reports {
    #[prost(string, tag = "1")]
    pub(super) domain: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) usages: Vec<Usage>,
}

/// `RateLimitQuotaUsageReports.BucketQuotaUsage`
#[derive(Clone, PartialEq, Message)]
pub(super) struct Usage {
    #[prost(message, optional, tag = "1")]
    pub(super) bucket_id: Option<BucketId>,
    #[prost(message, optional, tag = "2")]
    pub(super) time_elapsed: Option<Duration>,
    #[prost(uint64, tag = "3")]
    pub(super) allowed: u64,
    #[prost(uint64, tag = "4")]
    pub(super) denied: u64,
}

/// `envoy.service.rate_limit_quota.v3.BucketId`
#[derive(Clone, PartialEq, Message)]
pub(super) struct BucketId {
    /// The map, whose entries are messages of a key and a value.
    #[prost(message, repeated, tag = "1")]
    pub(super) bucket: Vec<Entry>,
}

/// An entry of a map.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Entry {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) value: Bytes,
}

/// `envoy.service.rate_limit_quota.v3.RateLimitQuotaResponse`
#[derive(Clone, PartialEq, Message)]
pub(super) struct AssignmentMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) actions: Vec<Action>,
}

/// `RateLimitQuotaResponse.BucketAction`, in which one of the two is there.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Action {
    #[prost(message, optional, tag = "1")]
    pub(super) bucket_id: Option<BucketId>,
    #[prost(message, optional, tag = "2")]
    pub(super) assign: Option<QuotaAssignmentAction>,
    #[prost(message, optional, tag = "3")]
    pub(super) abandon: Option<AbandonAction>,
}
