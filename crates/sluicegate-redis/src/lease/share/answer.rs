use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Outcome;
use sluicegate_core::adapter::remote::{self, LimitOutcome, Role};
use sluicegate_core::limit::Verdict;

use crate::lease::validity::{LeasedTokens, Validity, micros};
use crate::script::lease::Lease;

/// A charge of `cost`, whose tokens have been taken out of `part`.
pub(super) fn admitted(
    (limit, cost): (&Limit, u64),
    (part, validity): (&LeasedTokens, &Validity),
    now: u64,
) -> Outcome {
    let words = part.words(validity);
    let outcome = if limit.is_carried() {
        // The receipt of the server's charge says whether the key was banned then.
        let ban = if part.banned { [now, 1] } else { [0; 2] };
        let words = [words, [0; 2], ban, [0; 2]];
        LimitOutcome::of_extra_state(limit, cost, words, part.carried, now, Role::Charged)
    } else {
        LimitOutcome::of_words(words, now, Role::Charged)
    };
    remote::outcome(Verdict::Admit { wait: Duration::ZERO }, [outcome])
}

pub(super) fn refusal(words: [u64; 2], now: u64, retry_after: Option<Duration>) -> Outcome {
    let outcome = LimitOutcome::of_words(words, now, Role::Refused(true));
    remote::outcome(Verdict::Refuse { retry_after }, [outcome])
}

/// How long a refusal is remembered at most, in microseconds. What others give back is noticed after that.
pub(super) const REMEMBERED: u64 = 1_000_000;

/// The last refusal of the server. Times are by this process's clock, unless noted otherwise.
#[derive(Debug)]
pub(super) struct Refusal {
    cost: u64,
    /// Whether the server is not asked about other costs either.
    is_paced: bool,
    /// When the server may have enough tokens again: at the earliest, and with certainty.
    again: [u64; 2],
    words: [u64; 2],
    asked: u64,
    /// When it refused, by its own clock.
    at: u64,
}

impl Refusal {
    /// The refusal of a request of `cost` that the server would admit after `retry`. The server is not asked again before
    /// `pace` has passed, either.
    pub(super) fn of(
        lease: &Lease,
        (asked, now): (u64, u64),
        (cost, retry): (u64, Duration),
        pace: u64,
    ) -> Self {
        let retry = micros(retry).max(pace);
        let again = [asked.saturating_add(retry.min(REMEMBERED)), now.saturating_add(retry)];
        Self { cost, is_paced: pace > 0, again, words: lease.words, asked, at: lease.now }
    }

    pub(super) const fn is_over(&self, now: u64) -> bool {
        now >= self.again[0]
    }

    /// The answer that the server would give to a request of this cost, or of more while it is not asked.
    pub(super) fn outcome(&self, now: u64, cost: u64) -> Option<Outcome> {
        let at = self.at + now.saturating_sub(self.asked);
        let retry = Duration::from_micros(self.again[1].saturating_sub(now));
        (cost == self.cost || self.is_paced && cost > self.cost)
            .then(|| refusal(self.words, at, Some(retry)))
    }
}
