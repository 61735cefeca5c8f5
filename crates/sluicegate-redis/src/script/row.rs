use sluicegate_core::adapter::Debit;
use sluicegate_core::adapter::remote::{Algorithm, LimitParameters};

/// A debit and the Redis key of its row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    /// The Redis key.
    pub(crate) key: &'a [u8],
    pub(crate) debit: &'a Debit,
}

impl Row<'_> {
    /// The key beside a bucket's row that records what the bucket owed at its last lease.
    pub(super) fn lease_key(&self) -> Option<Vec<u8>> {
        let parameters = LimitParameters::of(&self.debit.limit);
        let is_leased = matches!(parameters.algorithm, Algorithm::TokenBucket { .. })
            && (parameters.carried || !parameters.extra_state);
        is_leased.then(|| [self.key, b":leased"].concat())
    }
}
