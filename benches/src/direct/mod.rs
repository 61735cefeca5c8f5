//! The contenders without HTTP: each limiter as its own documentation recommends for speed, behind one small trait.

mod course;
mod floor;
mod governor;
mod limitador;
pub mod notes;
mod rate_net;
mod sluicegate;
mod throttlecrab;
mod tokio_rate_limit;
mod unkeyed;

use std::fmt;
use std::hint::black_box;
use std::ops::Range;
use std::thread;
use std::time::Duration;

pub use self::course::{Course, Entrant, Population, RatioOf};
pub use self::governor::{Governor, GovernorDirect, GovernorFoldhash};
pub use self::limitador::Limitador;
pub use self::rate_net::{RateNet, RateNetCoarse, RateNetDirect, RateNetDirectCoarse};
pub use self::sluicegate::{Sluicegate, SluicegateStore};
pub use self::throttlecrab::Throttlecrab;
pub use self::tokio_rate_limit::TokioRateLimit;
pub use self::unkeyed::{LeakyBucket, Ratelimit};
use crate::Contender;
use crate::keys::{Arrivals, Key};

/// A limiter that is asked about keys of type `K`.
///
/// A trait object contains the loops as well as the single step, so that no step is called through a pointer.
pub trait Direct<K: Key>: Send + Sync {
    /// Spends one on `key`. `buffer` is for limiters that take the key as text.
    fn take(&self, key: &K, buffer: &mut String) -> Verdict;

    /// Uses the keys with numbers below `keys` until each is in the expected state: admitted once, or spent until it
    /// is refused. On two threads, because it takes a while.
    ///
    /// # Panics
    ///
    /// When a key is not answered so.
    fn fill(&self, keys: u64, expected: Verdict) {
        let one = |numbers: Range<u64>| {
            let mut buffer = String::new();
            for number in numbers {
                let key = K::number(number);
                let mut answers = (0..4).map(|_| self.take(&key, &mut buffer));
                assert!(answers.any(|answer| answer == expected), "{key:?} is not {expected:?}");
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| one(0..keys / 2));
            one(keys / 2..keys);
        });
    }

    /// Takes keys in their order of arrival, on this many threads at once. Every answer has to be the expected one.
    fn contender<'a>(
        &'a self,
        threads: usize,
        arrivals: &Arrivals,
        expected: Verdict,
    ) -> Contender<'a> {
        Contender::on_threads(threads, |thread| {
            let mut arriving = arrivals.on(thread);
            let (mut key, mut buffer) = (K::number(0), String::new());
            move || {
                key.renumber(black_box(arriving.number()));
                assert!(self.take(&key, &mut buffer) == expected);
            }
        })
    }
}

/// No limiter: the time for choosing and making the keys, which is part of every other time.
#[derive(Debug)]
pub struct Nothing;

impl<K: Key> Direct<K> for Nothing {
    #[inline]
    fn take(&self, key: &K, _: &mut String) -> Verdict {
        black_box(key);
        Verdict::Admitted
    }
}

/// What a limiter answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Go ahead.
    Admitted,
    /// The key has spent what it may.
    Refused,
    /// The table has no room for the key.
    Full,
}

impl Verdict {
    fn of(is_admitted: bool) -> Self {
        if is_admitted { Self::Admitted } else { Self::Refused }
    }
}

/// A token bucket: one token in every `interval`, and room for `burst`.
#[derive(Debug, Clone, Copy)]
pub struct Bucket {
    /// How long a token takes.
    pub interval: Duration,
    /// How many may be spent at once.
    pub burst: u32,
}

impl Bucket {
    /// So large that no request is refused, and so slow that nothing recovers while keys are used repeatedly. With
    /// many keys each is used less often, and spends less.
    pub fn plenty(keys: u64) -> Self {
        // Interval times burst, in nanoseconds, has to fit 64 bits.
        if keys <= 1_000 {
            Self { interval: Duration::from_secs(1), burst: 4_000_000_000 }
        } else {
            Self { interval: Duration::from_secs(100), burst: 40_000_000 }
        }
    }

    /// One an hour: a key that has spent it is refused as long as anything is measured.
    pub const SCARCE: Self = Self { interval: Duration::from_secs(3_600), burst: 1 };
}

/// Types without `Debug`.
macro_rules! opaque {
    ($($name:ident),*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )*};
}

opaque!(LeakyBucket, Limitador, Ratelimit, Throttlecrab, TokioRateLimit);
