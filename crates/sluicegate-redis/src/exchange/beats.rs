//! The task that tells a group of this process, and this process of the group.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sluicegate_core::store::{Members, Want, fair_parts};

use crate::exchange::delivery;
use crate::exchange::request::Request;
use crate::exchange::shared::Shared;
use crate::failure::{Failure, FailureKind};
use crate::runtime::{Runtime, before};
use crate::script::Call;
use crate::script::members::{Beat, View};

/// Heartbeats in a round. Each member has to see every round, and two of three may be lost.
const BEATS: u32 = 3;

/// What the task needs to know.
#[derive(Debug, Clone)]
pub(crate) struct Beating {
    pub(crate) row: Vec<u8>,
    pub(crate) member: u64,
    pub(crate) round: Duration,
    pub(crate) kept: u32,
    /// What all members share by demand, in a second. `None` for equal parts.
    pub(crate) whole: Option<u64>,
    pub(crate) weight: u32,
    /// Whether it stops when it cannot reach the server.
    pub(crate) stops: bool,
}

/// Runs until `held` is dropped or the store is, and then leaves the group.
pub(crate) async fn run(
    store: Weak<Shared>,
    runtime: Arc<Runtime>,
    members: Members,
    beating: Beating,
    held: Weak<()>,
) {
    let pause = beating.round / BEATS;
    let mut demand = Demand { wanted: members.wanted(), at: runtime.clock.now(), rate: 0 };
    loop {
        let Some(shared) = store.upgrade() else { return };
        if held.strong_count() == 0 {
            let _ = before(runtime.sleep(pause), send(&shared, &beating, None)).await;
            return;
        }
        demand.learn(members.wanted(), runtime.clock.now(), beating.round);
        let sending = send(&shared, &beating, Some(demand.rate));
        let next = runtime.sleep(pause);
        if let Some(Ok(view)) = before(runtime.sleep(pause), sending).await {
            see(&members, &beating, &view);
        }
        drop(shared);
        next.await;
    }
}

async fn send(
    shared: &Arc<Shared>,
    beating: &Beating,
    wants: Option<u64>,
) -> Result<View, Failure> {
    let beat = Beat {
        now: shared.runtime.clock.as_manual().map(sluicegate_core::ManualClock::now),
        member: beating.member,
        round: beating.round.as_micros() as u64,
        kept: beating.kept.into(),
        wants,
        weight: beating.weight,
    };
    let slot = shared.route.slot(&beating.row);
    let request = Request::new(shared, slot, Call::beat(beating.row.clone(), beat));
    let answer = delivery::send(shared, &request).await?;
    View::parse(&answer)
        .map_err(|malformed| Failure::because(FailureKind::Protocol, malformed.to_string()))
}

fn see(members: &Members, beating: &Beating, view: &View) {
    let own = view.members.iter().position(|(member, ..)| *member == beating.member);
    let part = own.and_then(|own| {
        let want = |&(_, wants, weight): &(u64, u64, u32)| match beating.whole {
            Some(_) => Want { wants, weight },
            // Nobody wants anything, and all of it is divided.
            None => Want { wants: 0, weight },
        };
        let wants: Vec<_> = view.members.iter().map(want).collect();
        fair_parts(beating.whole.unwrap_or(1), &wants).nth(own)?
    });
    match beating.stops {
        // Others count this member for so many rounds after its last heartbeat.
        true => members.see_part_for(part, beating.round * beating.kept),
        false => members.see_part(part),
    }
}

/// What requests wanted in a second, averaged over the last rounds.
#[derive(Debug)]
struct Demand {
    wanted: u64,
    at: u64,
    rate: u64,
}

impl Demand {
    fn learn(&mut self, wanted: u64, now: u64, round: Duration) {
        let passed = now.saturating_sub(self.at);
        if u128::from(passed) < round.as_micros() / 2 {
            return;
        }
        let more = u128::from(wanted.saturating_sub(self.wanted)) * 1_000_000;
        let rate = u64::try_from(more.div_ceil(u128::from(passed))).unwrap_or(u64::MAX);
        // It rises at once and falls by halves: who wants more should get it soon, and a short pause means little.
        self.rate = rate.max(self.rate / 2).min(1 << 52);
        (self.wanted, self.at) = (wanted, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demand_rises_at_once_and_falls_by_halves() {
        let mut demand = Demand { wanted: 0, at: 0, rate: 0 };
        let round = Duration::from_secs(1);
        let mut rate = |wanted, at| {
            demand.learn(wanted, at, round);
            demand.rate
        };
        assert_eq!(rate(1_000, 1_000_000), 1_000);
        // Too soon to tell.
        assert_eq!(rate(1_001, 1_300_000), 1_000);
        assert_eq!(rate(1_000, 2_000_000), 500);
        assert_eq!(rate(1_000, 3_000_000), 250);
    }
}
