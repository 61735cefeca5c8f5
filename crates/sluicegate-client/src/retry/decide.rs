use std::time::Duration;

use http::{HeaderMap, HeaderName, StatusCode};

use super::backoff::Backoff;
use crate::error::{BoxError, Refused, is_final};
use crate::obey::Signal;

static GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// How an attempt ended.
#[derive(Debug, Clone, Copy)]
pub enum Outcome<'a> {
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

impl Outcome<'_> {
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
        let jitter = Duration::from_micros(self.backoff.wait(attempts, random));
        let wait = match signal.and_then(Signal::wait) {
            Some(asked) if asked > self.longest => return None,
            Some(asked) if time.never_waits && !asked.is_zero() => return None,
            // Never before, and not together with the others. A server that says 0 does not make it hurry.
            Some(asked) => jitter.max(asked + jitter.min(asked / 10 + Duration::from_millis(100))),
            None => jitter,
        };
        let is_too_late = time.left.is_some_and(|left| wait >= left);
        let is_too_long = time.waits.is_some_and(|waits| wait > waits);
        (!is_too_late && !is_too_long).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: fn() -> Bounds =
        || Bounds { attempts: 3, backoff: Backoff::default(), longest: Duration::from_secs(30) };

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
            backoff: Backoff::try_new(Duration::from_secs(2), Duration::from_secs(10)).unwrap(),
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
}
