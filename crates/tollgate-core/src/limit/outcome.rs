use std::time::Duration;

use super::decide::{Role, Verdict};
use super::state::Mark;
use super::step::Stepped;
use super::{Cell, Decision, Limit, Standing};
use crate::charge::Charge;

/// What a store answers: the verdict, and what it takes to say how the key stands with each limit.
///
/// Small, because every request has one; what there is to tell of it is worked out when somebody asks,
/// by [`decision`](Self::decision).
///
/// ```
/// use tollgate_core::{Charge, KeyBuf, Limit, Memory, Store};
///
/// let store = Memory::new();
/// let charge = Charge::of(Limit::per_minute(2), KeyBuf::new(), 1);
/// let outcome = store.take(&charge).now()?;
/// assert!(outcome.is_admitted());
/// assert_eq!(outcome.decision(&charge).remaining(), Some(1));
/// # Ok::<(), tollgate_core::StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    verdict: Verdict,
    facts: Facts,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Facts {
    /// Of one limit whose state is two words: most requests owe to one.
    One(Words),
    Any(Vec<Fact>),
}

/// What is known of one limit, once the request has been decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fact {
    Words(Words),
    Told(Told),
}

/// The two words as they are now: everything follows from them.
///
/// Plain numbers, so that each is written once, where the outcome is returned: what is written in one
/// size and read in another makes a processor wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Words {
    first: u64,
    second: u64,
    now: u64,
    cost: u64,
    charged: bool,
    refused: bool,
    /// Whether the request has to come again.
    retries: bool,
    via: u8,
}

/// What was worked out while the state was at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    remaining: u64,
    window: Option<Duration>,
    reset: Option<Duration>,
    retry: Option<Duration>,
    charged: u64,
    refused: bool,
    soft: bool,
    banned: bool,
    mark: Mark,
}

impl Outcome {
    pub(super) fn new(verdict: Verdict, mut facts: Vec<Fact>) -> Self {
        let facts = match facts.pop() {
            Some(Fact::Words(words)) if facts.is_empty() => Facts::One(words),
            last => {
                facts.extend(last);
                Facts::Any(facts)
            }
        };
        Self { verdict, facts }
    }

    /// Of one [plain](super::Plain) limit, whose cell was `before` it took its step.
    #[inline]
    pub(crate) fn stepped(stepped: Stepped, before: Cell, now: u64, cost: u64) -> Self {
        let (verdict, cell, charged) = match stepped {
            Stepped::Admit { cell, .. } => (Verdict::Admit { wait: Duration::ZERO }, cell, true),
            Stepped::Refuse(enter) => {
                (Verdict::Refuse { retry_after: enter.time() }, before, false)
            }
        };
        let [first, second] = cell;
        let (refused, retries) = (!charged, !charged);
        let words = Words { first, second, now, cost, charged, refused, retries, via: 0 };
        Self { verdict, facts: Facts::One(words) }
    }

    /// What becomes of a request that owes nothing.
    pub const fn free() -> Self {
        Self { verdict: Verdict::Admit { wait: Duration::ZERO }, facts: Facts::Any(Vec::new()) }
    }

    /// An outcome worked out elsewhere: for stores that do not decide by [`decide`](super::decide). The
    /// standings are those of what the charge owes, in that order.
    pub fn from_parts(verdict: Verdict, standings: impl IntoIterator<Item = Standing>) -> Self {
        Self::new(verdict, standings.into_iter().map(Fact::told).collect())
    }

    /// The verdict.
    #[inline]
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Whether the request may go ahead, now or after [`wait`](Self::wait).
    #[inline]
    pub const fn is_admitted(&self) -> bool {
        self.verdict.is_admitted()
    }

    /// How long an admitted request waits before it goes; zero for a refused one.
    #[inline]
    pub const fn wait(&self) -> Duration {
        self.verdict.wait()
    }

    /// When a refused request would be admitted; `None` for an admitted one, and where that cannot be
    /// told.
    #[inline]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.verdict.retry_after()
    }

    /// Tells how the key stands with each limit of the charge that this is the outcome of.
    pub fn decision(&self, charge: &Charge) -> Decision {
        self.of_limits(charge.owed().map(|owed| &owed.limit))
    }

    pub(super) fn of_limits<'l>(&self, limits: impl Iterator<Item = &'l Limit>) -> Decision {
        let standings = limits.enumerate().filter_map(|(i, limit)| match &self.facts {
            Facts::One(words) => (i == 0).then(|| words.standing(limit)),
            Facts::Any(facts) => Some(facts.get(i)?.standing(limit)),
        });
        Decision::new(self.verdict, standings.collect())
    }

    /// What the store needs to give each charge back, in the order of what was owed.
    pub fn marks(&self) -> impl Iterator<Item = Mark> {
        let (one, any) = match &self.facts {
            Facts::One(words) => (Some(words.mark()), None),
            Facts::Any(facts) => (None, Some(facts)),
        };
        one.into_iter().chain(any.into_iter().flat_map(|facts| facts.iter().map(Fact::mark)))
    }

    /// Remembers which store of two has decided.
    pub(crate) fn passed_on(mut self, store: u8) -> Self {
        let pass = |via: &mut u8| *via = *via << 1 | store;
        match &mut self.facts {
            Facts::One(words) => pass(&mut words.via),
            Facts::Any(facts) => facts.iter_mut().for_each(|fact| match fact {
                Fact::Words(words) => pass(&mut words.via),
                Fact::Told(told) => pass(&mut told.mark.via),
            }),
        }
        self
    }
}

impl Fact {
    /// Of a limit whose state is two words.
    pub(super) fn of_cell(cell: Cell, now: u64, cost: u64, role: Role) -> Self {
        let [first, second] = cell;
        let (charged, refused) = (role == Role::Charged, role == Role::Refused(true));
        let retries = matches!(role, Role::Refused(_));
        Self::Words(Words { first, second, now, cost, charged, refused, retries, via: 0 })
    }

    /// Of a limit that remembers more.
    pub(super) fn told(standing: Standing) -> Self {
        Self::Told(Told {
            remaining: standing.remaining,
            window: standing.window,
            reset: standing.reset,
            retry: standing.retry,
            charged: standing.charged,
            refused: standing.refused,
            soft: standing.soft,
            banned: standing.banned,
            mark: standing.mark,
        })
    }

    fn mark(&self) -> Mark {
        match self {
            Self::Words(words) => words.mark(),
            Self::Told(told) => told.mark,
        }
    }

    pub(super) fn standing(&self, limit: &Limit) -> Standing {
        match self {
            Self::Words(words) => words.standing(limit),
            Self::Told(told) => Standing {
                limit: *limit,
                remaining: told.remaining,
                window: told.window,
                reset: told.reset,
                charged: told.charged,
                refused: told.refused,
                retry: told.retry,
                soft: told.soft,
                banned: told.banned,
                mark: told.mark,
            },
        }
    }
}

impl Words {
    /// What was written is what stands there; where nothing was charged, nothing can be given back.
    fn mark(&self) -> Mark {
        let words = if self.charged { [self.first, self.second] } else { [0; 2] };
        Mark { via: self.via, ..Mark::from_words(words) }
    }

    fn standing(&self, limit: &Limit) -> Standing {
        let cell = [self.first, self.second];
        let mut standing = limit.standing_of(cell, self.now);
        if self.retries {
            standing.retry = limit.retry_of(cell, self.now, self.cost);
        }
        standing.mark = self.mark();
        standing.charged = if self.charged { self.cost } else { 0 };
        standing.refused = self.refused;
        standing
    }
}
