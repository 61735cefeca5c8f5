use std::any::Any;
use std::time::Duration;

use sluicegate_core::clock::Clock;
use sluicegate_core::limit::LimitError;
use sluicegate_core::{Limit, Memory};

use super::learned::{DemandEstimate, Kind};
use super::leased::LeasedLimit;
use super::meter::{Bucket, Gauge, Terms};
use super::state::{DisplayedLimit, Meter, RetrySchedule, State};
use super::wants::Wants;

/// Makes a [`LeasedLimit`].
#[derive(Debug)]
pub struct LeasedBuilder {
    name: Box<str>,
    is_gauge: bool,
    period: Duration,
    burst: Option<u64>,
    wants: Wants,
    clock: Option<Clock>,
    beside: Option<Memory>,
    follows: Option<Box<dyn Any + Send + Sync>>,
}

/// A period is at most this long.
const LONGEST: Duration = Duration::from_secs(31 * 24 * 60 * 60);

impl LeasedLimit {
    /// A limit of requests in a period, of a second unless [told](LeasedBuilder::per) otherwise.
    pub fn rate(name: &str) -> LeasedBuilder {
        LeasedBuilder::new(name, false)
    }

    /// A limit of requests in flight. If you ask for what it wants by a [`Session`](crate::client::Session) of your own, ask
    /// for [whole](crate::Demand::whole) units.
    pub fn gauge(name: &str) -> LeasedBuilder {
        LeasedBuilder::new(name, true)
    }
}

impl LeasedBuilder {
    fn new(name: &str, is_gauge: bool) -> Self {
        let period = Duration::from_secs(1);
        let (burst, wants, clock, beside) = (None, Wants::learned(), None, None);
        let name = name.into();
        Self { name, is_gauge, period, burst, wants, clock, beside, follows: None }
    }

    /// Keeps what the limit follows alive for as long as the limit.
    #[cfg(feature = "client")]
    pub(crate) fn follows(mut self, follows: impl Any + Send + Sync) -> Self {
        self.follows = Some(Box::new(follows));
        self
    }

    /// Capacity is counted in units per `period`, such as dollars a day. Whole milliseconds, 31 days at most. What is
    /// wanted is learned over a period too.
    #[must_use]
    pub fn per(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// No more than so many at once, even if more flow in a period.
    #[must_use]
    pub fn burst(mut self, burst: u64) -> Self {
        self.burst = Some(burst);
        self
    }

    /// What to ask the server for; [learned](Wants::learned) by default.
    #[must_use]
    pub fn wants(mut self, wants: impl Into<Wants>) -> Self {
        self.wants = wants.into();
        self
    }

    /// Goes by another clock, for tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = Some(clock.into());
        self
    }

    /// Keeps other limits in `memory`, for requests that are charged to the lease and to other limits, such as one for each
    /// client. Such a request is charged to all of them or to none. It may wait for its turn by the others, but not for
    /// the lease: for that, use a layer for each. Has to go by the same clock.
    #[must_use]
    pub fn beside(mut self, memory: Memory) -> Self {
        self.beside = Some(memory);
        self
    }

    /// Makes the limit. Nothing may be used until something is granted.
    ///
    /// # Errors
    ///
    /// If the name is not that of a [limit](Limit::named), 1 to 31 characters of printable ASCII; the period is zero, not
    /// in whole milliseconds, or longer than 31 days; or the burst is zero, or given for a gauge.
    pub fn build(self) -> Result<LeasedLimit, LimitError> {
        let error = |reason| Err(LimitError::new(reason));
        if self.period.is_zero() || self.period > LONGEST {
            return error("the period of a lease is zero or longer than 31 days");
        }
        if self.period.subsec_nanos() % 1_000_000 != 0 {
            return error("the period of a lease has a fraction of a millisecond");
        }
        match self.burst {
            Some(0) => return error("the burst of a lease is 0: nothing would ever be admitted"),
            Some(_) if self.is_gauge => return error("a gauge has no burst: it counts places"),
            _ => {}
        }
        let limit = match self.is_gauge {
            true => Limit::try_concurrent(MANY)?,
            false => Limit::try_per(MANY, self.period)?,
        };
        let limit = limit.try_named(&self.name)?;
        let micros = u64::try_from(self.period.as_micros()).unwrap_or(u64::MAX);
        let (meter, kind) = match self.is_gauge {
            true => (Meter::Gauge(Gauge::default()), Kind::Peak),
            false => (Meter::Rate(Bucket::new(micros, self.burst)), Kind::Sum),
        };
        let state = State {
            terms: Terms::NOTHING,
            meter,
            learned: DemandEstimate::new(kind, micros),
            shown: DisplayedLimit::new(limit, &self.name),
            wants: self.wants,
            is_closed: false,
            is_needed: false,
            retries: RetrySchedule::default(),
            now: 0,
        };
        let clock = self.clock.unwrap_or_default();
        Ok(LeasedLimit::new(limit, clock, self.beside, state, self.follows))
    }
}

/// In place of numbers that are not known: so many that whoever settles a request by its cost is not held back by them.
const MANY: u64 = 1_000_000;
