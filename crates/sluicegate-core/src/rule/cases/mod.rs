//! Cases: other limits where other conditions hold.
//!
//! `when(load)` and `when(Not(load))` on two rules are two looks at what changes, and between them a request
//! can be charged to none. `Cases` choose between limits in one place.
//!
//! Some conditions may hold: servers read the request in several ways. The limits of such a case are charged, and
//! those of the cases that come after it, because it is unknown which case the request is in. A case that
//! replaced the limits after it could be reached by an unusual spelling, and take a request out of a tight limit.
//!
//! Who chooses the case decides who shares. If a client can choose between two limits that share a row, it
//! can spend the tokens of the generous one where the tight one counts, or be shut out of the tight one by
//! what it spent under the other. So a condition says who chooses it: the client, unless it says otherwise.
//! A case that the client can choose has rows of its own, named after the limit's own name or its numbers,
//! in a file after the name of the case or its condition, and never after its place in the list. Conditions
//! that only the server decides (hours, load, claims and extensions, the network or the country of an
//! address, which nobody changes at will) make cases that share rows with each other and with the limits
//! that hold otherwise. A condition with a part that the client chooses is chosen by the client.

mod together;

use std::collections::HashMap;
use std::fmt;

pub use self::together::charge_together;
use crate::condition::{ChosenBy, Condition};
use crate::key::{Missing, View};
use crate::limit::{Limit, LimitError, Limits};
use crate::rule::{By, KnownLimits, LimitsFor, row_sharing};

/// Begins with the limits for requests for which `condition` holds. [`or`](CasesBuilder::or) adds further cases, and
/// [`otherwise`](CasesBuilder::otherwise) the limits for all other requests. See [`Cases`].
pub fn when<C>(condition: C, limits: impl Into<Limits>) -> CasesBuilder<[C; 1]> {
    CasesBuilder { conditions: [condition], limits: vec![limits.into()] }
}

/// Limits by the first condition that holds.
///
/// A condition [may hold](Condition::holds) if servers read the request in several ways. Then the limits of the case are
/// charged together with those of the next case that holds, or of no case. So no spelling of a path takes a request out of
/// a tight limit. Of limits that share a row, the strictest is charged.
///
/// ```
/// use sluicegate::{Ip, Limit, Route, when};
/// use sluicegate::key::Method;
///
/// let rule = when(Route.is("/search"), Limit::per_minute(10))
///     .or(Method.is_any(["GET", "HEAD"]), Limit::per_minute(300))
///     .otherwise(Limit::per_minute(60))
///     .by(Ip::peer());
/// ```
///
/// # Which cases share what was spent
///
/// Who can choose the case matters. The condition [tells](Condition::chosen_by) who can.
///
/// **Where the client can choose**, by the path, the method or a header, the case has a budget of its own, as
/// all three have above: nobody gets more than 10 searches a minute by reading other pages between them, and
/// who has read 300 pages can still search. A closure over the request counts as the client's choice, unless
/// [`ByServer`](crate::condition::ByServer) says otherwise. A tuple is the client's choice as soon as one part is.
///
/// Such a budget belongs to the limit's own name, else to its numbers: the order of the cases makes no
/// difference. Cases of equal limits are told apart by their order among each other; give them names if that
/// may change.
///
/// **Where only the server chooses**, by the hour, the load or a claim, these cases and the last one share what
/// was spent, as far as their limits are at the same place and of one algorithm. That is how limits go by the
/// hour or by the load, without a fresh budget whenever the case changes. Each set of numbers keeps its own
/// account of everything that was admitted; see [`Limit::carried`].
///
/// A place is a limit's name, or its period where it has none: it is then called what the limit of the last
/// case is called that has this period, or after the name that is given to all of them:
///
/// ```
/// # use sluicegate::{Claim, Ip, Limit, when};
/// let paid = Claim("plan").equals("paid");
/// let rule = when(paid, [Limit::per_second(50), Limit::per_day(100_000)])
///     .otherwise([Limit::per_second(5), Limit::per_day(1_000)])
///     .named("api") // `api/second` and `api/day`
///     .by(Claim("customer"));
/// ```
#[derive(Clone)]
pub struct Cases<C> {
    conditions: C,
    /// As they were given, for each condition and for no condition.
    given: Vec<Limits>,
    /// The limits that share rows, for cases that the server chooses and for no case.
    limits: Vec<Limits>,
    /// The limits with rows of their own in each case, for cases that the client can choose.
    apart: Vec<Limits>,
}

