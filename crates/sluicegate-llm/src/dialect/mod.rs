//! The header fields of services in front of language models, as the clients of their APIs read them.

mod error;
mod time;

use std::fmt;
use std::time::Duration;

use sluicegate_core::adapter::{self, Field, Headers, Refusal, Value};
use sluicegate_core::limit::{Decision, Limit, LimitStatus};

/// Header fields and error bodies as OpenAI's or Anthropic's API has them, so that their clients understand a service
/// without a change.
///
/// | | OpenAI | Anthropic |
/// | --- | --- | --- |
/// | limit | `x-ratelimit-limit-tokens: 200000` | `anthropic-ratelimit-tokens-limit: 200000` |
/// | what remains | `x-ratelimit-remaining-tokens: 1200` | `anthropic-ratelimit-tokens-remaining: 1200` |
/// | when all of it is back | `x-ratelimit-reset-tokens: 6m0s` | `anthropic-ratelimit-tokens-reset: 2026-11-22T20:15:00Z` |
/// | units | [`requests`](Self::requests), [`tokens`](Self::tokens) | these, [`input_tokens`](Self::input_tokens), [`output_tokens`](Self::output_tokens) |
/// | refused | `retry-after`, `retry-after-ms` | `retry-after` |
///
/// The names and meanings are those of OpenAI's guide "Rate limits" and of Anthropic's page "Rate limits". OpenAI's
/// clients read `retry-after-ms` before `retry-after`.
///
/// Each policy is assigned to a unit by the name of its limit, or by the name of its rule in a file. If several policies have one unit, such as tokens a minute and tokens a
/// day, the fields are about the one with the least left, or on a refusal about the one that refuses the longest.
///
/// ```
/// use sluicegate::limit::Limits;
/// use sluicegate::{Claim, Limit, RateLimitLayer};
/// use sluicegate_llm::Dialect;
///
/// let key = Claim("api_key");
/// let tokens = [Limit::per_minute(200_000).named("tpm"), Limit::per_day(2_000_000).named("tpd")];
/// let rule = (Limit::per_minute(500).named("rpm").by(key), Limits::from(tokens).by(key).cost(900));
/// let dialect = Dialect::openai().requests("rpm").tokens("tpm").tokens("tpd");
/// let layer = RateLimitLayer::new(rule).dialect(dialect.clone()).respond(dialect);
/// # let _ = layer;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Dialect {
    api: Api,
    policies: Vec<(String, Unit)>,
}

impl Dialect {
    /// The fields of OpenAI's API, which many others have too.
    pub const fn openai() -> Self {
        Self { api: Api::OpenAi, policies: Vec::new() }
    }

    /// The fields of Anthropic's API.
    pub const fn anthropic() -> Self {
        Self { api: Api::Anthropic, policies: Vec::new() }
    }

    /// The policy `name` counts requests.
    pub fn requests(self, name: impl Into<String>) -> Self {
        self.policy(name, Unit::Requests)
    }

    /// The policy `name` counts tokens of input and output.
    pub fn tokens(self, name: impl Into<String>) -> Self {
        self.policy(name, Unit::Tokens)
    }

    /// The policy `name` counts tokens of input.
    ///
    /// # Panics
    ///
    /// If the dialect is OpenAI's, which has no fields for them.
    #[track_caller]
    pub fn input_tokens(self, name: impl Into<String>) -> Self {
        self.policy(name, Unit::InputTokens)
    }

    /// The policy `name` counts tokens of output.
    ///
    /// # Panics
    ///
    /// If the dialect is OpenAI's, which has no fields for them.
    #[track_caller]
    pub fn output_tokens(self, name: impl Into<String>) -> Self {
        self.policy(name, Unit::OutputTokens)
    }

    /// The policy `name` counts `unit`.
    ///
    /// # Panics
    ///
    /// If the dialect has no fields for `unit`, or the policy counts another one already.
    #[track_caller]
    pub fn policy(mut self, name: impl Into<String>, unit: Unit) -> Self {
        let name = name.into();
        assert!(
            self.api.fields(unit).is_some(),
            "OpenAI's dialect has no fields for {unit}: call `tokens(\"{name}\")`"
        );
        if let Some((_, other)) = self.policies.iter().find(|(policy, _)| *policy == name) {
            assert!(*other == unit, "the policy `{name}` counts either {other} or {unit}");
            return self;
        }
        self.policies.push((name, unit));
        self
    }

    /// The policies and their units.
    pub fn policies(&self) -> impl Iterator<Item = (&str, Unit)> {
        self.policies.iter().map(|(name, unit)| (name.as_str(), *unit))
    }

    #[cfg(any(feature = "actix", feature = "tower"))]
    pub(crate) const fn api(&self) -> Api {
        self.api
    }

    /// The unit of a status. `None` if its policy has none.
    fn unit_of(&self, status: &LimitStatus) -> Option<Unit> {
        self.policies().find(|(policy, _)| is_of(&status.limit, policy)).map(|(_, unit)| unit)
    }

    /// For each unit, the status that its fields are about.
    fn shown<'d>(&self, decision: &'d Decision) -> [Option<&'d LimitStatus>; Unit::ALL.len()] {
        let mut shown = [None; Unit::ALL.len()];
        for status in told(decision) {
            let Some(unit) = self.unit_of(status) else { continue };
            let of_unit = &mut shown[unit as usize];
            if of_unit.is_none_or(|before| is_before(status, before)) {
                *of_unit = Some(status);
            }
        }
        shown
    }

    fn reset(&self, reset: Duration, now: u64) -> String {
        match self.api {
            Api::OpenAi => time::go_duration(reset),
            Api::Anthropic => time::rfc3339(Duration::from_micros(now).saturating_add(reset)),
        }
    }
}

