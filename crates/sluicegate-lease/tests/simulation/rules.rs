//! The rules that keep the sum of all leases within the capacity. Tests switch them off one by one, to show that each is
//! needed.
//!
//! The code has no switches. Messages are changed on their way, so that both sides act as if the rule were not there.

use sluicegate_lease::Amount;
use sluicegate_lease::message::{Request, Response};
use sluicegate_lease::pool::Answer;

/// See the documentation of the [`pool`](sluicegate_lease::pool).
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

impl Rule {
    /// Changes a request on its way to the master with this fence. The numbers of requests are larger each time.
    pub(crate) fn bend_request(self, request: &mut Request, fence: u64, number: u64) {
        match self {
            Self::MeetFirst => request.fence = request.fence.max(fence),
            Self::IgnoreStaleRequests => request.sequence = number,
            Self::TellProcessesApart => request.instance = 0,
            _ => {}
        }
        for resource in &mut request.resources {
            match self {
                Self::CountOutstanding => resource.outstanding = Amount::ZERO,
                Self::CountUntilReported => resource.has = Amount::ZERO,
                Self::KeepWhileLearning => resource.learning = false,
                _ => {}
            }
        }
    }

    /// Changes an answer on its way to a client or a server whose newest request has this number.
    pub(crate) fn bend_response(self, response: &mut Response, newest: u64, is_server: bool) {
        if self == Self::IgnoreStaleAnswers {
            response.sequence = newest;
        }
        for answer in &mut response.answers {
            if let (Self::EndWithParent, true, Ok(Answer::Grant(grant))) = (self, is_server, answer)
            {
                // It cuts leases that end later than its own does at its parent.
                grant.ttl *= 2;
            }
        }
    }
}
