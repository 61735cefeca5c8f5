//! Who else shares the limits, told by heartbeats in Redis.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::store::Members;

use crate::config_error::ConfigError;
use crate::exchange::beats::{Beating, run};
use crate::rows::group_key;
use crate::store::Redis;

impl Redis {
    /// The group of processes named `group`, which divide limits among each other.
    ///
    /// Each member sends a heartbeat three times in a round. No request needs a round trip: a
    /// [`LiveShare`](sluicegate_core::store::LiveShare) decides in memory, by the part that the members of the group leave to it.
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
    /// let group = redis.group("crawlers").join()?;
    /// let store = Share::live(Memory::new(), group.members());
    /// # let _ = store;
    /// # Ok(())
    /// # }
    /// ```
    pub fn group(&self, group: &str) -> Group {
        Group {
            redis: self.clone(),
            name: group.to_owned(),
            round: Duration::from_secs(1),
            kept: 3,
            whole: None,
            weight: 1,
            stops: false,
        }
    }
}

/// How this process joins a group: see [`Redis::group`].
#[derive(Debug, Clone)]
#[must_use = "`join` joins it"]
pub struct Group {
    redis: Redis,
    name: String,
    round: Duration,
    kept: u32,
    whole: Option<u64>,
    weight: u32,
    stops: bool,
}

impl Group {
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
    /// wanted](sluicegate_core::store::LiveShare::count_wanted). Equal parts are the default.
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

    /// Joins the group, and sends heartbeats in the background.
    ///
    /// # Errors
    ///
    /// When there is no tokio runtime, the round is shorter than 50 ms or longer than a minute, a member would count
    /// for less than two rounds or more than 100, the weight is zero, or the whole is zero or 2^52 and more.
    pub fn join(self) -> Result<Joined, ConfigError> {
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
        let members = Members::by_clock(self.round * 2, shared.runtime.clock.clone());
        let held = Arc::new(());
        let beating = Beating {
            row: group_key(&shared.naming, &self.name),
            member: RandomState::new().hash_one("member") >> 12 | 1,
            round: self.round,
            kept: self.kept,
            whole: self.whole,
            weight: self.weight,
            stops: self.stops,
        };
        let (store, alive) = (Arc::downgrade(shared), Arc::downgrade(&held));
        let runtime = Arc::clone(&shared.runtime);
        shared.runtime.spawn(run(store, runtime, members.clone(), beating, alive));
        Ok(Joined { members, redis: self.redis, _held: held })
    }
}

/// A member of a [group](Redis::group). Dropped, it leaves: it spends nothing from then on, and a last heartbeat
/// tells the others within a third of a round.
#[derive(Debug)]
pub struct Joined {
    members: Members,
    redis: Redis,
    _held: Arc<()>,
}

impl Joined {
    /// What part is left to this process, for a [`LiveShare`](sluicegate_core::store::LiveShare).
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// The store whose server the group is in.
    pub fn redis(&self) -> &Redis {
        &self.redis
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.members.see(0);
    }
}
