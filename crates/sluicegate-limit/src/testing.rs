//! Decisions told in full, for tests that look at them.

use core::time::Duration;

use crate::{Attempt, Decision, Keys};

pub(crate) fn decide(
    attempts: &mut [Attempt<'_>],
    now: u64,
    patience: Option<Duration>,
    keys: Keys,
) -> Decision {
    let outcome = super::decide(attempts, now, patience, keys);
    outcome.decision(attempts.iter().map(|attempt| (attempt.limit, attempt.cost)))
}

pub(crate) fn preview(attempts: &mut [Attempt<'_>], now: u64, keys: Keys) -> Decision {
    let outcome = super::preview(attempts, now, None, keys);
    outcome.decision(attempts.iter().map(|attempt| (attempt.limit, attempt.cost)))
}
