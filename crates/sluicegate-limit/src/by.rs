//! Limits become rules by a key. What a rule is, `sluicegate-core` says.

use crate::definition::Limit;
use crate::list::Limits;

/// Limits that become rules, with keys that are written to a `Buffer`.
///
/// `sluicegate-core` implements it, once, for its own buffer. So the compiler finds the buffer by itself, and
/// [`Limit::by`] needs no import although this crate knows neither keys nor rules.
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

impl Limit {
    /// The rule that charges this limit to `key`: a `By` of `sluicegate::rule`.
    pub fn by<K, Buffer>(self, key: K) -> <Limits as IntoRule<Buffer>>::By<K>
    where
        Limits: IntoRule<Buffer>,
    {
        Limits::from(self).by(key)
    }
}

impl Limits {
    /// The rule that charges these limits to `key`: a `By` of `sluicegate::rule`.
    pub fn by<K, Buffer>(self, key: K) -> <Self as IntoRule<Buffer>>::By<K>
    where
        Self: IntoRule<Buffer>,
    {
        IntoRule::by(self, key)
    }
}
