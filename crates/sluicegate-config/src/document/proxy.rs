//! The tables of `sluicegate proxy`. A layer inside of an application has no use for them.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;

use super::shape::{Texts, deserialize_tables};

/// Where `sluicegate proxy` listens, and how long it waits for clients. A change takes effect when it starts again.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Listen {
    /// The address and the port, such as `0.0.0.0:8080`.
    pub(crate) address: String,
    /// Speaks TLS.
    pub(crate) tls: Option<ListenTls>,
    /// The most connections, upgraded ones among them. Others wait to be accepted. The default is 10000.
    pub(crate) connections: Option<u64>,
    /// The largest head of a request in bytes, from 8192 to 1048576. The default is 32768.
    pub(crate) head: Option<u64>,
    /// The largest body in bytes of a request whose tokens are counted, from 1024 to 67108864. It is kept until it has been
    /// read. A larger one is answered with 413. All of them together have room for 128 MiB, or for 16 of this length if that is
    /// more; others are answered with 503. The default is 2097152.
    pub(crate) body: Option<u64>,
    /// The most fields of a request, from 16 to 1000. The proxy itself needs up to 6 of them, so that the application never
    /// gets more than this. The default is 200. A request with more is answered with 431.
    pub(crate) fields: Option<u64>,
    /// Passes on fields whose names have other characters than letters, digits and `-`. Many applications cannot tell
    /// `X_Api_Key` from `X-Api-Key`, which limits read. The default is `false`: such fields are dropped.
    #[serde(default)]
    pub(crate) underscores: bool,
    /// How long a client may take for its handshake, and for the head of a request. The default is `10 seconds`.
    pub(crate) head_timeout: Option<String>,
    /// How long a connection may be without a request. The default is `75 seconds`.
    pub(crate) idle_timeout: Option<String>,
    /// How long a client may take for the next piece of a request's body. One that is kept also has to come with 16 KiB a second
    /// on average, beyond this time. The default is `30 seconds`.
    pub(crate) read_timeout: Option<String>,
    /// How long a client may take to read the next piece of a response. The default is `30 seconds`.
    pub(crate) write_timeout: Option<String>,
    /// The protocols to which clients may upgrade. The default is `websocket`; an empty list allows none. `h2c` is never
    /// passed on.
    pub(crate) upgrades: Option<Texts>,
}

/// The certificate of a proxy.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct ListenTls {
    /// A PEM file with the certificate, followed by those that vouch for it.
    pub(crate) certificate: String,
    /// A PEM file with the certificate's private key.
    pub(crate) key: String,
    /// Accepts only clients with a certificate by one of the authorities in this PEM file.
    pub(crate) clients: Option<String>,
}

/// The application behind `sluicegate proxy`. A change takes effect when the proxy starts again.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Upstream {
    /// Its scheme, host and port, such as `http://127.0.0.1:3000`. With `https`, the proxy speaks TLS with it.
    pub(crate) url: String,
    /// How to speak TLS with it. Without this, the authorities of the system vouch for its certificate.
    pub(crate) tls: Option<UpstreamTls>,
    /// Speaks HTTP/2 with it, without asking first. The default is HTTP/1.1.
    #[serde(default)]
    pub(crate) http2: bool,
    /// How long it may take to accept a connection. The default is `2 seconds`.
    pub(crate) connect_timeout: Option<String>,
    /// How long it may take until the head of its response, from the time that a request is passed on. The default is
    /// `60 seconds`.
    pub(crate) response_timeout: Option<String>,
    /// The most requests that it works on, upgraded connections among them. Others are answered with 503. The default is
    /// 10000.
    pub(crate) requests: Option<u64>,
    /// The most idle connections that are kept for further requests. The default is 100.
    pub(crate) idle_connections: Option<u64>,
    /// How long an idle connection is kept. It has to be shorter than the time after which the application closes it. The
    /// default is `4 seconds`.
    pub(crate) idle_timeout: Option<String>,
}

/// TLS with the application.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct UpstreamTls {
    /// A PEM file with the authorities that vouch for its certificate, instead of those of the system.
    pub(crate) authorities: Option<String>,
    /// The name that its certificate has to have. The default is the host in `url`.
    pub(crate) server_name: Option<String>,
    /// A PEM file with the certificate that the proxy presents, followed by those that vouch for it.
    pub(crate) certificate: Option<String>,
    /// A PEM file with the private key of that certificate.
    pub(crate) key: Option<String>,
}

deserialize_tables! {
    Listen: "a table such as { address = \"0.0.0.0:8080\" }",
    ListenTls: "a table such as { certificate = \"cert.pem\", key = \"key.pem\" }",
    Upstream: "a table such as { url = \"http://127.0.0.1:3000\" }",
    UpstreamTls: "a table such as { authorities = \"ca.pem\" }"
}
