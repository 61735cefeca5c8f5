use std::time::Duration;

use sluicegate_core::adapter::Outcome;
use sluicegate_core::adapter::remote::{self, LimitOutcome, Role};
use sluicegate_core::limit::Verdict;

pub(super) fn admitted(words: [u64; 2], now: u64) -> Outcome {
    let outcome = LimitOutcome::of_words(words, now, Role::Charged);
    remote::outcome(Verdict::Admit { wait: Duration::ZERO }, [outcome])
}

pub(super) fn refusal(words: [u64; 2], now: u64, retry_after: Option<Duration>) -> Outcome {
    let outcome = LimitOutcome::of_words(words, now, Role::Refused(true));
    remote::outcome(Verdict::Refuse { retry_after }, [outcome])
}
