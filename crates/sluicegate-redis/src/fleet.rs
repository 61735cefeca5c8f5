//! A fleet whose members learn of each other by heartbeats in Redis. A task tells the others of this process, and this
//! process of the others.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Weak};
use std::time::Duration;

use sluicegate_core::adapter::ConfigError;
use sluicegate_core::store::{Fleet, Membership, Want, fair_parts};

use crate::exchange::request::Request;
use crate::exchange::settle::deliver_once;
use crate::exchange::shared::Shared;
use crate::failure::{Failure, FailureKind};
use crate::rows::group_key;
use crate::runtime::before;
use crate::script::Call;
use crate::script::fleet::{Heartbeat, View};
use crate::store::Redis;

impl Redis {
    /// The [fleet](Fleet) named `name`: processes that divide limits among each other.
    ///
    /// Each member sends a heartbeat three times in a round. No request needs a round trip: a
    /// [`Share`](sluicegate_core::store::Share) decides in memory, by the part that the other members leave to it.
    ///
    /// The server's clock divides time into rounds. Every member sees the same view in a round: who had sent a heartbeat
    /// before it began, and what they wanted then. So their parts are together never more than the whole, if each member
    /// sees every round. One that sees fewer, because the server does not answer it for two thirds of a round and more,
    /// may spend its old part for so long.
    ///
    /// ```no_run
    /// use sluicegate_core::{Limit, Memory};
    /// use sluicegate_core::store::Share;
    /// use sluicegate_redis::Redis;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let redis = Redis::connect("redis://127.0.0.1:6379")?;
    /// let membership = redis.fleet("crawlers").join()?;
    /// let store = Share::new(Memory::new(), membership.fleet());
    /// # let _ = store;
    /// # Ok(())
    /// # }
    /// ```
    pub fn fleet(&self, name: &str) -> FleetBuilder {
        FleetBuilder {
            redis: self.clone(),
            name: name.to_owned(),
            round: Duration::from_secs(1),
            kept: 3,
            whole: None,
            weight: 1,
            stops: false,
        }
    }
}

/// How this process joins a fleet: see [`Redis::fleet`].
#[derive(Debug, Clone)]
#[must_use = "`join` joins it"]
pub struct FleetBuilder {
    redis: Redis,
    name: String,
    round: Duration,
    kept: u32,
    whole: Option<u64>,
    weight: u32,
    stops: bool,
}

impl FleetBuilder {
    /// Sets the length of a round, 1 s by default; the same in every member. A member that joins spends nothing for about
    /// three rounds.
    pub fn round(mut self, round: Duration) -> Self {
        self.round = round;
        self
    }

    /// Sets for how many rounds a member counts after its last heartbeat, 3 by default; the same in every member. What
    /// one that crashed leaves is not spent for that long, and two rounds more.
    pub fn keep(mut self, rounds: u32) -> Self {
        self.kept = rounds;
        self
    }

    /// Divides by demand: each member publishes what requests want of it in a second, and gets a max-min fair part of
    /// `whole`, which is the limit's count in a second. The share has to [count what is
    /// wanted](sluicegate_core::store::Share::count_wanted). Equal parts are the default.
    ///
    /// A member that states more than it wants takes from the others. So let nobody into the server whom you do not trust.
    pub fn by_demand(mut self, whole: u64) -> Self {
        self.whole = Some(whole);
        self
    }

    /// Sets the weight of this member, 1 by default: a part of twice the weight is twice as large.
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// Spends nothing while the server cannot be reached, from when the other members no longer count this one. By
    /// default a member keeps its part: nobody stops while the server is away, but a member that is cut off alone
    /// spends it beside the others, who have taken it over.
    pub fn stop_when_cut_off(mut self) -> Self {
        self.stops = true;
        self
    }

    /// Joins the fleet, and sends heartbeats in the background. When the membership is dropped, a last heartbeat tells
    /// the others within a third of a round.
    ///
    /// # Errors
    ///
    /// When there is no tokio runtime, the round is shorter than 50 ms or longer than a minute, a member would count
    /// for less than two rounds or more than 100, the weight is zero, or the whole is zero or 2^52 and more.
    pub fn join(self) -> Result<Membership, ConfigError> {
        let shared = &self.redis.0;
        let fail = |sentence: String| Err(ConfigError::new(sentence));
        let (shortest, longest) = (Duration::from_millis(50), Duration::from_secs(60));
        if !(shortest..=longest).contains(&self.round) {
            let round = self.round;
            return fail(format!(
                "the round is {round:?}, but must be from {shortest:?} to {longest:?}"
            ));
        }
        if !(2..=100).contains(&self.kept) {
            return fail(format!("members count for {} rounds, but must for 2 to 100", self.kept));
        }
        if self.weight == 0 {
            return fail("the weight is zero: the member would get nothing".to_owned());
        }
        if self.whole.is_some_and(|whole| whole == 0 || whole >= 1 << 52) {
            return fail("the whole that is divided is zero, or 2^52 and more".to_owned());
        }
        if shared.runtime.handle().is_none() {
            return fail("there is no tokio runtime to send heartbeats in".to_owned());
        }
        let fleet = Fleet::by_clock(self.round * 2, shared.runtime.clock.clone());
        let held = Arc::new(());
        let settings = MemberSettings {
            row: group_key(&shared.naming, &self.name),
            member: RandomState::new().hash_one("member") >> 12 | 1,
            round: self.round,
            kept: self.kept,
            whole: self.whole,
            weight: self.weight,
            stops: self.stops,
        };
        let alive = Arc::downgrade(&held);
        shared.runtime.spawn(run(Arc::clone(shared), fleet.clone(), settings, alive));
        Ok(Membership::new(fleet, held))
    }
}

