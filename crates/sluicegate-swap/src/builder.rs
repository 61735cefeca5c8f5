use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use sluicegate_core::ManualClock;
use sluicegate_core::adapter::Background;
use sluicegate_core::adapter::breaker::{Backoff, Breaker, BreakerSettings};
use sluicegate_core::clock::Clock;
use sluicegate_core::key::KeySecret;

use crate::counts::Counters;
use crate::decide::Process;
use crate::engine::Engine;
use crate::observe;
use crate::queue::{MOST_ROWS, Queue};
use crate::runtime::Runtime;
use crate::shared::Shared;
use crate::store::Swap;

/// Configures a [`Swap`].
#[derive(Debug, Clone)]
#[must_use = "`build` makes the store"]
pub struct SwapBuilder<E> {
    engine: E,
    prefix: String,
    secret: Option<KeySecret>,
    deadline: Duration,
    breaker: BreakerSettings,
    background: (usize, Duration),
    rows: usize,
    refusals: Duration,
    lease: Duration,
    clock: Option<ManualClock>,
}

impl<E: Engine> Swap<E> {
    /// Makes a store in an engine, with the defaults of [`builder`](Self::builder).
    pub fn new(engine: E) -> Self {
        Self::builder(engine).build()
    }

    /// Configures a store.
    pub fn builder(engine: E) -> SwapBuilder<E> {
        let backoff =
            Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(2) };
        SwapBuilder {
            engine,
            prefix: "sluicegate:".to_owned(),
            secret: None,
            deadline: Duration::from_millis(50),
            breaker: BreakerSettings { failures: 5, backoff },
            background: (4_096, Duration::from_secs(30)),
            rows: 16_384,
            refusals: Duration::ZERO,
            lease: Duration::from_secs(10),
            clock: None,
        }
    }
}

impl<E: Engine> SwapBuilder<E> {
    /// Sets the prefix of all row keys, `sluicegate:` by default, in printable ASCII. Stores with the same prefix share their
    /// counts.
    pub fn prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// Names rows by a keyed digest of the key, so that keys such as addresses and API keys are not visible in the engine.
    /// The digest can be neither computed nor guessed without `secret`. All processes need the same secret.
    pub fn digest_keys(mut self, secret: impl Into<Vec<u8>>) -> Self {
        self.secret = Some(KeySecret::new(&secret.into()));
        self
    }

    /// Sets how long a decision may take, 50 ms by default, and each call of the engine.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets after how many consecutive failures the breaker opens (never, if zero), and for how long: `first`, then twice
    /// as long each time that the engine still fails, up to `longest`. Up to half of each pause is random. After 5
    /// failures, for 100 ms to 2 s by default.
    pub fn breaker(mut self, failures: u32, first: Duration, longest: Duration) -> Self {
        self.breaker = BreakerSettings { failures, backoff: Backoff { first, longest } };
        self
    }

    /// Sets how many decisions may be under way at a time, and as many settlements, and how long each is tried in the
    /// background: 4,096 and 30 s by default. Further decisions fail at once.
    pub fn background(mut self, most: usize, longest: Duration) -> Self {
        self.background = (most, longest);
        self
    }

    /// Sets how many rows are remembered, 16,384 by default. A row that is remembered needs one call for a decision, and
    /// two if another process has changed it; another row needs two.
    pub fn remember_rows(mut self, rows: usize) -> Self {
        self.rows = rows;
        self
    }

    /// Refuses without a call while a remembered row refuses, for at most `longest` after it was seen. A flood from one
    /// client then costs the engine only a call now and then. Off by default.
    ///
    /// What *another process* gives back or resets takes effect after `longest` at the latest. A second is a good choice.
    /// Limits of [concurrency](sluicegate_core::Limit::concurrent), with a [ban](sluicegate_core::Limit::ban) or that
    /// [count refusals](sluicegate_core::Limit::count_refused) always ask the engine, and so do requests that may wait.
    pub fn remember_refusals(mut self, longest: Duration) -> Self {
        self.refusals = longest;
        self
    }