impl adapter::Dialect for Dialect {
    #[track_caller]
    fn check(&self, limits: &[Limit]) {
        assert!(
            !self.policies.is_empty(),
            "the dialect names no policy: call `requests(..)` or `tokens(..)`",
        );
        if limits.is_empty() {
            return;
        }
        for (policy, unit) in self.policies() {
            let names = || limits.iter().map(|limit| limit.name().to_string());
            assert!(
                limits.iter().any(|limit| is_of(limit, policy)),
                "no limit is named `{policy}`, of which the dialect tells {unit}: there are `{}`",
                Vec::from_iter(names()).join("`, `"),
            );
        }
    }

    fn write(&self, decision: &Decision, now: u64, headers: &mut dyn Headers) {
        for (unit, status) in Unit::ALL.into_iter().zip(self.shown(decision)) {
            let (Some([limit, remaining, reset]), Some(status)) = (self.api.fields(unit), status)
            else {
                continue;
            };
            // With layers on top of one another, these are about the innermost one, like other fields of one limit.
            if headers.contains(Field::Named(limit)) {
                continue;
            }
            headers.insert(Field::Named(limit), Value::Number(status.limit.capacity()));
            headers.insert(Field::Named(remaining), Value::Number(status.remaining));
            if let Some(after) = status.reset {
                let text = self.reset(after, now);
                headers.insert(Field::Named(reset), Value::Text(text.as_bytes()));
            }
        }
    }

    fn write_retry(&self, decision: &Decision, headers: &mut dyn Headers) {
        if let (Api::OpenAi, Some(retry)) = (self.api, decision.retry_after()) {
            headers.insert(Field::Named("retry-after-ms"), Value::Number(time::millis(retry)));
        }
    }

    /// - OpenAI: `{"error":{"message":"…","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, where the type is
    ///   the unit of the limit that refuses.
    /// - Anthropic: `{"type":"error","error":{"type":"rate_limit_error","message":"…"}}`.
    fn error_body(&self, refusal: &Refusal) -> String {
        error::body(self, refusal)
    }
}

/// Whose clients read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    OpenAi,
    Anthropic,
}

impl Api {
    /// The fields for what a policy admits, what remains, and when all of it is back. `None` if the API has none.
    const fn fields(self, unit: Unit) -> Option<[&'static str; 3]> {
        Some(match (self, unit) {
            (Self::OpenAi, Unit::Requests) => [
                "x-ratelimit-limit-requests",
                "x-ratelimit-remaining-requests",
                "x-ratelimit-reset-requests",
            ],
            (Self::OpenAi, Unit::Tokens) => [
                "x-ratelimit-limit-tokens",
                "x-ratelimit-remaining-tokens",
                "x-ratelimit-reset-tokens",
            ],
            (Self::OpenAi, Unit::InputTokens | Unit::OutputTokens) => return None,
            (Self::Anthropic, Unit::Requests) => [
                "anthropic-ratelimit-requests-limit",
                "anthropic-ratelimit-requests-remaining",
                "anthropic-ratelimit-requests-reset",
            ],
            (Self::Anthropic, Unit::Tokens) => [
                "anthropic-ratelimit-tokens-limit",
                "anthropic-ratelimit-tokens-remaining",
                "anthropic-ratelimit-tokens-reset",
            ],
            (Self::Anthropic, Unit::InputTokens) => [
                "anthropic-ratelimit-input-tokens-limit",
                "anthropic-ratelimit-input-tokens-remaining",
                "anthropic-ratelimit-input-tokens-reset",
            ],
            (Self::Anthropic, Unit::OutputTokens) => [
                "anthropic-ratelimit-output-tokens-limit",
                "anthropic-ratelimit-output-tokens-remaining",
                "anthropic-ratelimit-output-tokens-reset",
            ],
        })
    }
}

/// What a policy counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Requests.
    Requests,
    /// Tokens of input and output.
    Tokens,
    /// Tokens of input.
    InputTokens,
    /// Tokens of output.
    OutputTokens,
}

impl Unit {
    const ALL: [Self; 4] = [Self::Requests, Self::Tokens, Self::InputTokens, Self::OutputTokens];
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::InputTokens => "input tokens",
            Self::OutputTokens => "output tokens",
        })
    }
}

/// The statuses that clients are told of: not those of a shadow, and of a limit that was not counted.
fn told(decision: &Decision) -> impl Iterator<Item = &LimitStatus> {
    decision.statuses().filter(|status| !status.limit.is_shadow() && !status.uncounted)
}

/// Whether `limit` is of the policy `name`: it has that name, or it is one of several limits of a rule in a file, such as
/// `tokens/minute` and `tokens/day` of `tokens`.
fn is_of(limit: &Limit, name: &str) -> bool {
    match limit.own_name() {
        Some(own) => {
            own.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
        None => limit.name().to_string() == name,
    }
}

/// Whether clients should rather be told of `status` than of `other`.
fn is_before(status: &LimitStatus, other: &LimitStatus) -> bool {
    let retry = |status: &LimitStatus| status.retry.unwrap_or(Duration::MAX);
    match (status.refused, other.refused) {
        (true, true) => retry(status) > retry(other),
        (false, false) => status.remaining < other.remaining,
        (is_refused, _) => is_refused,
    }
}

#[cfg(test)]
mod tests;
