use sluicegate_core::adapter::Reply;
use sluicegate_core::cost::{CostOf, Settlement};
use sluicegate_core::key::{Missing, View};

use crate::usage::{Count, TokenUsage, Usage};

/// How many tokens a request may use. An estimate leaves it in the request's extensions, for [`tokens`].
///
/// Code that knows better than [`Estimate`](super::Estimate), such as one with the model's tokenizer, leaves its own.
///
/// ```
/// use sluicegate_llm::EstimatedTokens;
///
/// let estimated = EstimatedTokens::new(1_200, 500);
/// // request.extensions_mut().insert(estimated);
/// assert_eq!(estimated.all, 1_700);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EstimatedTokens {
    /// Tokens of the request.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// What is reserved of a limit that counts both: mostly the sum.
    pub all: u64,
}

impl EstimatedTokens {
    /// An estimate with the sum of `input` and `output`.
    pub const fn new(input: u64, output: u64) -> Self {
        Self { input, output, all: input.saturating_add(output) }
    }

    /// The larger number of each.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            all: self.all.max(other.all),
        }
    }

    /// What is reserved of a limit that counts `count`. It is not known yet what will be read from a cache.
    const fn reserved(&self, count: Count) -> u64 {
        match count {
            Count::All | Count::Uncached => self.all,
            Count::Input | Count::UncachedInput => self.input,
            Count::Output => self.output,
        }
    }
}

/// The cost of a request in tokens: what its [`EstimatedTokens`] say, at least 1.
///
/// A request without an estimate is a mistake of the server's set-up, unless [`or`](Tokens::or) says what it costs.
///
/// ```
/// use sluicegate::{Claim, Limit};
/// use sluicegate_llm::{Count, tokens, used_tokens};
///
/// let rule = Limit::per_minute(200_000)
///     .by(Claim("api_key"))
///     .cost(tokens(Count::All))
///     .settle_by(used_tokens(Count::All));
/// # let _ = rule;
/// ```
pub const fn tokens(count: Count) -> Tokens {
    Tokens { count, default: None, most: u64::MAX }
}

/// The cost of a request in tokens; see [`tokens`].
#[derive(Debug, Clone, Copy)]
pub struct Tokens {
    count: Count,
    default: Option<u64>,
    most: u64,
}

impl Tokens {
    /// The cost of a request without an estimate.
    #[must_use]
    pub const fn or(self, tokens: u64) -> Self {
        Self { default: Some(tokens), ..self }
    }

    /// Reserves at most `tokens` for one request, however many it asks for. Without it, a request that asks for more
    /// than a limit holds can never be admitted, and is refused.
    #[must_use]
    pub const fn at_most(self, tokens: u64) -> Self {
        Self { most: tokens, ..self }
    }
}

impl<V: View> CostOf<V> for Tokens {
    fn of(&self, view: &V) -> Result<u64, Missing> {
        let estimated =
            view.extension(|estimated: &EstimatedTokens| estimated.reserved(self.count));
        let reserved = estimated.or(self.default).ok_or_else(no_estimate)?;
        Ok(reserved.min(self.most).max(1))
    }
}

#[cold]
fn no_estimate() -> Missing {
    Missing::server(
        "an estimate of its tokens",
        "describe the request with `tokens`; in code, put an `EstimateLayer` around the rate limit; or say what such a \
         request costs, by a `default` in a file or by `tokens(..).or(..)`",
    )
}

/// Settles by the tokens that the answer used: by what `count` counts of its [`TokenUsage`], when that is final or the body
/// has ended.
///
/// | then | the request is charged |
/// | --- | --- |
/// | the usage is final | what was used, even beyond the limit: the next requests wait for it |
/// | the client has gone, the stream broke, or the model did not report | the larger of the reservation and what was seen |
/// | there is no `TokenUsage`, and the handler left a [`Cost`](sluicegate_core::Cost) | that cost, whatever the status is |
/// | the status is 400 or more, and neither was reported | nothing |
/// | neither was reported | the reservation |
///
/// ```
/// use sluicegate::{Claim, Limit};
/// use sluicegate_llm::{Count, tokens, used_tokens};
///
/// // 40,000 tokens of input and 8,000 of output a minute. Input that the model had in its cache is free.
/// let (key, input, output) = (Claim("api_key"), Count::UncachedInput, Count::Output);
/// let (per_input, per_output) = (Limit::per_minute(40_000).by(key), Limit::per_minute(8_000).by(key));
/// let rule = (
///     per_input.cost(tokens(input)).settle_by(used_tokens(input)),
///     per_output.cost(tokens(output)).settle_by(used_tokens(output)),
/// );
/// # let _ = rule;
/// ```
pub const fn used_tokens(count: Count) -> UsedTokens {
    UsedTokens { count }
}

/// What a request is charged by the tokens that it used; see [`used_tokens`].
#[derive(Debug, Clone, Copy)]
pub struct UsedTokens {
    count: Count,
}

impl Settlement for UsedTokens {
    fn spent(&self, reply: &dyn Reply, charged: u64) -> u64 {
        match usage(reply) {
            Some(usage) if usage.is_final() => usage.usage().counted(self.count),
            Some(usage) => {
                let seen = usage.usage().counted(self.count);
                if seen == 0 && is_error(reply) { 0 } else { seen.max(charged) }
            }
            None => reply.cost().unwrap_or(if is_error(reply) { 0 } else { charged }),
        }
    }

    /// The answer was compressed, or did not say it, or its client has gone before.
    fn is_guess(reply: &dyn Reply) -> bool {
        match usage(reply) {
            Some(usage) if usage.is_final() => false,
            Some(usage) => !is_error(reply) || usage.usage() != Usage::default(),
            None => !is_error(reply) && reply.cost().is_none(),
        }
    }
}

fn usage(reply: &dyn Reply) -> Option<TokenUsage> {
    reply.running().and_then(TokenUsage::of)
}

/// No model has worked for such a response.
fn is_error(reply: &dyn Reply) -> bool {
    reply.status() >= 400
}