/// Heartbeats in a round. Each member has to see every round, and two of three may be lost.
const BEATS: u32 = 3;

/// What the task needs to know.
#[derive(Debug, Clone)]
pub(crate) struct MemberSettings {
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

/// Runs until `held` is dropped, and then leaves the fleet. It keeps the store until then: who leaves needs it.
pub(crate) async fn run(
    shared: Arc<Shared>,
    fleet: Fleet,
    settings: MemberSettings,
    held: Weak<()>,
) {
    let runtime = &shared.runtime;
    // Demand is counted from here on. What was wanted before this process joined is no rate.
    let pause = settings.round / BEATS;
    let mut demand = Demand { wanted: fleet.wanted(), at: runtime.clock.now(), rate: 0 };
    loop {
        if held.strong_count() == 0 {
            let _ = before(runtime.sleep(pause), send(&shared, &settings, None)).await;
            return;
        }
        let sent = runtime.clock.now();
        demand.learn(fleet.wanted(), sent, settings.round);
        let sending = send(&shared, &settings, Some(demand.rate));
        // The pause begins with the call and not with its answer, so three calls fit a round however slow they are.
        let next = runtime.sleep(pause);
        if let Some(Ok(view)) = before(runtime.sleep(pause), sending).await {
            let age = runtime.clock.now().saturating_sub(sent);
            see(&fleet, &settings, &view, Duration::from_micros(age));
        }
        next.await;
    }
}

async fn send(
    shared: &Arc<Shared>,
    settings: &MemberSettings,
    wants: Option<u64>,
) -> Result<View, Failure> {
    let beat = Heartbeat {
        now: shared.runtime.clock.as_manual().map(sluicegate_core::ManualClock::now),
        member: settings.member,
        round: settings.round.as_micros() as u64,
        kept: settings.kept.into(),
        wants,
        weight: settings.weight,
    };
    let slot = shared.route.slot(&settings.row);
    let request = Request::new(shared, slot, Call::beat(settings.row.clone(), beat));
    let answer = deliver_once(shared, &request).await?;
    View::parse(&answer)
        .map_err(|malformed| Failure::because(FailureKind::Protocol, malformed.to_string()))
}

/// `age` is the time since the heartbeat was sent that the view answers.
fn see(fleet: &Fleet, settings: &MemberSettings, view: &View, age: Duration) {
    // A member that the view lacks has nothing: the others divide everything among those whom they see.
    // All members compute the parts of all from the same view and in the same order, so they agree without a word.
    let own = view.members.iter().position(|(member, ..)| *member == settings.member);
    let part = own.and_then(|own| {
        let want = |&(_, wants, weight): &(u64, u64, u32)| match settings.whole {
            Some(_) => Want { wants, weight },
            // Nobody wants anything, and all of it is divided.
            None => Want { wants: 0, weight },
        };
        let wants: Vec<_> = view.members.iter().map(want).collect();
        fair_parts(settings.whole.unwrap_or(1), &wants).nth(own)?
    });
    match settings.stops {
        // Others stop counting this member a number of rounds after its last heartbeat. A late answer does not change that.
        true => {
            let kept = settings.round * settings.kept;
            fleet.see_part_for(part, kept.saturating_sub(age));
        }
        false => fleet.see_part(part),
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
        // Over a short time, one request more or less would be a large part of the rate.
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
    use sluicegate_core::ManualClock;

    use super::*;

    /// What counts is when the heartbeat was sent, and not when its answer comes.
    #[test]
    fn a_member_whose_answers_are_late_stops_before_others_take_its_part() {
        let clock = ManualClock::new();
        let fleet = Fleet::by_clock(Duration::from_secs(2), clock.clone());
        fleet.open();
        let settings = MemberSettings {
            row: Vec::new(),
            member: 1,
            round: Duration::from_secs(1),
            kept: 3,
            whole: None,
            weight: 1,
            stops: true,
        };
        let late = Duration::from_millis(300);
        clock.advance(late);
        see(&fleet, &settings, &View { round: 1, left: 0, members: vec![(1, 0, 1)] }, late);
        clock.advance(Duration::from_millis(2_500));
        assert!(fleet.part().is_some());
        clock.advance(Duration::from_millis(200));
        assert_eq!(fleet.part(), None, "three seconds after the heartbeat");
    }

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
