use sluicegate_axum::Limit;
use sluicegate_axum::adapter::{Answer, Charge};
use sluicegate_axum::key::KeyBuf;
use sluicegate_axum::store::Store;

use super::{BURST, Remote};

/// A store of sluicegate's, asked with a charge, as the layers do.
#[derive(Debug, Clone)]
pub struct Sluicegate<S> {
    store: S,
    limit: Limit,
}

impl<S> Sluicegate<S> {
    /// One limit in a store.
    pub fn new(store: S, limit: Limit) -> Self {
        Self { store, limit }
    }
}

/// A limit that is never reached.
pub fn limit() -> Limit {
    Limit::per_second(1).burst(BURST)
}

impl<S> Remote for Sluicegate<S>
where
    S: Store<Future: Send> + Clone + Send + Sync + 'static,
{
    async fn decide(&self, key: &str) -> bool {
        let charge = Charge::of(self.limit, KeyBuf::of(key), 1);
        let outcome = match self.store.take(&charge) {
            Answer::Now(outcome) => outcome,
            Answer::Later(outcome) => outcome.await,
        };
        outcome.expect("the server answers").is_admitted()
    }
}
