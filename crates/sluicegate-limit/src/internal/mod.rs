//! What `sluicegate-core` needs of the arithmetic beyond the public API. No part of that API: it changes with any version.

mod limit;
mod outcome;

pub use self::limit::LimitInternals;
pub use self::outcome::{CountedIn, OutcomeInternals};
pub use crate::algorithm::sliding_log::{Log, MOST_ENTRIES};
pub use crate::algorithm::token_bucket::TokenBucket;
pub use crate::exact::bounded;
pub use crate::inline_vec::{InlineVec, Iter};
pub use crate::state::{Step, Words};
pub use crate::text::NamePiece;

/// Limits that become rules, with keys that are written to a `Buffer`.
///
/// `sluicegate-core` implements it, once, for its own buffer. So the compiler finds the buffer by itself, and
/// [`Limit::by`](crate::Limit::by) needs no import although this crate knows neither keys nor rules.
#[diagnostic::on_unimplemented(
    message = "rules need `sluicegate-core`, and this program does not depend on it",
    note = "without it, hold the state yourself: `limit.take(&mut state, now, cost)`"
)]
pub trait IntoRule<Buffer> {
    /// The rule that charges the limits to a key `K`.
    type By<K>;

    /// Makes the rule.
    fn by<K>(self, key: K) -> Self::By<K>;
}
