use std::time::Duration;

use super::{Limit, Receipt};

/// How a key stands with one limit, once a request has been decided.
///
/// Holds durations only, never an instant: the clock is the store's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitStatus {
    /// The limit.
    pub limit: Limit,
    /// How much more could be spent at this moment: nothing while a [gap](Limit::min_gap) or a ban lasts.
    pub remaining: u64,
    /// The effective window: until it has passed, no more than `remaining` can be spent, and
    /// afterwards more. Zero when nothing is spent; `None` where only giving back makes room.
    pub window: Option<Duration>,
    /// Until the key is as good as new, with nobody spending; `None` where only giving back does that.
    pub reset: Option<Duration>,
    /// What was charged; zero where the request was refused.
    pub charged: u64,
    /// Whether it is this limit that refuses.
    pub refused: bool,
    /// Whether this limit, a [shadow](Limit::shadow), would have refused the request, or held it up.
    pub shadowed: bool,
    /// Whether this limit was not counted, because the store had no room for the key: nothing was charged
    /// to it, and it had no part in the decision.
    pub uncounted: bool,
    /// Whether the key was counted together with others in a row that they share, because the store had no
    /// room for a row of its own: see [`WhenFull::CountTogether`](crate::limit::WhenFull::CountTogether).
    pub together: bool,
    /// Until this limit would admit the request; zero when it does now, `None` when it cannot tell (only
    /// giving back makes room) or never does (the cost is more than it ever allows).
    pub retry: Option<Duration>,
    /// Whether more than the soft limit is spent.
    pub soft: bool,
    /// Whether the key is banned.
    pub banned: bool,
    /// What the store needs to give the charge back.
    pub receipt: Receipt,
}

impl LimitStatus {
    /// The standing of a key that nothing is known of: for stores that cannot tell more.
    pub fn fresh(limit: Limit) -> Self {
        Self {
            limit,
            remaining: limit.capacity(),
            window: Some(Duration::ZERO),
            reset: Some(Duration::ZERO),
            charged: 0,
            refused: false,
            shadowed: false,
            uncounted: false,
            together: false,
            retry: Some(Duration::ZERO),
            soft: false,
            banned: false,
            receipt: Receipt::default(),
        }
    }
}