impl<C> Cases<Vec<C>> {
    /// Any number of cases, and the limits if no condition holds.
    ///
    /// # Errors
    ///
    /// If two limits of one case are in the same place, or one cannot be named.
    pub fn try_new(
        cases: impl IntoIterator<Item = (C, Limits)>,
        otherwise: impl Into<Limits>,
    ) -> Result<Self, LimitError> {
        let (conditions, limits) = cases.into_iter().unzip();
        CasesBuilder { conditions, limits }.try_otherwise(otherwise)
    }
}

impl<C> Cases<C> {
    /// Names the limits that have no name of their own after `name` and their period: `api/second`.
    ///
    /// # Panics
    ///
    /// If [`try_named`](Self::try_named) returns an error.
    #[must_use]
    #[track_caller]
    pub fn named(self, name: &str) -> Self {
        self.try_named(name).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`named`](Self::named), for names from configuration.
    ///
    /// # Errors
    ///
    /// If the name cannot be a limit's, or two limits of one case would share one.
    pub fn try_named(self, name: &str) -> Result<Self, LimitError> {
        let limits = sharing_rows(&self.given, |limit| format!("{name}/{}", limit.period_name()))?;
        let apart = with_own_rows(&self.given, Some(name))?;
        Ok(Self { limits, apart, ..self })
    }

    /// The rule that charges these limits to `key`.
    pub fn by<K>(self, key: K) -> By<K, Self> {
        By::new(self, key)
    }
}

impl<V: View, C: Conditions<V>> LimitsFor<V> for Cases<C> {
    fn each(
        &self,
        view: &V,
        each: &mut dyn FnMut(&Limit) -> Result<(), Missing>,
    ) -> Result<(), Missing> {
        let limits = |case| match self.conditions.chosen_by(case) {
            ChosenBy::Client => self.apart.get(case),
            ChosenBy::Server => self.limits.get(case),
        };
        let mut uncertain = Vec::new();
        let first = self.conditions.first(view, &mut uncertain)?;
        let Some(last) = first.and_then(limits).or(self.limits.last()) else { return Ok(()) };
        let uncertain = uncertain.into_iter().filter_map(limits).map(|limits| limits as _);
        charge_together(&uncertain.collect::<Vec<_>>(), last, view, each)
    }
}

impl<C> KnownLimits for Cases<C> {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        // What applies in no case has no rows of its own.
        let apart = self.apart.iter().take(self.apart.len().saturating_sub(1));
        self.limits.iter().chain(apart).flat_map(Limits::iter).for_each(each);
    }
}

impl<C> fmt::Debug for Cases<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cases").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Cases without the limits for all other requests; see [`when`].
#[derive(Clone)]
pub struct CasesBuilder<C> {
    conditions: C,
    limits: Vec<Limits>,
}

impl<C> CasesBuilder<C> {
    /// The limits if `condition` holds, and none before it.
    #[must_use]
    pub fn or<D>(mut self, condition: D, limits: impl Into<Limits>) -> CasesBuilder<(C, D)> {
        self.limits.push(limits.into());
        CasesBuilder { conditions: (self.conditions, condition), limits: self.limits }
    }

    /// The limits if no condition holds.
    ///
    /// # Panics
    ///
    /// If [`try_otherwise`](Self::try_otherwise) returns an error.
    #[track_caller]
    pub fn otherwise(self, limits: impl Into<Limits>) -> Cases<C> {
        self.try_otherwise(limits).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`otherwise`](Self::otherwise), for limits from configuration.
    ///
    /// # Errors
    ///
    /// If two limits of one case are in the same place, or one cannot be named.
    pub fn try_otherwise(self, limits: impl Into<Limits>) -> Result<Cases<C>, LimitError> {
        let Self { conditions, limits: mut given } = self;
        given.push(limits.into());
        let limits = sharing_rows(&given, |limit| name_at_place(&given, limit))?;
        let apart = with_own_rows(&given, None)?;
        Ok(Cases { conditions, given, limits, apart })
    }
}

impl<C> fmt::Debug for CasesBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CasesBuilder").field("limits", &self.limits).finish_non_exhaustive()
    }
}

