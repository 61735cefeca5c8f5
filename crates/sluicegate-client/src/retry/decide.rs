use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, StatusCode};
use sluicegate::adapter::ConfigError;
use sluicegate::adapter::breaker::Backoff;
use sluicegate::condition::Condition;

use crate::error::{BoxError, Refused, is_final};
use crate::obey::Signal;
use crate::outgoing::{OutgoingRequest, OutgoingView};

static GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// How an attempt ended.
#[derive(Debug, Clone, Copy)]
pub enum AttemptResult<'a> {
    /// With a response.
    Response {
        /// Its status.
        status: StatusCode,
        /// Its header.
        headers: &'a HeaderMap,
    },
    /// Without one.
    Error(&'a BoxError),
}

impl AttemptResult<'_> {
    /// Whether another attempt may end better: after 408, 425, 429, 502, 503, 504, 403 that says when to come back,
    /// `UNAVAILABLE` of gRPC, `RESOURCE_EXHAUSTED` of gRPC that says when to come back, and errors other than a
    /// [`Refused`] of this program, and than those of reqwest for a request that cannot be made or is redirected
    /// without end.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Response { status, headers } => match headers.get(&GRPC_STATUS) {
                Some(code) if code == "14" => true,
                // Without a time it may be a quota that is used up for good.
                Some(code) if code == "8" => {
                    Signal::read(*status, headers, Duration::ZERO).retry_after.is_some()
                }
                // GitHub refuses so what comes too fast.
                _ if *status == StatusCode::FORBIDDEN => {
                    Signal::read(*status, headers, Duration::ZERO).refused
                }
                _ => matches!(status.as_u16(), 408 | 425 | 429 | 502 | 503 | 504),
            },
            Self::Error(error) => Refused::find(&***error).is_none() && !is_final(&***error),
        }
    }
}

/// What limits the attempts, apart from the budget.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) attempts: u32,
    pub(super) backoff: Backoff,
    /// The longest wait that a server may ask for; if it asks for a longer one, there is no other attempt.
    pub(super) longest: Duration,
}

/// What time a request has for another attempt.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Time {
    /// In which an answer is of use.
    pub(super) left: Option<Duration>,
    /// That the request may still wait.
    pub(super) waits: Option<Duration>,
    /// The request waits for no server.
    pub(super) never_waits: bool,
}

impl Bounds {
    /// Whether the settings make sense; the text says what does not.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        const DAY: Duration = Duration::from_secs(86_400);
        let Self { attempts, backoff: Backoff { first: base, longest: most }, longest } = *self;
        let problem = if !(1..=10).contains(&attempts) {
            format!("a request has 1 to 10 attempts; {attempts} were asked for")
        } else if longest > DAY {
            format!("a Retry-After of at most a day is waited for; {longest:?} was given")
        } else if base.is_zero() || base > most || most > DAY {
            format!(
                "a back-off begins above zero and at or below its longest wait, which is at most a day; {base:?} and {most:?} were given"
            )
        } else {
            return Ok(());
        };
        Err(ConfigError::new(problem))
    }

    /// How long to wait before the next attempt. `None` if there is no further attempt.
    pub(super) fn wait(
        &self,
        attempts: u32,
        signal: Option<&Signal>,
        time: Time,
        random: u32,
    ) -> Option<Duration> {
        let never = signal.is_some_and(|signal| signal.never_retry);
        if never || attempts >= self.attempts {
            return None;
        }
        let jitter = jitter(self.backoff, attempts, random);
        let wait = match signal.and_then(Signal::wait) {
            Some(asked) if asked > self.longest => return None,
            Some(asked) if time.never_waits && !asked.is_zero() => return None,
            // A layer further in holds all requests back until then, and spreads them. Of a window that lasts for a second,
            // one that comes later finds nothing left.
            Some(asked) if time.waits.is_some() => jitter.max(asked),
            // Never before, and not together with the others. A server that says 0 does not make it hurry.
            Some(asked) => jitter.max(asked + jitter.min(asked / 10 + Duration::from_millis(100))),
            None => jitter,
        };
        let is_too_late = time.left.is_some_and(|left| wait >= left);
        let is_too_long = time.waits.is_some_and(|waits| wait > waits);
        (!is_too_late && !is_too_long).then_some(wait)
    }
}

static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Which requests do no harm when they arrive twice.
///
/// By default those with a method that is idempotent (RFC 9110, 9.2.2), and those with an `Idempotency-Key`.
#[derive(Clone, Default)]
pub(crate) struct Repeatable(Option<Arc<IsRepeatable>>);

