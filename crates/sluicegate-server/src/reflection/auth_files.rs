//! The protocol files of Envoy's `ext_authz`, as far as the service uses them.

use super::make::Holds::{Many, One};
use super::make::Kind::{Bytes, Enum, I32, I64, Message as Of, Text, U32};
use super::make::{Field, File, Message, message};

const HTTP_STATUS: &str = ".envoy.type.v3.HttpStatus";
const FIELD: &str = ".envoy.config.core.v3.HeaderValueOption";
const PEER: &str = ".envoy.service.auth.v3.AttributeContext.Peer";
const RPC_STATUS: &str = ".google.rpc.Status";

/// A map of texts is a list of these on the wire.
const ENTRY: &[Field] = &[("key", 1, One(Text)), ("value", 2, One(Text))];

/// Every file after those that it imports. `base.proto` is in [`files`](super::files).
pub(super) const FILES: [File; 6] = [
    File {
        name: "google/protobuf/timestamp.proto",
        package: "google.protobuf",
        imports: &[],
        messages: &[message("Timestamp", &[("seconds", 1, One(I64)), ("nanos", 2, One(I32))])],
        enums: &[],
        service: None,
    },
    File {
        name: "google/rpc/status.proto",
        package: "google.rpc",
        imports: &[],
        messages: &[message("Status", &[("code", 1, One(I32)), ("message", 2, One(Text))])],
        enums: &[],
        service: None,
    },
    File {
        name: "envoy/type/v3/http_status.proto",
        package: "envoy.type.v3",
        imports: &[],
        messages: &[message("HttpStatus", &[("code", 1, One(Enum(".envoy.type.v3.StatusCode")))])],
        enums: &[("StatusCode", STATUSES)],
        service: None,
    },
    File {
        name: "envoy/config/core/v3/address.proto",
        package: "envoy.config.core.v3",
        imports: &[],
        messages: &[
            Message {
                enums: &[("Protocol", &[("TCP", 0), ("UDP", 1)])],
                ..message(
                    "SocketAddress",
                    &[
                        ("protocol", 1, One(Enum(".envoy.config.core.v3.SocketAddress.Protocol"))),
                        ("address", 2, One(Text)),
                        ("port_value", 3, One(U32)),
                    ],
                )
            },
            Message {
                one_of: Some("address"),
                ..message(
                    "Address",
                    &[("socket_address", 1, One(Of(".envoy.config.core.v3.SocketAddress")))],
                )
            },
        ],
        enums: &[],
        service: None,
    },
    File {
        name: "envoy/service/auth/v3/attribute_context.proto",
        package: "envoy.service.auth.v3",
        imports: &[
            "envoy/config/core/v3/address.proto",
            "envoy/config/core/v3/base.proto",
            "google/protobuf/timestamp.proto",
        ],
        messages: &[Message {
            messages: &[
                PEER_MESSAGE,
                HTTP_REQUEST,
                REQUEST,
                message("ContextExtensionsEntry", ENTRY),
            ],
            ..message(
                "AttributeContext",
                &[
                    ("source", 1, One(Of(PEER))),
                    ("destination", 2, One(Of(PEER))),
                    ("request", 4, One(Of(".envoy.service.auth.v3.AttributeContext.Request"))),
                    (
                        "context_extensions",
                        10,
                        Many(Of(".envoy.service.auth.v3.AttributeContext.ContextExtensionsEntry")),
                    ),
                ],
            )
        }],
        enums: &[],
        service: None,
    },
    File {
        name: "envoy/service/auth/v3/external_auth.proto",
        package: "envoy.service.auth.v3",
        imports: &[
            "envoy/config/core/v3/base.proto",
            "envoy/service/auth/v3/attribute_context.proto",
            "envoy/type/v3/http_status.proto",
            "google/rpc/status.proto",
        ],
        messages: &[
            message(
                "CheckRequest",
                &[("attributes", 1, One(Of(".envoy.service.auth.v3.AttributeContext")))],
            ),
            message(
                "DeniedHttpResponse",
                &[
                    ("status", 1, One(Of(HTTP_STATUS))),
                    ("headers", 2, Many(Of(FIELD))),
                    ("body", 3, One(Text)),
                ],
            ),
            message(
                "OkHttpResponse",
                &[("headers", 2, Many(Of(FIELD))), ("response_headers_to_add", 6, Many(Of(FIELD)))],
            ),
            message(
                "CheckResponse",
                &[
                    ("status", 1, One(Of(RPC_STATUS))),
                    ("denied_response", 2, One(Of(".envoy.service.auth.v3.DeniedHttpResponse"))),
                    ("ok_response", 3, One(Of(".envoy.service.auth.v3.OkHttpResponse"))),
                ],
            ),
        ],
        enums: &[],
        service: Some((
            "Authorization",
            [
                "Check",
                ".envoy.service.auth.v3.CheckRequest",
                ".envoy.service.auth.v3.CheckResponse",
            ],
        )),
    },
];

const PEER_MESSAGE: Message = Message {
    messages: &[message("LabelsEntry", ENTRY)],
    ..message(
        "Peer",
        &[
            ("address", 1, One(Of(".envoy.config.core.v3.Address"))),
            ("service", 2, One(Text)),
            ("labels", 3, Many(Of(".envoy.service.auth.v3.AttributeContext.Peer.LabelsEntry"))),
            ("principal", 4, One(Text)),
            ("certificate", 5, One(Text)),
        ],
    )
};

const REQUEST: Message = message(
    "Request",
    &[
        ("time", 1, One(Of(".google.protobuf.Timestamp"))),
        ("http", 2, One(Of(".envoy.service.auth.v3.AttributeContext.HttpRequest"))),
    ],
);

const HTTP_REQUEST: Message = Message {
    messages: &[message("HeadersEntry", ENTRY)],
    ..message(
        "HttpRequest",
        &[
            ("id", 1, One(Text)),
            ("method", 2, One(Text)),
            (
                "headers",
                3,
                Many(Of(".envoy.service.auth.v3.AttributeContext.HttpRequest.HeadersEntry")),
            ),
            ("path", 4, One(Text)),
            ("host", 5, One(Text)),
            ("scheme", 6, One(Text)),
            ("query", 7, One(Text)),
            ("fragment", 8, One(Text)),
            ("size", 9, One(I64)),
            ("protocol", 10, One(Text)),
            ("body", 11, One(Text)),
            ("raw_body", 12, One(Bytes)),
            ("header_map", 13, One(Of(".envoy.config.core.v3.HeaderMap"))),
        ],
    )
};

/// Those with which the service refuses. Others are shown by their numbers.
const STATUSES: &[(&str, i32)] = &[
    ("Empty", 0),
    ("OK", 200),
    ("BadRequest", 400),
    ("Unauthorized", 401),
    ("Forbidden", 403),
    ("TooManyRequests", 429),
    ("InternalServerError", 500),
    ("ServiceUnavailable", 503),
];
