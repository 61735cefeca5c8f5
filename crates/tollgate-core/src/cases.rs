//! Cases: other limits where other conditions hold.

use std::fmt;

use crate::condition::Condition;
use crate::key::{Missing, View};
use crate::limit::{Limit, LimitError, Limits};
use crate::rule::{By, KnownLimits, LimitsFor};

/// Begins with the limits that hold where `condition` does; [`or`](CasesBuilder::or) goes on, and
/// [`otherwise`](CasesBuilder::otherwise) says what holds for everybody else. See [`Cases`].
pub fn when<C>(condition: C, limits: impl Into<Limits>) -> CasesBuilder<[C; 1]> {
    CasesBuilder { conditions: [condition], limits: vec![limits.into()] }
}

/// Limits by the first condition that holds.
///
/// ```
/// use tollgate_core::{Ip, Limit, Method, Route, when};
///
/// let rule = when(Route.is("/search"), Limit::per_minute(10))
///     .or(Method.is_any(["GET", "HEAD"]), Limit::per_minute(300))
///     .otherwise(Limit::per_minute(60))
///     .by(Ip::peer());
/// ```
///
/// Limits at the same place count as one: what was spent under the one case is spent under the other,
/// as far as they are of one algorithm. That is how limits go by the hour or by the load, without a
/// fresh budget whenever the case changes. A place is a limit's name, or its period where it has none:
/// it is then called what the limit of the last case is called that has this period, `60/minute` above,
/// or after the name that is given to all of them:
///
/// ```
/// # use tollgate_core::{Claim, Ip, Limit, when};
/// let paid = Claim("plan").equals("paid");
/// let rule = when(paid, [Limit::per_second(50), Limit::per_day(100_000)])
///     .otherwise([Limit::per_second(5), Limit::per_day(1_000)])
///     .named("api") // `api/second` and `api/day`
///     .by(Claim("customer"));
/// ```
///
/// For limits that are to be counted apart, use rules of their own, with
/// [`By::when`](crate::By::when).
#[derive(Clone)]
pub struct Cases<C> {
    conditions: C,
    /// As they were given, for each condition and for none.
    given: Vec<Limits>,
    /// The same, made to share rows.
    limits: Vec<Limits>,
}

impl<C> Cases<Vec<C>> {
    /// As many cases as a file has, and the limits that hold where no condition does.
    ///
    /// # Errors
    ///
    /// When two limits of one case are at the same place, or one cannot be named.
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
    /// Where [`try_named`](Self::try_named) returns an error.
    #[must_use]
    #[track_caller]
    pub fn named(self, name: &str) -> Self {
        self.try_named(name).unwrap_or_else(|error| panic!("{error}"))
    }

    /// [`named`](Self::named) for names from configuration.
    ///
    /// # Errors
    ///
    /// When the name cannot be a limit's, or two limits of one case would share one.
    pub fn try_named(self, name: &str) -> Result<Self, LimitError> {
        let limits = placed(&self.given, |limit| format!("{name}/{}", limit.place()))?;
        Ok(Self { limits, ..self })
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
        let case = self.conditions.first(view).and_then(|case| self.limits.get(case));
        let mut limits = case.or(self.limits.last()).into_iter().flat_map(Limits::iter);
        limits.try_for_each(each)
    }
}

impl<C> KnownLimits for Cases<C> {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.limits.iter().flat_map(Limits::iter).for_each(each);
    }
}

impl<C> fmt::Debug for Cases<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cases").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Cases that do not yet say what holds otherwise; see [`when`].
#[derive(Clone)]
pub struct CasesBuilder<C> {
    conditions: C,
    limits: Vec<Limits>,
}

impl<C> CasesBuilder<C> {
    /// The limits where `condition` holds, and none before it.
    #[must_use]
    pub fn or<D>(mut self, condition: D, limits: impl Into<Limits>) -> CasesBuilder<(C, D)> {
        self.limits.push(limits.into());
        CasesBuilder { conditions: (self.conditions, condition), limits: self.limits }
    }

    /// The limits where no condition holds.
    ///
    /// # Panics
    ///
    /// Where [`try_otherwise`](Self::try_otherwise) returns an error.
    #[track_caller]
    pub fn otherwise(self, limits: impl Into<Limits>) -> Cases<C> {
        self.try_otherwise(limits).unwrap_or_else(|error| panic!("{error}"))
    }

    /// [`otherwise`](Self::otherwise) for limits from configuration.
    ///
    /// # Errors
    ///
    /// When two limits of one case are at the same place, or one cannot be named.
    pub fn try_otherwise(self, limits: impl Into<Limits>) -> Result<Cases<C>, LimitError> {
        let Self { conditions, limits: mut given } = self;
        given.push(limits.into());
        let limits = placed(&given, |limit| name_at_place(&given, limit))?;
        Ok(Cases { conditions, given, limits })
    }
}

impl<C> fmt::Debug for CasesBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CasesBuilder").field("limits", &self.limits).finish_non_exhaustive()
    }
}

fn placed(lists: &[Limits], name: impl Fn(&Limit) -> String) -> Result<Vec<Limits>, LimitError> {
    lists.iter().map(|limits| limits.placed(&name)).collect()
}

/// What the last limit of the same period is called; one without a name of its own first, since that
/// is the place of all that have none.
fn name_at_place(lists: &[Limits], limit: &Limit) -> String {
    let at_place = |limits: &'_ Limits| {
        let same = |other: &&Limit| other.period() == limit.period();
        let nameless = |other: &&Limit| same(other) && other.own_name().is_none();
        limits.iter().find(nameless).or_else(|| limits.iter().find(same)).copied()
    };
    lists.iter().rev().find_map(at_place).unwrap_or(*limit).name().to_string()
}

/// Conditions in order, of which the first that holds counts: what [`Cases`] are decided by.
pub trait Conditions<V: View> {
    /// Where the first one stands that holds.
    fn first(&self, view: &V) -> Option<usize>;

    /// How many there are.
    fn count(&self) -> usize;
}

impl<V: View, C: Condition<V>, const N: usize> Conditions<V> for [C; N] {
    fn first(&self, view: &V) -> Option<usize> {
        self.iter().position(|condition| condition.holds(view))
    }

    fn count(&self) -> usize {
        N
    }
}

impl<V: View, C: Condition<V>> Conditions<V> for Vec<C> {
    fn first(&self, view: &V) -> Option<usize> {
        self.iter().position(|condition| condition.holds(view))
    }

    fn count(&self) -> usize {
        self.len()
    }
}

/// Those before, and one more.
impl<V: View, B: Conditions<V>, C: Condition<V>> Conditions<V> for (B, C) {
    fn first(&self, view: &V) -> Option<usize> {
        let (before, last) = self;
        before.first(view).or_else(|| last.holds(view).then(|| before.count()))
    }

    fn count(&self) -> usize {
        self.0.count() + 1
    }
}

#[cfg(test)]
mod tests;