    /// Sets how long places of limits of [concurrency](sluicegate_core::Limit::concurrent) stay taken after the process
    /// that holds them has died, 10 s by default. A process renews its places four times in this time. It is at least
    /// 100 ms.
    pub fn concurrency_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets a clock that a test turns by hand. Limits, deadlines and pauses then all use it, instead of the engine's.
    pub fn clock(mut self, clock: &ManualClock) -> Self {
        self.clock = Some(clock.clone());
        self
    }

    /// Makes the store. It returns at once, and the engine need not be there yet.
    ///
    /// # Panics
    ///
    /// When a setting is not valid. The message names the setting.
    #[track_caller]
    pub fn build(self) -> Swap<E> {
        self.check();
        let clock = self.clock.map_or_else(Clock::machine, Clock::from);
        // A forked process shares its parent's seeds, but not its process number.
        let unlike_others = (std::process::id(), SystemTime::now());
        let random = RandomState::new().hash_one(unlike_others);
        let (most, grace) = self.background;
        let most_rows = self.engine.rows_at_once().clamp(1, MOST_ROWS);
        let counters = Counters::default();
        observe::made(&counters, &self.prefix);
        Swap(Arc::new(Shared {
            engine: self.engine,
            prefix: self.prefix,
            secret: self.secret,
            process: Process {
                number: (random >> 32) as u32,
                lease: u64::try_from(self.lease.as_micros()).unwrap_or(u64::MAX),
            },
            writes: AtomicU32::new(random as u32),
            queue: Mutex::new(Queue::new(self.rows, most_rows)),
            time: Mutex::default(),
            places: Mutex::default(),
            is_renewing: AtomicBool::new(false),
            runtime: Runtime::new(clock),
            breaker: Arc::new(Breaker::new(self.breaker)),
            epoch: AtomicU32::new(0),
            background: Background::new(most),
            backoff: self.breaker.backoff,
            counters,
            deadline: self.deadline,
            grace,
            refusals: self.refusals,
        }))
    }
}

/// The shortest lease of places. Shorter ones would be renewed all the time.
const SHORTEST: Duration = Duration::from_millis(100);

impl<E> SwapBuilder<E> {
    #[track_caller]
    fn check(&self) {
        let Backoff { first, longest } = self.breaker.backoff;
        assert!(!self.deadline.is_zero(), "the deadline is zero");
        assert!(!first.is_zero(), "the first pause of the breaker is zero");
        assert!(
            longest >= first,
            "the longest pause of the breaker, {longest:?}, is shorter than the first, {first:?}"
        );
        let lease = self.lease;
        assert!(
            lease >= SHORTEST,
            "the concurrency lease is {lease:?}, but must be at least {SHORTEST:?}"
        );
        assert!(
            self.prefix.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '),
            "the prefix contains a character that is not printable ASCII"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::engine::{EngineError, Loaded, Swapped, Write};

    struct Away;

    impl Engine for Away {
        fn rows_at_once(&self) -> usize {
            1
        }

        async fn load(&self, _: &[Arc<str>]) -> Result<Loaded, EngineError> {
            Err("it is away".into())
        }

        async fn swap(&self, _: &[Write]) -> Result<Swapped, EngineError> {
            Err("it is away".into())
        }
    }

    #[test]
    fn settings_that_cannot_work_are_named() {
        let (zero, milli) = (Duration::ZERO, Duration::from_millis(1));
        let builder = || Swap::builder(Away);
        for (builder, sentence) in [
            (builder().deadline(zero), "the deadline is zero"),
            (builder().breaker(1, zero, milli), "the first pause of the breaker is zero"),
            (
                builder().breaker(1, 2 * milli, milli),
                "the longest pause of the breaker, 1ms, is shorter than the first, 2ms",
            ),
            (
                builder().concurrency_lease(zero),
                "the concurrency lease is 0ns, but must be at least 100ms",
            ),
            (
                builder().concurrency_lease(99 * milli),
                "the concurrency lease is 99ms, but must be at least 100ms",
            ),
            (
                builder().prefix("shop\0"),
                "the prefix contains a character that is not printable ASCII",
            ),
        ] {
            let built = catch_unwind(AssertUnwindSafe(|| builder.build()));
            let panic = built.expect_err("it panics");
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
            assert_eq!(said, Some(sentence));
        }
        let _ =
            builder().concurrency_lease(100 * milli).deadline(milli).prefix("my shop: ").build();
    }
}
