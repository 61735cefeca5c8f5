use crate::cost::CostOf;
use crate::cost::llm::usage::Count;
use crate::key::{Missing, View};

/// How many tokens a request may use. An estimate leaves it in the request's extensions, for [`tokens`].
///
/// Code that knows better than [`Estimate`](super::Estimate), such as one with the model's tokenizer, leaves its own.
///
/// ```
/// use sluicegate::cost::llm::EstimatedTokens;
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
    pub(super) fn max(self, other: Self) -> Self {
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
/// use sluicegate::cost::llm::{Count, tokens};
/// use sluicegate::{Claim, Limit};
///
/// let rule = Limit::per_minute(200_000)
///     .by(Claim("api_key"))
///     .cost(tokens(Count::All))
///     .settle_tokens(Count::All);
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
        let reserved = estimated.or(self.default).ok_or_else(|| no_estimate(view.tokens_hint()))?;
        Ok(reserved.min(self.most).max(1))
    }
}

#[cold]
fn no_estimate(hint: Option<&'static str>) -> Missing {
    Missing::server("an estimate of its tokens", hint.unwrap_or(LAYER_HINT))
}

const LAYER_HINT: &str = "put the layer that estimates around the rate limit, or say what such a request costs by `tokens(..).or(..)`";
