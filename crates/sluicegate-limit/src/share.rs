//! A part of a limit, for a process that decides alone over a part of the requests.

use alloc::borrow::Cow;

use super::algorithm::Algorithm;
use super::algorithm::concurrency::Concurrency;
use super::algorithm::fixed_window::FixedWindow;
use super::algorithm::sliding_log::SlidingLog;
use super::algorithm::stepped_bucket::SteppedBucket;
use super::definition::{AlgorithmSpec, Limit};
use super::error::LimitError;
use super::part::Part;

const TOO_SMALL: LimitError = LimitError::new(
    "the part is too small to stay exact: the time in which it admits one request times the burst must stay below \
     2^52 microseconds",
);

impl Limit {
    /// A part of the limit, for parts that may change from one request to the next. Rows that one part has written mean
    /// the same in every other part. `None` if the part admits nothing.
    ///
    /// The rate of a bucket is divided exactly. What it holds at once is divided too, and is at least one request. The
    /// counts of windows, logs and concurrency are rounded down.
    #[doc(hidden)]
    pub fn try_part(&self, part: Part) -> Result<Option<Self>, LimitError> {
        let mut portion = *self;
        if part == Part::WHOLE {
            return Ok(Some(portion));
        }
        let count = part.portion(self.count);
        if count == 0 && !matches!(self.algorithm, Algorithm::TokenBucket(_)) {
            return Ok(None);
        }
        portion.algorithm = match self.algorithm {
            Algorithm::TokenBucket(bucket) => {
                let bucket = bucket.in_part(part).ok_or(TOO_SMALL)?;
                let (size, leave) = (bucket.size(), bucket.leave_at_once());
                portion.spec = match self.spec {
                    AlgorithmSpec::LeakyBucket { .. } => {
                        AlgorithmSpec::LeakyBucket { queue: size - 1, delay_after: leave - 1 }
                    }
                    _ => AlgorithmSpec::TokenBucket { burst: size },
                };
                Algorithm::TokenBucket(bucket)
            }
            Algorithm::SteppedBucket(_) => {
                let burst = part.portion(self.capacity());
                if burst == 0 {
                    return Ok(None);
                }
                portion.spec = AlgorithmSpec::SteppedBucket { burst };
                Algorithm::SteppedBucket(SteppedBucket::new(count, self.period, burst))
            }
            Algorithm::FixedWindow(window) => {
                Algorithm::FixedWindow(FixedWindow::new(count, self.period, window.from_first))
            }
            Algorithm::SlidingWindow(window) => Algorithm::SlidingWindow(window.with_count(count)),
            Algorithm::SlidingLog(log) => Algorithm::SlidingLog(SlidingLog { count, ..log }),
            Algorithm::Concurrency(_) => Algorithm::Concurrency(Concurrency::new(count)),
        };
        if !matches!(self.algorithm, Algorithm::TokenBucket(_)) {
            portion.count = count;
        }
        portion.soft =
            self.soft.map(|soft| part.portion(soft)).filter(|soft| *soft < portion.capacity());
        Ok(Some(portion))
    }

    /// The period of a window that begins when the wall clock says so, in microseconds.
    #[doc(hidden)]
    pub const fn aligned_window(&self) -> Option<u64> {
        match self.spec {
            AlgorithmSpec::FixedWindow { from_first: false } => Some(self.period),
            _ => None,
        }
    }

    /// The part with these bits. It existed when it decided.
    pub(crate) fn portion(&self, bits: u32) -> Cow<'_, Self> {
        let Some(part) = Part::from_bits(bits) else { return Cow::Borrowed(self) };
        match self.try_part(part) {
            Ok(Some(portion)) => Cow::Owned(portion),
            _ => Cow::Borrowed(self),
        }
    }

    /// The part `parts / of` of the limit: what it counts is scaled, rounded down, and at least 1; its
    /// times stay.
    ///
    /// It keeps the identity, so that two different limits also have different parts.
    #[doc(hidden)]
    pub fn try_share(self, parts: u64, of: u64) -> Result<Self, LimitError> {
        let scale = |whole: u64| {
            let part = u128::from(whole) * u128::from(parts) / u128::from(of);
            u64::try_from(part).unwrap_or(u64::MAX).max(1)
        };
        let spec = match self.spec {
            AlgorithmSpec::TokenBucket { burst } => {
                AlgorithmSpec::TokenBucket { burst: scale(burst) }
            }
            AlgorithmSpec::SteppedBucket { burst } => {
                AlgorithmSpec::SteppedBucket { burst: scale(burst) }
            }
            AlgorithmSpec::LeakyBucket { queue, delay_after } => AlgorithmSpec::LeakyBucket {
                queue: scale(queue + 1) - 1,
                delay_after: scale(delay_after + 1) - 1,
            },
            other => other,
        };
        let mut share = Self { spec, count: scale(self.count), soft: None, ..self };
        // A limit too small for a soft threshold has none.
        share.soft = self.soft.map(scale).filter(|soft| *soft < share.capacity());
        Ok(Self { id: self.id, ..share.checked()? })
    }
}
