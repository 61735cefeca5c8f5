//! How long to wait before trying again.

use std::time::Duration;

/// Pauses from `first`, twice as long each time, up to `longest`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
}

impl Backoff {
    /// The pause after `failed` attempts. Up to half of it is random, so that clients that lost their server at one moment
    /// do not all return at one moment.
    pub(crate) fn after(self, failed: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failed.saturating_sub(1));
        let whole = self.first.saturating_mul(doubled).min(self.longest);
        let half = whole / 2;
        half + half.mul_f64(fastrand::f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff =
        Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(5) };

    #[test]
    fn waits_double_up_to_the_longest() {
        for (failed, whole) in [(0, 100), (1, 100), (2, 200), (6, 3_200), (7, 5_000), (99, 5_000)] {
            let whole = Duration::from_millis(whole);
            for _ in 0..100 {
                let wait = BACKOFF.after(failed);
                assert!(wait >= whole / 2 && wait <= whole, "{wait:?} after {failed}");
            }
        }
    }

    #[test]
    fn waits_differ() {
        let waits: Vec<_> = (0..20).map(|_| BACKOFF.after(3)).collect();
        assert!(waits.iter().any(|wait| *wait != waits[0]));
    }
}
