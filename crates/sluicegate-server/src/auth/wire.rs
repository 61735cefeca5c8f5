//! The part of Envoy's question that is read, with its texts as bytes: they are those of the client, and need not be UTF-8.
//!
//! Texts and bytes are the same on the wire. Fields that are not listed are skipped.

use prost::Message;
use prost::bytes::Bytes;

/// `envoy.service.auth.v3.CheckRequest`
#[derive(Clone, PartialEq, Message)]
pub(super) struct CheckRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) attributes: Option<Attributes>,
}

/// `envoy.service.auth.v3.AttributeContext`
#[derive(Clone, PartialEq, Message)]
pub(super) struct Attributes {
    #[prost(message, optional, tag = "1")]
    pub(super) source: Option<Peer>,
    #[prost(message, optional, tag = "4")]
    pub(super) request: Option<RequestContext>,
}

/// `envoy.service.auth.v3.AttributeContext.Peer`
#[derive(Clone, PartialEq, Message)]
pub(super) struct Peer {
    #[prost(message, optional, tag = "1")]
    pub(super) address: Option<Address>,
}

/// `envoy.config.core.v3.Address`
#[derive(Clone, PartialEq, Message)]
pub(super) struct Address {
    #[prost(message, optional, tag = "1")]
    pub(super) socket: Option<SocketAddress>,
}

/// `envoy.config.core.v3.SocketAddress`
#[derive(Clone, PartialEq, Message)]
pub(super) struct SocketAddress {
    #[prost(string, tag = "2")]
    pub(super) address: String,
}

/// `envoy.service.auth.v3.AttributeContext.Request`
#[derive(Clone, PartialEq, Message)]
pub(super) struct RequestContext {
    #[prost(message, optional, tag = "2")]
    pub(super) http: Option<HttpRequest>,
}

/// `envoy.service.auth.v3.AttributeContext.HttpRequest`
#[derive(Clone, PartialEq, Message)]
pub(super) struct HttpRequest {
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) method: Bytes,
    /// The map, whose entries are messages of a name and a value.
    #[prost(message, repeated, tag = "3")]
    pub(super) headers: Vec<Field>,
    #[prost(bytes = "bytes", tag = "4")]
    pub(super) path: Bytes,
    #[prost(bytes = "bytes", tag = "5")]
    pub(super) host: Bytes,
    #[prost(message, optional, tag = "13")]
    pub(super) header_map: Option<HeaderMap>,
}

/// `envoy.config.core.v3.HeaderMap`
#[derive(Clone, PartialEq, Message)]
pub(super) struct HeaderMap {
    #[prost(message, repeated, tag = "1")]
    pub(super) headers: Vec<Field>,
}

/// `envoy.config.core.v3.HeaderValue`, and an entry of a map.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Field {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) value: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) raw_value: Bytes,
}
