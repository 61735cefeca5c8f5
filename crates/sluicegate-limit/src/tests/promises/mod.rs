//! The promises of the arithmetic, over every algorithm and option and awkward rates.

mod clock;
mod exact;
mod extreme_pairs;
mod extremes;
mod intervals;
mod looking;
mod nginx;
mod refunds;
mod retry;
mod waits;

use std::time::Duration;

use super::super::{Decision, Limit, Receipt, State};
use super::strategies::Turn;
use super::{NOW, micros};

/// A key that has been used for a while.
struct Used {
    limit: Limit,
    state: State,
    now: u64,
    retry: Option<Duration>,
}

impl Used {
    fn new(limit: Limit) -> Self {
        Self { limit, state: limit.fresh(), now: NOW, retry: None }
    }

    fn by(limit: Limit, turns: &[(Turn, u64)]) -> Self {
        let mut used = Self::new(limit);
        for &(turn, cost) in turns {
            used.turn(turn);
            used.take(cost);
        }
        used
    }

    fn turn(&mut self, turn: Turn) {
        self.now += turn.micros(&self.limit, self.retry);
    }

    fn take(&mut self, cost: u64) -> Decision {
        self.take_within(cost, 0)
    }

    /// Takes as soon as there is room.
    fn take_when_free(&mut self, cost: u64) -> Receipt {
        let mut decision = self.take(cost);
        if let Some(retry) = self.retry {
            self.now += retry.as_micros() as u64;
            decision = self.take(cost);
        }
        assert!(decision.is_admitted(), "{decision:?}");
        decision.statuses().next().expect("one limit").receipt
    }

    /// Without patience if it is 0.
    fn take_within(&mut self, cost: u64, patience: u64) -> Decision {
        let (cost, state) = (cost.min(self.limit.capacity()), &mut self.state);
        let decision = match patience {
            0 => self.limit.take(state, self.now, cost),
            patience => self.limit.take_within(state, self.now, cost, micros(patience)),
        };
        self.retry = decision.retry_after();
        decision
    }
}

/// What a limit answers for a state at a moment, for several costs.
fn answers(limit: Limit, state: &State, now: u64) -> Vec<(bool, Option<u64>, Option<Duration>)> {
    [1, 2, limit.capacity() / 2 + 1, limit.capacity()]
        .map(|cost| limit.peek(state, now, cost))
        .map(|peek| (peek.is_admitted(), peek.remaining(), peek.retry_after()))
        .into()
}
