use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Outcome;
use sluicegate_core::adapter::remote::{self, LimitOutcome, Role};
use sluicegate_core::limit::Verdict;

use crate::lease::validity::{LeasedTokens, Validity};

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
