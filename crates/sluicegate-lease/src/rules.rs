//! The rules that keep the sum of all leases within the capacity. Tests switch them off one by one, to show that each
//! is needed.

/// See the documentation of the [`pool`](crate::pool).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A parent counts what a server's own clients may still use.
    CountOutstanding,
    /// No lease outlives the lease that it is cut from.
    EndWithParent,
    /// A server that is learning keeps what it had at its parent.
    KeepWhileLearning,
    /// A client counts with what it had, until it reports that it uses less.
    CountUntilReported,
    /// A request that is older than the newest one changes nothing.
    IgnoreStaleRequests,
    /// A client obeys the answer to its newest request only.
    IgnoreStaleAnswers,
    /// A new master learns what clients hold.
    Learn,
    /// A new master believes only requests that were sent after the client met it.
    MeetFirst,
    /// Two processes of one name are two clients.
    TellProcessesApart,
}

/// Whether a rule is in force.
#[cfg(not(test))]
pub(crate) const fn holds(_: Rule) -> bool {
    true
}

#[cfg(test)]
pub(crate) use self::switches::{holds, without};

#[cfg(test)]
mod switches {
    use std::cell::Cell;

    use super::Rule;

    thread_local! {
        static OFF: Cell<Option<Rule>> = const { Cell::new(None) };
    }

    pub(crate) fn holds(rule: Rule) -> bool {
        OFF.get() != Some(rule)
    }

    /// Runs something without a rule.
    pub(crate) fn without<T>(rule: Rule, run: impl FnOnce() -> T) -> T {
        OFF.set(Some(rule));
        let result = run();
        OFF.set(None);
        result
    }
}
