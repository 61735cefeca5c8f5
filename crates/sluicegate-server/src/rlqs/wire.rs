//! The messages of the protocol, with the texts of buckets as bytes: Envoy makes them of what clients send, which need not be
//! UTF-8. One that could not be read would end the stream of all buckets.
//!
//! Texts and bytes are the same on the wire.

use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::bucket_action::{
    AbandonAction, QuotaAssignmentAction,
};
use envoy_types::pb::google::protobuf::Duration;
use prost::bytes::{Buf, BufMut, Bytes};
use prost::encoding::{DecodeContext, WireType, bytes, decode_key, skip_field, string};
use prost::{DecodeError, Message};

/// The most fields of a message of reports. What follows them is not read.
///
/// They could be millions in the longest message, and others wait while it is read.
const MOST_FIELDS: usize = 16_384;

/// `envoy.service.rate_limit_quota.v3.RateLimitQuotaUsageReports`
///
/// Each usage is in bytes as it came, so that they can be read a few at a time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Reports {
    pub(super) domain: String,
    /// A [`Usage`] each.
    pub(super) usages: Vec<Bytes>,
    /// How many fields were read.
    fields: usize,
}

impl Message for Reports {
    fn merge_field(
        &mut self,
        tag: u32,
        kind: WireType,
        buf: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        if self.fields == MOST_FIELDS {
            buf.advance(buf.remaining());
            return Ok(());
        }
        self.fields += 1;
        match tag {
            1 => string::merge(kind, &mut self.domain, buf, context),
            2 => {
                // Messages and bytes are the same on the wire, and these are not copied.
                let mut usage = Bytes::new();
                bytes::merge(kind, &mut usage, buf, context)?;
                self.usages.push(usage);
                Ok(())
            }
            _ => skip_field(kind, tag, buf, context),
        }
    }

    fn encode_raw(&self, buf: &mut impl BufMut) {
        string::encode(1, &self.domain, buf);
        bytes::encode_repeated(2, &self.usages, buf);
    }

    fn encoded_len(&self) -> usize {
        string::encoded_len(1, &self.domain) + bytes::encoded_len_repeated(2, &self.usages)
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The id of the bucket of a usage that is too long to be read, in bytes as it came. `None` if it does not come first, as
/// every writer of these messages puts it.
pub(super) fn id_of(usage: &[u8]) -> Option<Bytes> {
    let (mut usage, mut id) = (usage, Bytes::new());
    let (tag, kind) = decode_key(&mut usage).ok()?;
    if tag != 1 {
        return None;
    }
    // Copied, so that an answer that nobody reads yet does not keep the whole message.
    bytes::merge(kind, &mut id, &mut usage, DecodeContext::default()).ok()?;
    (!id.is_empty()).then_some(id)
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

/// `RateLimitQuotaResponse.BucketAction`, in which one of the last two is there.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Action {
    /// A [`BucketId`]. Messages and bytes are the same on the wire, and the id of a bucket that has to be forgotten goes back
    /// as it came.
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) bucket_id: Bytes,
    #[prost(message, optional, tag = "2")]
    pub(super) assign: Option<QuotaAssignmentAction>,
    #[prost(message, optional, tag = "3")]
    pub(super) abandon: Option<AbandonAction>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_usage_is_found_unread() {
        let entry = Entry { key: "tenant".into(), value: "x".repeat(60_000).into() };
        let id = BucketId { bucket: vec![entry] };
        let usage = Usage { bucket_id: Some(id.clone()), allowed: 7, ..Usage::default() };
        let usage = usage.encode_to_vec();
        assert_eq!(id_of(&usage), Some(id.encode_to_vec().into()));
        for other in [&usage[..100], &usage[1..], &[1 << 3, 1], &[3 << 3, 1], &[10, 0], &[]] {
            assert_eq!(id_of(other), None);
        }
    }

    #[test]
    fn fields_beyond_the_bound_are_not_read() {
        let usage = Usage { allowed: 7, ..Usage::default() };
        let usages = vec![usage.encode_to_vec().into(); MOST_FIELDS];
        let reports = Reports { domain: "edge".to_owned(), usages, fields: 0 };
        let read = Reports::decode(reports.encode_to_vec().as_slice()).expect("a message");
        assert_eq!((read.domain.as_str(), read.usages.len()), ("edge", MOST_FIELDS - 1));
        assert_eq!(Usage::decode(read.usages[0].clone()), Ok(usage));
        // Eight million fields that nobody knows, in 16 MiB: number 15, a varint of one byte.
        let mut unknown = [15 << 3, 1].repeat(8 << 20);
        let read = Reports::decode(unknown.as_slice()).expect("a message");
        assert_eq!((read.fields, read.usages.len()), (MOST_FIELDS, 0));
        // Within the bound, what is no message is no message.
        unknown.truncate(101);
        Reports::decode(unknown.as_slice()).expect_err("a field without its value");
    }
}
