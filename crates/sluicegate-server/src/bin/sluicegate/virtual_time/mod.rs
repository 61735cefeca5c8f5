//! Requests at given times through compiled rules, in virtual time: there is no runtime, and nothing sleeps.
//!
//! Requests go through the same admission as live ones, with the real [`Memory`](sluicegate_core::Memory). Its clock is moved from
//! one event to the next: a request arrives, or a response ends.

mod rules;
mod timeline;

use std::time::Duration;

pub(crate) use self::rules::{Limit, Paid, Rules, admit_charge, micros};
pub(crate) use self::timeline::Timeline;

/// Most responses that are under way at a time, of about a kilobyte each.
pub(crate) const MOST_UNDER_WAY: usize = 250_000;

/// A duration in words, such as `1.5s`.
pub(crate) fn in_words(time: Duration) -> String {
    if time.is_zero() { "0s".to_owned() } else { format!("{time:?}") }
}
