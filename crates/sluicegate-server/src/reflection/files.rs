//! The protocol files of Envoy's rate limit service, as far as the service uses them.

use super::make::Holds::{Many, One};
use super::make::Kind::{Bool, Bytes, Enum, F64, I32, I64, Message as Of, Text, U32, U64};
use super::make::{File, Message, message};

const DURATION: &str = ".google.protobuf.Duration";
const UNIT: &str = ".envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.Unit";

/// Every file after those that it imports.
pub(super) const FILES: [File; 7] = [
    File {
        name: "google/protobuf/duration.proto",
        package: "google.protobuf",
        imports: &[],
        messages: &[message("Duration", &[("seconds", 1, One(I64)), ("nanos", 2, One(I32))])],
        enums: &[],
        service: None,
    },
    File {
        name: "google/protobuf/wrappers.proto",
        package: "google.protobuf",
        imports: &[],
        messages: &[
            message("UInt64Value", &[("value", 1, One(U64))]),
            message("UInt32Value", &[("value", 1, One(U32))]),
        ],
        enums: &[],
        service: None,
    },
    File {
        name: "google/protobuf/struct.proto",
        package: "google.protobuf",
        imports: &[],
        messages: &[
            Message {
                // A map is a list of entries on the wire.
                messages: &[message(
                    "FieldsEntry",
                    &[("key", 1, One(Text)), ("value", 2, One(Of(".google.protobuf.Value")))],
                )],
                ..message(
                    "Struct",
                    &[("fields", 1, Many(Of(".google.protobuf.Struct.FieldsEntry")))],
                )
            },
            Message {
                one_of: Some("kind"),
                ..message(
                    "Value",
                    &[
                        ("null_value", 1, One(Enum(".google.protobuf.NullValue"))),
                        ("number_value", 2, One(F64)),
                        ("string_value", 3, One(Text)),
                        ("bool_value", 4, One(Bool)),
                        ("struct_value", 5, One(Of(".google.protobuf.Struct"))),
                        ("list_value", 6, One(Of(".google.protobuf.ListValue"))),
                    ],
                )
            },
            message("ListValue", &[("values", 1, Many(Of(".google.protobuf.Value")))]),
        ],
        enums: &[("NullValue", &[("NULL_VALUE", 0)])],
        service: None,
    },
    File {
        name: "envoy/type/v3/ratelimit_unit.proto",
        package: "envoy.type.v3",
        imports: &[],
        messages: &[],
        enums: &[(
            "RateLimitUnit",
            &[
                ("UNKNOWN", 0),
                ("SECOND", 1),
                ("MINUTE", 2),
                ("HOUR", 3),
                ("DAY", 4),
                ("MONTH", 5),
                ("YEAR", 6),
            ],
        )],
        service: None,
    },
    File {
        name: "envoy/config/core/v3/base.proto",
        package: "envoy.config.core.v3",
        imports: &[],
        messages: &[
            message(
                "HeaderValue",
                &[("key", 1, One(Text)), ("value", 2, One(Text)), ("raw_value", 3, One(Bytes))],
            ),
            message("HeaderMap", &[("headers", 1, Many(Of(".envoy.config.core.v3.HeaderValue")))]),
            message(
                "HeaderValueOption",
                &[("header", 1, One(Of(".envoy.config.core.v3.HeaderValue")))],
            ),
        ],
        enums: &[],
        service: None,
    },
    File {
        name: "envoy/extensions/common/ratelimit/v3/ratelimit.proto",
        package: "envoy.extensions.common.ratelimit.v3",
        imports: &["envoy/type/v3/ratelimit_unit.proto", "google/protobuf/wrappers.proto"],
        messages: &[Message {
            messages: &[
                message("Entry", &[("key", 1, One(Text)), ("value", 2, One(Text))]),
                message(
                    "RateLimitOverride",
                    &[
                        ("requests_per_unit", 1, One(U32)),
                        ("unit", 2, One(Enum(".envoy.type.v3.RateLimitUnit"))),
                    ],
                ),
            ],
            ..message(
                "RateLimitDescriptor",
                &[
                    (
                        "entries",
                        1,
                        Many(Of(".envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry")),
                    ),
                    (
                        "limit",
                        2,
                        One(Of(
                            ".envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.RateLimitOverride",
                        )),
                    ),
                    ("hits_addend", 3, One(Of(".google.protobuf.UInt64Value"))),
                    ("is_negative_hits", 4, One(Bool)),
                ],
            )
        }],
        enums: &[],
        service: None,
    },
    File {
        name: "envoy/service/ratelimit/v3/rls.proto",
        package: "envoy.service.ratelimit.v3",
        imports: &[
            "envoy/config/core/v3/base.proto",
            "envoy/extensions/common/ratelimit/v3/ratelimit.proto",
            "google/protobuf/duration.proto",
            "google/protobuf/struct.proto",
        ],
        messages: &[
            message(
                "RateLimitRequest",
                &[
                    ("domain", 1, One(Text)),
                    (
                        "descriptors",
                        2,
                        Many(Of(".envoy.extensions.common.ratelimit.v3.RateLimitDescriptor")),
                    ),
                    ("hits_addend", 3, One(U32)),
                ],
            ),
            RESPONSE,
        ],
        enums: &[],
        service: Some((
            "RateLimitService",
            [
                "ShouldRateLimit",
                ".envoy.service.ratelimit.v3.RateLimitRequest",
                ".envoy.service.ratelimit.v3.RateLimitResponse",
            ],
        )),
    },
];

const CODE: &str = ".envoy.service.ratelimit.v3.RateLimitResponse.Code";

const RESPONSE: Message = Message {
    messages: &[
        Message {
            enums: &[(
                "Unit",
                &[
                    ("UNKNOWN", 0),
                    ("SECOND", 1),
                    ("MINUTE", 2),
                    ("HOUR", 3),
                    ("DAY", 4),
                    ("WEEK", 7),
                    ("MONTH", 5),
                    ("YEAR", 6),
                ],
            )],
            ..message(
                "RateLimit",
                &[
                    ("requests_per_unit", 1, One(U32)),
                    ("unit", 2, One(Enum(UNIT))),
                    ("name", 3, One(Text)),
                ],
            )
        },
        message(
            "DescriptorStatus",
            &[
                ("code", 1, One(Enum(CODE))),
                (
                    "current_limit",
                    2,
                    One(Of(".envoy.service.ratelimit.v3.RateLimitResponse.RateLimit")),
                ),
                ("limit_remaining", 3, One(U32)),
                ("duration_until_reset", 4, One(Of(DURATION))),
            ],
        ),
    ],
    enums: &[("Code", &[("UNKNOWN", 0), ("OK", 1), ("OVER_LIMIT", 2)])],
    ..message(
        "RateLimitResponse",
        &[
            ("overall_code", 1, One(Enum(CODE))),
            (
                "statuses",
                2,
                Many(Of(".envoy.service.ratelimit.v3.RateLimitResponse.DescriptorStatus")),
            ),
            ("response_headers_to_add", 3, Many(Of(".envoy.config.core.v3.HeaderValue"))),
            ("dynamic_metadata", 6, One(Of(".google.protobuf.Struct"))),
        ],
    )
};
