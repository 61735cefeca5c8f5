//! Header fields that the proxy adds to the response.

use envoy_types::pb::envoy::config::core::v3::HeaderValue;
use sluicegate_config::envoy::service::Answer;
use sluicegate_core::adapter::fields;

use crate::fields::Fields;

/// The fields of an answer. There are none if it is about no limit.
pub(super) fn of(answer: &Answer, fields: Fields) -> Vec<HeaderValue> {
    match fields {
        Fields::Nothing => Vec::new(),
        Fields::Draft => draft(answer),
        Fields::Three => three(answer).unwrap_or_default(),
    }
}

fn draft(answer: &Answer) -> Vec<HeaderValue> {
    let decision = &answer.decision;
    let policy = fields::rate_limit_policy(decision);
    if policy.is_empty() {
        return Vec::new();
    }
    let mut all = vec![
        field(fields::RATE_LIMIT_POLICY, policy),
        field(fields::RATE_LIMIT, fields::rate_limit(decision)),
    ];
    if answer.is_over && !decision.is_admitted() && !decision.never_fits() {
        all.push(field(fields::RETRY_AFTER, fields::retry_after(decision).to_string()));
    }
    all
}

fn three(answer: &Answer) -> Option<Vec<HeaderValue>> {
    let status = answer.tightest()?;
    let limit = status.limit.as_ref()?;
    let reset = status.until_reset.unwrap_or_default();
    let reset = reset.as_secs() + u64::from(reset.subsec_nanos() > 0);
    Some(vec![
        field("RateLimit-Limit", limit.count.to_string()),
        field("RateLimit-Remaining", status.remaining.to_string()),
        field("RateLimit-Reset", reset.to_string()),
    ])
}

fn field(name: &str, value: String) -> HeaderValue {
    HeaderValue { key: name.to_owned(), value, ..HeaderValue::default() }
}
