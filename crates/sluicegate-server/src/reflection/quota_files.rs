//! The protocol files of Envoy's rate limit quota service, as far as the service uses them. Its only method is a stream
//! in both directions.

use super::make::Holds::{Many, One};
use super::make::Kind::{Enum, Message as Of, Text, U32, U64};
use super::make::{File, Message, message};

const DURATION: &str = ".google.protobuf.Duration";
const BUCKET: &str = ".envoy.service.rate_limit_quota.v3.BucketId";
const STRATEGY: &str = ".envoy.type.v3.RateLimitStrategy";

/// Every file after those that it imports. The others are in [`files`](super::files).
pub(super) const FILES: [File; 3] = [
    File {
        name: "envoy/type/v3/token_bucket.proto",
        package: "envoy.type.v3",
        imports: &["google/protobuf/duration.proto", "google/protobuf/wrappers.proto"],
        messages: &[message(
            "TokenBucket",
            &[
                ("max_tokens", 1, One(U32)),
                ("tokens_per_fill", 2, One(Of(".google.protobuf.UInt32Value"))),
                ("fill_interval", 3, One(Of(DURATION))),
            ],
        )],
        enums: &[],
        service: None,
    },
    File {
        name: "envoy/type/v3/ratelimit_strategy.proto",
        package: "envoy.type.v3",
        imports: &["envoy/type/v3/ratelimit_unit.proto", "envoy/type/v3/token_bucket.proto"],
        messages: &[Message {
            messages: &[message(
                "RequestsPerTimeUnit",
                &[
                    ("requests_per_time_unit", 1, One(U64)),
                    ("time_unit", 2, One(Enum(".envoy.type.v3.RateLimitUnit"))),
                ],
            )],
            enums: &[("BlanketRule", &[("ALLOW_ALL", 0), ("DENY_ALL", 1)])],
            one_of: Some("strategy"),
            ..message(
                "RateLimitStrategy",
                &[
                    ("blanket_rule", 1, One(Enum(".envoy.type.v3.RateLimitStrategy.BlanketRule"))),
                    (
                        "requests_per_time_unit",
                        2,
                        One(Of(".envoy.type.v3.RateLimitStrategy.RequestsPerTimeUnit")),
                    ),
                    ("token_bucket", 3, One(Of(".envoy.type.v3.TokenBucket"))),
                ],
            )
        }],
        enums: &[],
        service: None,
    },
    File {
        name: "envoy/service/rate_limit_quota/v3/rlqs.proto",
        package: "envoy.service.rate_limit_quota.v3",
        imports: &["envoy/type/v3/ratelimit_strategy.proto", "google/protobuf/duration.proto"],
        messages: &[
            Message {
                // A map is a list of entries on the wire.
                messages: &[message(
                    "BucketEntry",
                    &[("key", 1, One(Text)), ("value", 2, One(Text))],
                )],
                ..message(
                    "BucketId",
                    &[(
                        "bucket",
                        1,
                        Many(Of(".envoy.service.rate_limit_quota.v3.BucketId.BucketEntry")),
                    )],
                )
            },
            REPORTS,
            RESPONSE,
        ],
        enums: &[],
        service: Some((
            "RateLimitQuotaService",
            [
                "StreamRateLimitQuotas",
                ".envoy.service.rate_limit_quota.v3.RateLimitQuotaUsageReports",
                ".envoy.service.rate_limit_quota.v3.RateLimitQuotaResponse",
            ],
        )),
    },
];

const REPORTS: Message = Message {
    messages: &[message(
        "BucketQuotaUsage",
        &[
            ("bucket_id", 1, One(Of(BUCKET))),
            ("time_elapsed", 2, One(Of(DURATION))),
            ("num_requests_allowed", 3, One(U64)),
            ("num_requests_denied", 4, One(U64)),
        ],
    )],
    ..message(
        "RateLimitQuotaUsageReports",
        &[
            ("domain", 1, One(Text)),
            (
                "bucket_quota_usages",
                2,
                Many(Of(
                    ".envoy.service.rate_limit_quota.v3.RateLimitQuotaUsageReports.BucketQuotaUsage",
                )),
            ),
        ],
    )
};

const RESPONSE: Message = Message {
    messages: &[Message {
        messages: &[
            message(
                "QuotaAssignmentAction",
                &[
                    ("assignment_time_to_live", 2, One(Of(DURATION))),
                    ("rate_limit_strategy", 3, One(Of(STRATEGY))),
                ],
            ),
            message("AbandonAction", &[]),
        ],
        ..message(
            "BucketAction",
            &[
                ("bucket_id", 1, One(Of(BUCKET))),
                (
                    "quota_assignment_action",
                    2,
                    One(Of(
                        ".envoy.service.rate_limit_quota.v3.RateLimitQuotaResponse.BucketAction.QuotaAssignmentAction",
                    )),
                ),
                (
                    "abandon_action",
                    3,
                    One(Of(
                        ".envoy.service.rate_limit_quota.v3.RateLimitQuotaResponse.BucketAction.AbandonAction",
                    )),
                ),
            ],
        )
    }],
    ..message(
        "RateLimitQuotaResponse",
        &[(
            "bucket_action",
            1,
            Many(Of(".envoy.service.rate_limit_quota.v3.RateLimitQuotaResponse.BucketAction")),
        )],
    )
};
