//! The names of the fields.

use super::unit::Unit;

/// Whose clients read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    OpenAi,
    Anthropic,
}

/// What a field says of a policy.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Limit,
    Remaining,
    Reset,
}

/// A field of a [`Dialect`](super::Dialect).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DialectField(&'static str);

impl DialectField {
    pub(super) const RETRY_AFTER_MS: Self = Self("retry-after-ms");

    /// The name, in lower case.
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// The field of `part` for `unit`. `None` if the API has none.
    pub(super) const fn of(api: Api, unit: Unit, part: Part) -> Option<Self> {
        Some(Self(match (api, unit, part) {
            (Api::OpenAi, Unit::Requests, Part::Limit) => "x-ratelimit-limit-requests",
            (Api::OpenAi, Unit::Requests, Part::Remaining) => "x-ratelimit-remaining-requests",
            (Api::OpenAi, Unit::Requests, Part::Reset) => "x-ratelimit-reset-requests",
            (Api::OpenAi, Unit::Tokens, Part::Limit) => "x-ratelimit-limit-tokens",
            (Api::OpenAi, Unit::Tokens, Part::Remaining) => "x-ratelimit-remaining-tokens",
            (Api::OpenAi, Unit::Tokens, Part::Reset) => "x-ratelimit-reset-tokens",
            (Api::OpenAi, Unit::InputTokens | Unit::OutputTokens, _) => return None,
            (Api::Anthropic, Unit::Requests, Part::Limit) => "anthropic-ratelimit-requests-limit",
            (Api::Anthropic, Unit::Requests, Part::Remaining) => {
                "anthropic-ratelimit-requests-remaining"
            }
            (Api::Anthropic, Unit::Requests, Part::Reset) => "anthropic-ratelimit-requests-reset",
            (Api::Anthropic, Unit::Tokens, Part::Limit) => "anthropic-ratelimit-tokens-limit",
            (Api::Anthropic, Unit::Tokens, Part::Remaining) => {
                "anthropic-ratelimit-tokens-remaining"
            }
            (Api::Anthropic, Unit::Tokens, Part::Reset) => "anthropic-ratelimit-tokens-reset",
            (Api::Anthropic, Unit::InputTokens, Part::Limit) => {
                "anthropic-ratelimit-input-tokens-limit"
            }
            (Api::Anthropic, Unit::InputTokens, Part::Remaining) => {
                "anthropic-ratelimit-input-tokens-remaining"
            }
            (Api::Anthropic, Unit::InputTokens, Part::Reset) => {
                "anthropic-ratelimit-input-tokens-reset"
            }
            (Api::Anthropic, Unit::OutputTokens, Part::Limit) => {
                "anthropic-ratelimit-output-tokens-limit"
            }
            (Api::Anthropic, Unit::OutputTokens, Part::Remaining) => {
                "anthropic-ratelimit-output-tokens-remaining"
            }
            (Api::Anthropic, Unit::OutputTokens, Part::Reset) => {
                "anthropic-ratelimit-output-tokens-reset"
            }
        }))
    }
}
