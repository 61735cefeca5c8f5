use std::fmt;

use metrics::{Counter, counter, describe_counter};
use sluicegate_config::envoy::service::{Answer, BadRequest, Status};
use sluicegate_core::store::StoreError;

/// What was answered to Envoy. Made once, so that counting is one addition.
#[derive(Clone)]
pub(crate) struct Counters {
    ok: Counter,
    over_limit: Counter,
    bad: Counter,
    undecided: Counter,
    near: Counter,
    shadowed: Counter,
}

const ANSWERS: &str = "sluicegate_rls_answers_total";
const NEAR: &str = "sluicegate_rls_near_limit_total";
const SHADOWED: &str = "sluicegate_rls_shadowed_total";

impl Counters {
    /// Registers them. A recorder that is installed later does not see them.
    pub(crate) fn new() -> Self {
        describe_counter!(ANSWERS, "Answers to Envoy and to `/json`.");
        describe_counter!(
            NEAR,
            "Descriptors within their limit, with more than four fifths of it spent."
        );
        describe_counter!(SHADOWED, "Descriptors over a limit that is a shadow or a quota.");
        Self {
            ok: counter!(ANSWERS, "code" => "ok"),
            over_limit: counter!(ANSWERS, "code" => "over_limit"),
            bad: counter!(ANSWERS, "code" => "bad_request"),
            undecided: counter!(ANSWERS, "code" => "store_error"),
            near: counter!(NEAR),
            shadowed: counter!(SHADOWED),
        }
    }

    pub(super) fn count(&self, answered: &Result<Answer, Failure>) {
        match answered {
            Ok(answer) => {
                if answer.is_over { &self.over_limit } else { &self.ok }.increment(1);
                for status in &answer.statuses {
                    self.status(status);
                }
            }
            Err(Failure::Bad(_)) => self.count_bad(),
            Err(Failure::Undecided(_)) => self.undecided.increment(1),
        }
    }

    /// Counts an answer to a request that makes no sense.
    pub(super) fn count_bad(&self) {
        self.bad.increment(1);
    }

    fn status(&self, status: &Status) {
        if status.would_be_over {
            if !status.is_over {
                self.shadowed.increment(1);
            }
        } else if is_near(status) {
            self.near.increment(1);
        }
    }
}

/// As Envoy's service has it: more than four fifths are spent.
fn is_near(status: &Status) -> bool {
    let Some(limit) = &status.limit else { return false };
    let (count, left) = (u64::from(limit.count), u64::from(status.remaining));
    5 * count.saturating_sub(left) > 4 * count
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counters")
    }
}

/// Why a request is not decided.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// The request makes no sense.
    Bad(BadRequest),
    /// The store could not decide, and the service refuses requests then.
    Undecided(StoreError),
}

impl From<BadRequest> for Failure {
    fn from(bad: BadRequest) -> Self {
        Self::Bad(bad)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Undecided(error)
    }
}

#[cfg(test)]
mod tests {
    use sluicegate_config::envoy::service::{CurrentLimit, Unit};

    use super::*;

    #[test]
    fn a_limit_is_near_when_more_than_four_fifths_are_spent() {
        for (count, left, near) in [
            (10, 10, false),
            (10, 2, false),
            (10, 1, true),
            (10, 0, true),
            (1, 0, true),
            (u32::MAX, u32::MAX, false),
            (0, 0, false),
        ] {
            let limit = CurrentLimit { count, unit: Unit::Day, name: "".into() };
            let status = Status { limit: Some(limit), remaining: left, ..Status::default() };
            assert_eq!(is_near(&status), near, "{left} of {count}");
        }
        assert!(!is_near(&Status::default()));
    }
}
