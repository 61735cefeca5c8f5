//! A part of a limit, for a process that decides alone over a part of the requests.

use super::definition::{AlgorithmSpec, Limit};
use super::error::LimitError;

impl Limit {
    /// The part `parts / of` of the limit: what it counts is scaled, rounded down, and at least 1; its
    /// times stay.
    ///
    /// It keeps the identity, so that limits which are told apart whole are told apart in part.
    pub(crate) fn try_share(self, parts: u64, of: u64) -> Result<Self, LimitError> {
        let scale = |whole: u64| {
            let part = u128::from(whole) * u128::from(parts) / u128::from(of);
            u64::try_from(part).unwrap_or(u64::MAX).max(1)
        };
        let spec = match self.spec {
            AlgorithmSpec::TokenBucket { burst } => {
                AlgorithmSpec::TokenBucket { burst: scale(burst) }
            }
            AlgorithmSpec::SteppedBucket { burst } => {
                AlgorithmSpec::SteppedBucket { burst: scale(burst) }
            }
            AlgorithmSpec::LeakyBucket { queue, delay_after } => AlgorithmSpec::LeakyBucket {
                queue: scale(queue + 1) - 1,
                delay_after: scale(delay_after + 1) - 1,
            },
            other => other,
        };
        let mut share = Self { spec, count: scale(self.count), soft: None, ..self };
        // What is too small to be soft below is not.
        share.soft = self.soft.map(scale).filter(|soft| *soft < share.capacity());
        Ok(Self { id: self.id, ..share.checked()? })
    }
}
