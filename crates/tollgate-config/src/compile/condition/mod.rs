//! Conditions that a document can ask for.

mod hours;
mod make;

use tollgate_core::{
    AnyOf, Claim, Condition as CoreCondition, Cookie, Equals, Header, HostIs, Hours, InPlaces,
    MethodIs, Missing, PathMatches, Present, Query, RouteIs, Values, View, Within,
};

use super::key::Name;
use crate::envoy::Like;

/// All that has to hold, the cheapest first.
#[derive(Debug, Clone)]
pub(super) struct Condition(Vec<Test>);

/// One thing that has to hold, made of the same conditions that code uses.
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
    Places(InPlaces),
    Like(Like),
    Not(Condition),
    Any(AnyOf<Condition>),
}

/// What is expected of something that has a name.
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
            Self::Places(test) => test.holds(view),
            Self::Like(test) => test.holds(view),
            Self::Not(condition) => Ok(!condition.holds(view)?),
            Self::Any(test) => test.holds(view),
        }
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
}