fn sharing_rows(
    lists: &[Limits],
    name: impl Fn(&Limit) -> String,
) -> Result<Vec<Limits>, LimitError> {
    lists.iter().map(|limits| row_sharing::sharing_rows(limits, &name)).collect()
}

/// The limits of each case with rows of its own.
fn with_own_rows(lists: &[Limits], name: Option<&str>) -> Result<Vec<Limits>, LimitError> {
    let mut rows = HashMap::new();
    lists.iter().map(|limits| row_sharing::with_own_rows(limits, name, &mut rows)).collect()
}

/// The name of the last limit with the same period, preferably one without a name of its own, because all limits
/// without a name share that place.
fn name_at_place(lists: &[Limits], limit: &Limit) -> String {
    let at_place = |limits: &'_ Limits| {
        let same = |other: &&Limit| other.period() == limit.period();
        let nameless = |other: &&Limit| same(other) && other.own_name().is_none();
        limits.iter().find(nameless).or_else(|| limits.iter().find(same)).copied()
    };
    lists.iter().rev().find_map(at_place).unwrap_or(*limit).name().to_string()
}

/// Conditions in order. The first one that holds decides [`Cases`].
pub trait Conditions<V: View> {
    /// The index of the first condition that surely holds. Those before it that may hold are added to `uncertain`.
    ///
    /// # Errors
    ///
    /// What is missing for a condition that is asked before one surely holds.
    fn first(&self, view: &V, uncertain: &mut Vec<usize>) -> Result<Option<usize>, Missing>;

    /// How many there are.
    fn count(&self) -> usize;

    /// Who chooses the condition at this index.
    fn chosen_by(&self, at: usize) -> ChosenBy;
}

impl<V: View, C: Condition<V>, const N: usize> Conditions<V> for [C; N] {
    fn first(&self, view: &V, uncertain: &mut Vec<usize>) -> Result<Option<usize>, Missing> {
        first_of(self, view, uncertain)
    }

    fn count(&self) -> usize {
        N
    }

    #[inline]
    fn chosen_by(&self, at: usize) -> ChosenBy {
        chosen_by(self, at)
    }
}

impl<V: View, C: Condition<V>> Conditions<V> for Vec<C> {
    fn first(&self, view: &V, uncertain: &mut Vec<usize>) -> Result<Option<usize>, Missing> {
        first_of(self, view, uncertain)
    }

    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn chosen_by(&self, at: usize) -> ChosenBy {
        chosen_by(self, at)
    }
}

fn first_of<V: View, C: Condition<V>>(
    conditions: &[C],
    view: &V,
    uncertain: &mut Vec<usize>,
) -> Result<Option<usize>, Missing> {
    for (i, condition) in conditions.iter().enumerate() {
        if surely_holds(condition, view, i, uncertain)? {
            return Ok(Some(i));
        }
    }
    Ok(None)
}

/// Whether the condition at this index surely holds. If it may hold, it is added to `uncertain`.
fn surely_holds<V: View, C: Condition<V>>(
    condition: &C,
    view: &V,
    at: usize,
    uncertain: &mut Vec<usize>,
) -> Result<bool, Missing> {
    // Most conditions do not hold, and need no second question.
    if !condition.holds(view)? {
        return Ok(false);
    }
    let is_sure = condition.surely_holds(view)?;
    if !is_sure {
        uncertain.push(at);
    }
    Ok(is_sure)
}

fn chosen_by<V: View, C: Condition<V>>(conditions: &[C], at: usize) -> ChosenBy {
    conditions.get(at).map_or(ChosenBy::Client, Condition::chosen_by)
}

/// Those before, and one more.
impl<V: View, B: Conditions<V>, C: Condition<V>> Conditions<V> for (B, C) {
    fn first(&self, view: &V, uncertain: &mut Vec<usize>) -> Result<Option<usize>, Missing> {
        let (before, last) = self;
        if let Some(first) = before.first(view, uncertain)? {
            return Ok(Some(first));
        }
        let at = before.count();
        Ok(surely_holds(last, view, at, uncertain)?.then_some(at))
    }

    fn count(&self) -> usize {
        self.0.count() + 1
    }

    #[inline]
    fn chosen_by(&self, at: usize) -> ChosenBy {
        let (before, last) = self;
        if at < before.count() { before.chosen_by(at) } else { last.chosen_by() }
    }
}

#[cfg(test)]
mod tests;
