//! Conditions of documents.

mod hours;
mod make;
mod targets;
mod wildcard;

use sluicegate_core::condition::{
    AnyOf, ChosenBy, Condition as CoreCondition, Equals, HostIs, MethodIs, PathMatches, Present,
    RouteIs, Values, Within,
};
use sluicegate_core::key::{Cookie, Missing, Query, View};
use sluicegate_core::{Claim, Header};

pub(super) use self::targets::add_to;
use super::context::Name;
use crate::absent::{GeoIn, Hours};
use crate::document::Wildcard;

/// Tests that must all hold, the cheapest first.
#[derive(Debug, Clone)]
pub(super) struct Condition(Vec<Test>);

/// One test. It uses the same conditions as code.
#[derive(Debug, Clone)]
enum Test {
    Method(MethodIs),
    Path(AnyOf<PathMatches>),
    Route(AnyOf<RouteIs>),
    Host(AnyOf<HostIs>),
    Header(Value<Header<Name>>),
    Query(Value<Query<Name>>),
    Cookie(Value<Cookie<Name>>),
    Claim(Value<Claim<Name>>),
    Network(Within),
    Hours(Hours),
    Geo(GeoIn),
    Wildcard(Wildcard),
    Not(Condition),
    Any(AnyOf<Condition>),
}

/// The expected value of a header, cookie, query parameter or claim.
#[derive(Debug, Clone)]
enum Value<S> {
    Present(Present<S>),
    Absent(Present<S>),
    Equal(AnyOf<Equals<S>>),
}

impl<V: View> CoreCondition<V> for Condition {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        for test in &self.0 {
            if !test.holds(view)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        for test in &self.0 {
            if !test.surely_holds(view)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn chosen_by(&self) -> ChosenBy {
        self.who_chooses()
    }
}

impl Condition {
    /// Who chooses whether it holds: the client, if it chooses one part.
    pub(super) fn who_chooses(&self) -> ChosenBy {
        self.0.iter().map(Test::who_chooses).fold(ChosenBy::Server, ChosenBy::and)
    }
}

impl Test {
    fn who_chooses(&self) -> ChosenBy {
        match self {
            Self::Method(_)
            | Self::Path(_)
            | Self::Route(_)
            | Self::Host(_)
            | Self::Header(_)
            | Self::Query(_)
            | Self::Cookie(_)
            | Self::Wildcard(_) => ChosenBy::Client,
            Self::Claim(_) | Self::Network(_) | Self::Hours(_) | Self::Geo(_) => ChosenBy::Server,
            Self::Not(condition) => condition.who_chooses(),
            Self::Any(AnyOf(conditions)) => {
                let choices = conditions.iter().map(Condition::who_chooses);
                choices.fold(ChosenBy::Server, ChosenBy::and)
            }
        }
    }
}

impl<V: View> CoreCondition<V> for Test {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        match self {
            Self::Method(test) => test.holds(view),
            Self::Path(test) => test.holds(view),
            Self::Route(test) => test.holds(view),
            Self::Host(test) => test.holds(view),
            Self::Header(test) => test.holds(view),
            Self::Query(test) => test.holds(view),
            Self::Cookie(test) => test.holds(view),
            Self::Claim(test) => test.holds(view),
            Self::Network(test) => test.holds(view),
            Self::Hours(test) => test.holds(view),
            Self::Geo(test) => test.holds(view),
            Self::Wildcard(test) => test.holds(view),
            Self::Not(condition) => Ok(!condition.surely_holds(view)?),
            Self::Any(test) => test.holds(view),
        }
    }

    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        match self {
            Self::Method(test) => test.surely_holds(view),
            Self::Path(test) => test.surely_holds(view),
            Self::Route(test) => test.surely_holds(view),
            Self::Not(condition) => Ok(!condition.holds(view)?),
            Self::Any(test) => test.surely_holds(view),
            // The result of these is always certain.
            Self::Host(_)
            | Self::Header(_)
            | Self::Query(_)
            | Self::Cookie(_)
            | Self::Claim(_)
            | Self::Network(_)
            | Self::Hours(_)
            | Self::Geo(_)
            | Self::Wildcard(_) => self.holds(view),
        }
    }

    fn chosen_by(&self) -> ChosenBy {
        self.who_chooses()
    }
}

impl<V: View, S: Values<V>> CoreCondition<V> for Value<S> {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        match self {
            Self::Present(present) => present.holds(view),
            Self::Absent(present) => Ok(!present.holds(view)?),
            Self::Equal(equal) => equal.holds(view),
        }
    }

    fn chosen_by(&self) -> ChosenBy {
        match self {
            Self::Present(present) | Self::Absent(present) => present.chosen_by(),
            Self::Equal(equal) => equal.chosen_by(),
        }
    }
}
