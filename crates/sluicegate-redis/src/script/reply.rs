//! What a script answers, understood.

use std::fmt;
use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Debit;
use sluicegate_core::adapter::remote::{
    self, Algorithm, Carried, LimitOutcome, LimitParameters, Role,
};
use sluicegate_core::limit::{LimitStatus, Verdict};

/// An answer that no script of ours gives: there is something else at work in the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed(&'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the script's answer {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// The verdict over some rows, and a fact for each: of rows in several slots, one outcome can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) verdict: Verdict,
    /// When it was decided, by the clock of the store, in microseconds since the Unix epoch.
    pub(crate) now: u64,
    pub(crate) outcomes: Vec<LimitOutcome>,
}

impl Reply {
    /// Reads what was answered to a take, a peek or a reset of rows that owe this.
    pub(crate) fn parse<'o>(
        debit: impl IntoIterator<Item = &'o Debit>,
        reply: &[u8],
    ) -> Result<Self, Malformed> {
        let mut bytes = Bytes(reply);
        let is_admitted = bytes.flag()?;
        let is_never = !is_admitted && bytes.is_never();
        let micros = bytes.time()?;
        let now = bytes.integer()?;
        let verdict = match (is_admitted, micros) {
            (true, Some(wait)) => Verdict::Admit { wait },
            (true, None) => return Err(Malformed("admits after no time that can be told")),
            (false, _) if is_never => Verdict::Never,
            (false, retry_after) => Verdict::Refuse { retry_after },
        };
        let outcomes = debit.into_iter().map(|debit| bytes.outcome(&debit.limit, debit.cost, now));
        let outcomes = outcomes.collect::<Result<_, _>>()?;
        bytes.end()?;
        Ok(Self { verdict, now, outcomes })
    }
}

/// A time that nobody can tell: only giving back makes room.
const UNKNOWN: f64 = -1.0;

/// A time that never comes: the cost is more than a limit ever admits.
const NEVER: f64 = -2.0;

/// What of an answer is still to be read.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl Bytes<'_> {
    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (chunk, rest) = self.0.split_first_chunk().ok_or(Malformed("ends early"))?;
        self.0 = rest;
        Ok(*chunk)
    }

    pub(super) fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("goes on after its end")) }
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        self.chunk::<1>().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Result<bool, Malformed> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("has something else where yes or no should stand")),
        }
    }

    fn number(&mut self) -> Result<f64, Malformed> {
        self.chunk().map(f64::from_le_bytes)
    }

    pub(super) fn integer(&mut self) -> Result<u64, Malformed> {
        exact(self.number()?).ok_or(Malformed("has a number that no arithmetic of ours gives"))
    }

    /// Whether a time stands next that never comes.
    fn is_never(&self) -> bool {
        self.0.first_chunk().is_some_and(|bytes| f64::from_le_bytes(*bytes) == NEVER)
    }

    /// Microseconds; less than none stands for what cannot be told, and for what never comes.
    pub(super) fn time(&mut self) -> Result<Option<Duration>, Malformed> {
        let number = self.number()?;
        if number == UNKNOWN || number == NEVER {
            return Ok(None);
        }
        let micros =
            exact(number).ok_or(Malformed("has a time that no arithmetic of ours gives"))?;
        Ok(Some(Duration::from_micros(micros)))
    }

    pub(super) fn words(&mut self) -> Result<[u64; 2], Malformed> {
        Ok([self.integer()?, self.integer()?])
    }

    /// How a limit that is carried over was charged at `now`.
    fn carried(&mut self, now: u64) -> Result<Carried, Malformed> {
        let since = self.integer()?;
        Ok(Carried { at: now.min(since), since, by_all: self.flag()? })
    }

    /// The two counts of a sliding window stand in 32 bits each, the previous one first.
    fn words_of(&mut self, algorithm: &Algorithm) -> Result<[u64; 2], Malformed> {
        if !matches!(algorithm, Algorithm::SlidingWindow { .. }) {
            return self.words();
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
            _ => Err(Malformed("has something else where a limit's part should stand")),
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

    /// Of a log, what was worked out beside it.
    fn log(&mut self, limit: &Limit, cost: u64, role: Role) -> Result<LimitStatus, Malformed> {
        let mut status = LimitStatus::fresh(*limit);
        status.remaining = self.integer()?;
        status.window = self.time()?;
        status.reset = self.time()?;
        let retry = self.time()?;
        let record = self.byte()?;
        if record > 7 {
            return Err(Malformed("has something else where a ban should stand"));
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

/// The whole number that a double is, if all arithmetic with it is exact.
fn exact(number: f64) -> Option<u64> {
    let is_exact = number >= 0.0 && number < remote::EXACT as f64 && number.fract() == 0.0;
    is_exact.then_some(number as u64)
}
