//! Reads the answers of scripts.

use std::fmt;
use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Debit;
use sluicegate_core::adapter::remote::{
    self, Algorithm, Carried, LimitOutcome, LimitParameters, Role,
};
use sluicegate_core::limit::{LimitStatus, Verdict};

/// An answer that none of our scripts gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed(&'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the script's answer {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// The verdict over several rows, and the outcome of each limit. Replies for rows in several slots can be joined into one
/// outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) verdict: Verdict,
    /// The time of the decision by the store's clock, in microseconds since the Unix epoch.
    pub(crate) now: u64,
    pub(crate) outcomes: Vec<LimitOutcome>,
}

impl Reply {
    /// Reads the answer to a take, a peek or a reset of these debits.
    pub(crate) fn parse<'o>(
        debit: impl IntoIterator<Item = &'o Debit>,
        reply: &[u8],
    ) -> Result<Self, Malformed> {
        let mut bytes = Bytes(reply);
        let is_admitted = bytes.flag()?;
        // Looked at before the time is read, since both special numbers read as no time.
        let is_never = !is_admitted && bytes.is_never();
        let micros = bytes.time()?;
        let now = bytes.integer()?;
        let verdict = match (is_admitted, micros) {
            (true, Some(wait)) => Verdict::Admit { wait },
            (true, None) => return Err(Malformed("admits without a time")),
            (false, _) if is_never => Verdict::Never,
            (false, retry_after) => Verdict::Refuse { retry_after },
        };
        let outcomes = debit.into_iter().map(|debit| bytes.outcome(&debit.limit, debit.cost, now));
        let outcomes = outcomes.collect::<Result<_, _>>()?;
        bytes.end()?;
        Ok(Self { verdict, now, outcomes })
    }
}

/// A time that is unknown, because only giving back makes room.
const UNKNOWN: f64 = -1.0;

/// A time that never comes, because the cost is more than a limit ever admits.
const NEVER: f64 = -2.0;

/// The part of an answer that is still to be read.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl Bytes<'_> {
    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (chunk, rest) = self.0.split_first_chunk().ok_or(Malformed("ends early"))?;
        self.0 = rest;
        Ok(*chunk)
    }

    #[cfg(any(feature = "mastership", test))]
    pub(super) fn text(&mut self, length: u64) -> Result<&[u8], Malformed> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (text, rest) = self.0.split_at_checked(length).ok_or(Malformed("ends early"))?;
        self.0 = rest;
        Ok(text)
    }

    pub(super) fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("goes on after its end")) }
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        self.chunk::<1>().map(|[byte]| byte)
    }

    pub(super) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("has no flag where one is expected")),
        }
    }

    fn number(&mut self) -> Result<f64, Malformed> {
        self.chunk().map(f64::from_le_bytes)
    }

    pub(super) fn integer(&mut self) -> Result<u64, Malformed> {
        exact(self.number()?).ok_or(Malformed("has a number that is not an exact integer"))
    }

    /// Whether the next number is [`NEVER`].
    fn is_never(&self) -> bool {
        self.0.first_chunk().is_some_and(|bytes| f64::from_le_bytes(*bytes) == NEVER)
    }

    /// A time in microseconds. `None` for [`UNKNOWN`] and [`NEVER`].
    pub(super) fn time(&mut self) -> Result<Option<Duration>, Malformed> {
        let number = self.number()?;
        if number == UNKNOWN || number == NEVER {
            return Ok(None);
        }
        let micros = exact(number).ok_or(Malformed("has a time that is not an exact integer"))?;
        Ok(Some(Duration::from_micros(micros)))
    }

    pub(super) fn words(&mut self) -> Result<[u64; 2], Malformed> {
        Ok([self.integer()?, self.integer()?])
    }

    /// How a limit that is carried over was charged at `now`.
    pub(super) fn carried(&mut self, now: u64) -> Result<Carried, Malformed> {
        let since = self.integer()?;
        Ok(Carried { at: now.min(since), since, by_all: self.flag()? })
    }

    /// The two counts of a sliding window take 32 bits each, the previous one first.
    fn words_of(&mut self, algorithm: &Algorithm) -> Result<[u64; 2], Malformed> {
        match algorithm {
            Algorithm::SlidingWindow { .. } => {}
            Algorithm::TokenBucket { .. }
            | Algorithm::SteppedBucket { .. }
            | Algorithm::FixedWindow { .. }
            | Algorithm::SlidingLog { .. }
            | Algorithm::Concurrency { .. } => return self.words(),
        }
        let index = self.integer()?;
        let previous = u64::from(u32::from_le_bytes(self.chunk()?));
        let current = u64::from(u32::from_le_bytes(self.chunk()?));
        Ok([index, previous << 32 | current])
    }

    fn role(&mut self) -> Result<Role, Malformed> {
        match self.byte()? {
            0 => Ok(Role::Asked),
            1 => Ok(Role::Charged),
            2 => Ok(Role::Refused(false)),
            3 => Ok(Role::Refused(true)),
            4 => Ok(Role::Shadowed),
            _ => Err(Malformed("has no role where one is expected")),
        }
    }

    fn outcome(&mut self, limit: &Limit, cost: u64, now: u64) -> Result<LimitOutcome, Malformed> {
        let role = self.role()?;
        let numbers = LimitParameters::of(limit);
        if let Algorithm::SlidingLog { .. } = numbers.algorithm {
            return Ok(LimitOutcome::of_status(self.log(limit, cost, role)?));
        }
        let words = self.words_of(&numbers.algorithm)?;
        if !numbers.extra_state {
            return Ok(LimitOutcome::of_words(words, now, role));
        }
        let (gap, ban) = (self.words()?, self.words()?);
        let strikes = if numbers.after > 0 { self.words()? } else { [0; 2] };
        let all_words = [words, gap, ban, strikes];
        let carried = if numbers.carried { self.carried(now)? } else { Carried::default() };
        Ok(LimitOutcome::of_extra_state(limit, cost, all_words, carried, now, role))
    }

    /// The status of a log, which the script computes.
    fn log(&mut self, limit: &Limit, cost: u64, role: Role) -> Result<LimitStatus, Malformed> {
        let mut status = LimitStatus::fresh(*limit);
        status.remaining = self.integer()?;
        status.window = self.time()?;
        status.reset = self.time()?;
        let retry = self.time()?;
        let record = self.byte()?;
        if record > 7 {
            return Err(Malformed("has no ban where one is expected"));
        }
        status.banned = record % 2 == 1 && LimitParameters::of(limit).ban > 0;
        let stamp = self.integer()?;
        let gap = self.words()?;
        status.soft =
            limit.soft_limit().is_some_and(|soft| limit.capacity() - status.remaining > soft);
        if record >= 4 {
            // The gap after the last request.
            status.remaining = 0;
        }
        match role {
            Role::Charged => {
                status.charged = cost;
                status.receipt = remote::receipt([stamp, 0], gap, record % 4 > 0);
            }
            Role::Refused(refused) => {
                status.refused = refused;
                status.retry = retry;
            }
            Role::Shadowed => {
                status.shadowed = true;
                status.retry = retry;
                status.receipt = remote::void();
            }
            Role::Asked => {}
        }
        Ok(status)
    }
}

/// The integer in a double, if it is small enough for exact arithmetic.
fn exact(number: f64) -> Option<u64> {
    // Also turns away NaN, which compares false.
    let is_exact = number >= 0.0 && number < remote::EXACT as f64 && number.fract() == 0.0;
    is_exact.then_some(number as u64)
}
