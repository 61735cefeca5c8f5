//! Paid requests that are not settled yet: a bounded number, for a bounded time.

use std::collections::{HashMap, VecDeque};
use std::mem::replace;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sluicegate_core::adapter::{Reply, Sleep};
use sluicegate_core::clock::Clock;
use sluicegate_core::cost::RunningCost;
use sluicegate_llm::{TokenUsage, Usage};

use crate::admission::Paid;

/// The most open tickets. Each takes about a kilobyte.
pub(super) const MOST: usize = 100_000;

/// How long a ticket is open, in microseconds: ten minutes. After that, the request keeps its charge.
pub(super) const OPEN: u64 = 600_000_000;

/// The open tickets. Clones are the same.
#[derive(Clone)]
pub(super) struct Tickets {
    clock: Clock,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    tickets: HashMap<u128, Paid>,
    /// When each ticket closes, in order. Those that were settled are still there, but never the larger part.
    closing: VecDeque<(u64, u128)>,
    /// Whether a task closes them.
    is_timed: bool,
}

/// As many settled tickets are kept in the queue, because it is not worth the while to look for fewer.
const FEW: usize = 1_024;

impl Tickets {
    pub(super) fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), open: Arc::default() }
    }

    /// Whether there is room for another ticket.
    pub(super) fn has_room(&self) -> bool {
        let now = self.clock.now();
        self.locked().closed_by(now).tickets.len() < MOST
    }

    /// Keeps a ticket. Returns its name, which nobody can guess; `None` if there is no room, and the charge is given
    /// back.
    pub(super) fn keep(&self, ticket: Paid) -> Option<String> {
        let name = getrandom::u64().ok().zip(getrandom::u64().ok());
        let now = self.clock.now();
        let mut open = self.locked().closed_by(now);
        let (Some((high, low)), true) = (name, open.tickets.len() < MOST) else {
            drop(open);
            ticket.give_back();
            return None;
        };
        let name = u128::from(high) << 64 | u128::from(low);
        open.closing.push_back((now.saturating_add(OPEN), name));
        open.tickets.insert(name, ticket);
        if !replace(&mut open.is_timed, true) {
            tokio::spawn(close_in_time(self.clock.clone(), Arc::downgrade(&self.open)));
        }
        Some(format!("{name:032x}"))
    }

    /// The ticket with this name, once.
    pub(super) fn take(&self, name: &str) -> Option<Paid> {
        let name = (name.len() == 32).then(|| u128::from_str_radix(name, 16).ok())??;
        let now = self.clock.now();
        let mut open = self.locked().closed_by(now);
        let ticket = open.tickets.remove(&name);
        open.forget_settled();
        ticket
    }

    fn locked(&self) -> Locked<'_> {
        Locked(self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Closes tickets as soon as they are due, until none is open. What a client holds that has died is given back although nobody
/// asks about a ticket: most decisions are about none.
async fn close_in_time(clock: Clock, open: Weak<Mutex<Open>>) {
    loop {
        let wait = {
            let Some(open) = open.upgrade() else { return };
            let now = clock.now();
            let open = Locked(open.lock().unwrap_or_else(PoisonError::into_inner));
            let mut open = open.closed_by(now);
            let Some((at, _)) = open.closing.front() else {
                open.is_timed = false;
                return;
            };
            Duration::from_micros(at.saturating_sub(now))
        };
        Sleep::new(&clock, wait, tokio::time::sleep).await;
    }
}

impl Open {
    /// Each ticket is looked at once or twice, whenever it is settled.
    fn forget_settled(&mut self) {
        let Self { tickets, closing, .. } = self;
        if closing.len() > 2 * tickets.len() + FEW {
            closing.retain(|(_, name)| tickets.contains_key(name));
        }
    }
}

struct Locked<'a>(MutexGuard<'a, Open>);

impl<'a> Locked<'a> {
    /// The tickets that are still open at this moment. The first to close is one of them.
    fn closed_by(mut self, now: u64) -> MutexGuard<'a, Open> {
        let Open { tickets, closing, .. } = &mut *self.0;
        while let Some((at, name)) = closing.front()
            && (*at <= now || !tickets.contains_key(name))
        {
            if let Some(paid) = tickets.remove(name) {
                paid.keep();
            }
            closing.pop_front();
        }
        self.0
    }
}

/// A response of which only what it cost is known.
pub(super) enum ReportedCost {
    Spent(u64),
    Tokens(TokenUsage),
}

impl Reply for ReportedCost {
    fn status(&self) -> u16 {
        200
    }

    fn header(&self, _: &str) -> Option<&[u8]> {
        None
    }

    fn cost(&self) -> Option<u64> {
        None
    }

    fn is_refusal(&self) -> bool {
        false
    }

    fn spent(&self) -> Option<u64> {
        match self {
            Self::Spent(spent) => Some(*spent),
            Self::Tokens(_) => None,
        }
    }

    fn running(&self) -> Option<RunningCost> {
        match self {
            Self::Spent(_) => None,
            Self::Tokens(usage) => Some(usage.running_cost()),
        }
    }
}

impl From<Usage> for ReportedCost {
    fn from(used: Usage) -> Self {
        let usage = TokenUsage::new();
        usage.report(used);
        usage.finish();
        Self::Tokens(usage)
    }
}

#[cfg(test)]
mod tests {
    use sluicegate_core::ManualClock;

    use super::*;

    /// 200 a second that are settled at once would fill the queue within ten minutes.
    #[tokio::test]
    async fn tickets_that_were_settled_take_no_room() {
        let tickets = Tickets::new(&ManualClock::new().into());
        let open = tickets.keep(Paid::nothing()).expect("room");
        for _ in 0..MOST {
            let settled = tickets.keep(Paid::nothing()).expect("room");
            assert!(tickets.take(&settled).is_some());
        }
        assert!(tickets.has_room());
        assert!(tickets.locked().0.closing.len() <= FEW + 3);
        assert!(tickets.take(&open).is_some());
        for _ in 0..MOST {
            tickets.keep(Paid::nothing()).expect("room");
        }
        assert!(!tickets.has_room() && tickets.keep(Paid::nothing()).is_none());
    }
}
