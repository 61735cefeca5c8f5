//! How a simulated world is: its capacity, its servers' settings, its network and its clocks.

use std::time::Duration;

use super::random::Random;
use super::rules::Rule;

/// How a world is.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) capacity: f64,
    pub(crate) lease: Duration,
    /// The refresh interval that each level tells its clients, the root first.
    pub(crate) refresh: [Duration; 3],
    pub(crate) network: Network,
    /// Clocks run by one part in this many too quick or too slow.
    pub(crate) drift: Option<u64>,
    /// Whether the list of clients survives the master.
    pub(crate) knows_clients: bool,
    /// A rule that is not in force.
    pub(crate) without: Option<Rule>,
}

/// What happens to messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Network {
    /// The longest time that a message takes, in milliseconds. Messages overtake each other.
    pub(crate) latency: u64,
    /// Of 1,000 messages, how many are lost.
    pub(crate) lost: u64,
    /// How many come twice.
    pub(crate) twice: u64,
    /// How many take up to twenty times as long.
    pub(crate) late: u64,
    /// How often a link between a client or a server and its server breaks, on average, in seconds.
    pub(crate) cut_every: Option<u64>,
}

/// A clock of a machine: it begins anywhere, and its speed is not quite right.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    offset: u64,
    drift: i64,
}

impl Setting {
    pub(crate) fn doorman() -> Self {
        Self {
            capacity: 500.0,
            lease: Duration::from_secs(60),
            refresh: [8, 4, 2].map(Duration::from_secs),
            network: Network { latency: 5, ..Network::default() },
            drift: None,
            knows_clients: true,
            without: None,
        }
    }

    #[must_use]
    pub(crate) fn refresh(mut self, refresh: Duration) -> Self {
        self.refresh = [refresh; 3];
        self
    }

    #[must_use]
    pub(crate) fn bad_network(mut self) -> Self {
        self.network =
            Network { latency: 400, lost: 20, twice: 20, late: 10, cut_every: Some(120) };
        self.drift = Some(300);
        self
    }
}

impl Clock {
    pub(crate) fn new(setting: &Setting, random: &mut Random) -> Self {
        let offset = random.below(1_000_000_000);
        let sign = if random.happens(0.5) { 1 } else { -1 };
        Self { offset, drift: setting.drift.map_or(0, |drift| sign * drift as i64) }
    }

    pub(crate) fn local(self, now: u64) -> u64 {
        let drifted = if self.drift == 0 { 0 } else { now as i64 / self.drift };
        self.offset + now.saturating_add_signed(drifted)
    }

    /// The first moment at which the clock shows `local` or more, or soon after.
    pub(crate) fn global(self, local: u64, now: u64) -> u64 {
        let ahead = local.saturating_sub(self.local(now));
        let slow = match self.drift {
            0 => 0,
            drift => ahead / drift.unsigned_abs().saturating_sub(1).max(1),
        };
        now + ahead + slow + 1
    }
}