type IsRepeatable = dyn Fn(&OutgoingView<'_>) -> bool + Send + Sync;

impl Repeatable {
    /// Those for which `condition` holds for certain, too.
    pub(crate) fn when<C>(condition: C) -> Self
    where
        C: for<'a> Condition<OutgoingView<'a>> + Send + Sync + 'static,
    {
        // A condition that cannot be told does not make a request safe.
        Self(Some(Arc::new(move |view: &OutgoingView<'_>| {
            condition.surely_holds(view).unwrap_or(false)
        })))
    }

    /// Whether `request` may arrive twice.
    pub(crate) fn holds(&self, request: &impl OutgoingRequest) -> bool {
        request.method().is_idempotent()
            || request.headers().contains_key(&IDEMPOTENCY_KEY)
            || self.0.as_ref().is_some_and(|holds| holds(&OutgoingView::new(request)))
    }
}

impl fmt::Debug for Repeatable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Repeatable").field(&self.0.is_some()).finish()
    }
}

/// Up to 100 ms first, up to 10 s at most.
pub(super) const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(10) };

/// How long to wait after this number of attempts, which is at least 1, by a random number.
///
/// The whole wait is random, so that clients that failed together do not return together (Brooker, "Exponential Backoff
/// And Jitter", 2015).
fn jitter(backoff: Backoff, attempts: u32, random: u32) -> Duration {
    backoff.whole(attempts).mul_f64(f64::from(random) / 4_294_967_296.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: fn() -> Bounds =
        || Bounds { attempts: 3, backoff: BACKOFF, longest: Duration::from_secs(30) };

    fn told(retry_after: u64) -> Signal {
        Signal { retry_after: Some(Duration::from_secs(retry_after)), ..Signal::default() }
    }

    #[test]
    fn the_third_attempt_is_the_last() {
        assert!(BOUNDS().wait(2, None, Time::default(), 0).is_some());
        assert_eq!(BOUNDS().wait(3, None, Time::default(), 0), None);
    }

    #[test]
    fn no_attempt_is_before_retry_after() {
        for random in [0, 1, u32::MAX / 2, u32::MAX] {
            let wait = BOUNDS().wait(1, Some(&told(5)), Time::default(), random).unwrap();
            assert!((5.0..=5.6).contains(&wait.as_secs_f64()), "{wait:?}");
        }
    }

    #[test]
    fn a_server_that_says_zero_does_not_make_the_client_hurry() {
        let bounds = Bounds {
            backoff: Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(10) },
            ..BOUNDS()
        };
        for random in [0, u32::MAX / 2, u32::MAX] {
            let own = bounds.wait(2, None, Time::default(), random);
            assert_eq!(bounds.wait(2, Some(&told(0)), Time::default(), random), own);
        }
    }

    #[test]
    fn there_is_no_attempt_that_comes_too_late() {
        let left = |seconds| Time { left: Some(Duration::from_secs(seconds)), ..Time::default() };
        assert_eq!(BOUNDS().wait(1, Some(&told(5)), left(5), 0), None);
        assert!(BOUNDS().wait(1, Some(&told(5)), left(6), 0).is_some());
        assert_eq!(BOUNDS().wait(1, Some(&told(31)), Time::default(), 0), None);
        assert_eq!(BOUNDS().wait(1, Some(&told(u64::MAX)), Time::default(), 0), None);
    }

    #[test]
    fn a_server_that_says_never_is_believed() {
        let never = Signal { never_retry: true, ..Signal::default() };
        assert_eq!(BOUNDS().wait(1, Some(&never), Time::default(), 0), None);
    }

    #[test]
    fn each_wait_is_random_up_to_twice_the_last_and_never_above_the_most() {
        for (attempts, most) in [(1, 100), (2, 200), (3, 400), (8, 10_000), (500, 10_000)] {
            assert_eq!(jitter(BACKOFF, attempts, 0), Duration::ZERO);
            assert_eq!(jitter(BACKOFF, attempts, 1 << 31), Duration::from_millis(most) / 2);
            let longest = jitter(BACKOFF, attempts, u32::MAX).as_secs_f64();
            assert!((longest * 1e3 - most as f64).abs() < 1e-3, "{attempts}: {longest}");
        }
    }

    #[test]
    fn waits_that_make_no_sense_are_errors() {
        let millis = Duration::from_millis;
        for (base, most) in
            [(millis(0), millis(1)), (millis(2), millis(1)), (millis(1), Duration::MAX)]
        {
            let bounds = Bounds { backoff: Backoff { first: base, longest: most }, ..BOUNDS() };
            assert!(bounds.check().is_err(), "{base:?} {most:?}");
        }
    }
}
