use crate::limit::{Decision, Limit, Outcome};

/// What a limit leaves of its decision in the extensions of requests and responses: the [`Decision`] is made when
/// somebody [asks](Self::decision) for it.
///
/// A [`Decision`] is large, and most handlers do not look at it. This has the words from which it follows.
#[derive(Debug, Clone)]
pub struct LazyDecision(Source);

#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are of one limit, and a box would cost an allocation"
)]
enum Source {
    One { limit: Limit, cost: u64, outcome: Outcome },
    Made(Box<Decision>),
    Nothing,
}

impl LazyDecision {
    #[inline(always)]
    pub(crate) fn of_one(limit: &Limit, cost: u64, outcome: &Outcome) -> Self {
        Self(Source::One { limit: *limit, cost, outcome: outcome.clone() })
    }

    /// For a request that a layer has seen and did not charge.
    pub(crate) const NOTHING: Self = Self(Source::Nothing);

    /// Whether any limit has decided.
    pub const fn is_decided(&self) -> bool {
        !matches!(self.0, Source::Nothing)
    }

    /// The verdict, and the status of each limit.
    pub fn decision(&self) -> Decision {
        match &self.0 {
            Source::Nothing => Outcome::free().decision([]),
            Source::One { limit, cost, outcome } => outcome.decision([(limit, *cost)]),
            Source::Made(decision) => (**decision).clone(),
        }
    }
}

impl From<Box<Decision>> for LazyDecision {
    fn from(decision: Box<Decision>) -> Self {
        Self(Source::Made(decision))
    }
}

/// The extensions of a request or of a response.
pub trait Extensions {
    /// Leaves `value` there.
    fn leave<T: Clone + Send + Sync + 'static>(&mut self, value: T);

    /// Whether there is a value of this type.
    fn has<T: Send + Sync + 'static>(&self) -> bool;

    /// The value of this type that is there.
    fn find<T: Clone + Send + Sync + 'static>(&self) -> Option<T>;
}
