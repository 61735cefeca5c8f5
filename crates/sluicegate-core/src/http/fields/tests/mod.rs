mod announced;
mod problem;
mod structured;

use std::time::Duration;

use super::*;
use crate::limit::testing::decide;
use crate::limit::{Attempt, State};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// What is answered when `cost` is spent on fresh keys of `limits`, `times` times.
fn spent(limits: &[Limit], cost: u64, times: usize) -> Decision {
    let mut states = vec![State::default(); limits.len()];
    let mut take = || {
        let attempts = limits.iter().zip(&mut states);
        let mut attempts: Vec<_> =
            attempts.map(|(limit, state)| Attempt { limit, state, cost }).collect();
        decide(&mut attempts, 946_684_800_000_000, None, crate::limit::Keys::One)
    };
    (0..times).map(|_| take()).last().expect("at least once")
}
