//! Conditions of documents.

use std::collections::HashMap;

use sluicegate_core::adapter::{Index, Target};
use sluicegate_core::condition::{
    AnyOf, ChosenBy, Condition as CoreCondition, Equals, HostIs, MethodIs, PathMatches, Present,
    RouteIs, Values, Within,
};
use sluicegate_core::key::{Cookie, Host, Missing, Query, View};
use sluicegate_core::{Claim, Header};

use super::context::{Context, Name};
use crate::absent::{self, GeoIn, Hours};
use crate::document::{self, Key, Weekday, Wildcard};
use crate::source::DocumentPath;

mod make;
mod never;

/// What is wrong with one of [`unreached`].
pub(super) const UNREACHED: &str =
    "this is never reached: the same condition comes earlier, and the first that holds decides";

/// The numbers of those conditions, of which the first that holds decides, that were there before. Each comes with its
/// words, which find the few that may be equal.
pub(super) fn unreached<T: PartialEq>(all: impl Iterator<Item = (String, T)>) -> Vec<usize> {
    let mut earlier = HashMap::<String, Vec<T>>::new();
    let is_there = |(in_words, condition)| {
        let alike = earlier.entry(in_words).or_default();
        let is_there = alike.contains(&condition);
        alike.push(condition);
        is_there
    };
    let found = all.map(is_there).enumerate();
    found.filter(|(_, is_there)| *is_there).map(|(i, _)| i).collect()
}

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
            // A path that matches in one of its readings only may be an exception, or not: it counts as none.
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
            Self::Header(test) => test.surely_holds(view),
            Self::Query(test) => test.surely_holds(view),
            Self::Cookie(test) => test.surely_holds(view),
            Self::Wildcard(test) => test.surely_holds(view),
            // The result of these is always certain.
            Self::Host(_) | Self::Claim(_) | Self::Network(_) | Self::Hours(_) | Self::Geo(_) => {
                self.holds(view)
            }
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
            Self::Absent(present) => Ok(!present.surely_holds(view)?),
            Self::Equal(equal) => equal.holds(view),
        }
    }

    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        match self {
            Self::Present(present) => present.surely_holds(view),
            Self::Absent(present) => Ok(!present.holds(view)?),
            Self::Equal(equal) => equal.surely_holds(view),
        }
    }

    fn chosen_by(&self) -> ChosenBy {
        match self {
            Self::Present(present) | Self::Absent(present) => present.chosen_by(),
            Self::Equal(equal) => equal.chosen_by(),
        }
    }
}

const TWO: &str = "expected two times, a start and an end, such as [\"22:00\", \"06:00\"]";

/// Hours by the environment's clock, in their own time zone or that of the document.
fn hours(spec: &document::Hours, path: &DocumentPath<'_>, context: &Context<'_>) -> Option<Hours> {
    #[cfg(not(feature = "hours"))]
    context.report(path, absent::needs("hours"));
    let mut hours = match &spec.zone {
        Some(zone) => context.check(&path.name("zone"), Hours::in_zone(zone)),
        None => context.hours.clone(),
    };
    if let Some(between) = &spec.between {
        let path = path.name("between");
        let [from, to] = between.as_slice() else {
            return context.refuse(&path, TWO);
        };
        hours = hours.and_then(|hours| context.check(&path, hours.between(from, to)));
    }
    if spec.between.is_some() {
        context.not_empty(&path.name("on"));
    }
    if spec.between.is_none() && spec.on.is_empty() {
        context.report(path, "the hours are empty: expected `between`, `on` or both");
    }
    let mut hours = hours?;
    if !spec.on.is_empty() {
        hours = hours.on(spec.on.iter().copied().map(day));
    }
    Some(match &context.environment.clock {
        Some(clock) => hours.clock(clock.clone()),
        None => hours,
    })
}

fn day(day: Weekday) -> absent::Weekday {
    match day {
        Weekday::Mon => absent::Weekday::Monday,
        Weekday::Tue => absent::Weekday::Tuesday,
        Weekday::Wed => absent::Weekday::Wednesday,
        Weekday::Thu => absent::Weekday::Thursday,
        Weekday::Fri => absent::Weekday::Friday,
        Weekday::Sat => absent::Weekday::Saturday,
        Weekday::Sun => absent::Weekday::Sunday,
    }
}

impl<V: View> CoreCondition<V> for Wildcard {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        self.compare(view, false)
    }

    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        self.compare(view, true)
    }
}

impl Wildcard {
    fn compare<V: View>(&self, view: &V, surely: bool) -> Result<bool, Missing> {
        match &self.key {
            Key::Header(name) => self.values(view, &Header(name), surely),
            Key::Cookie(name) => self.values(view, &Cookie(name), surely),
            Key::Query(name) => self.values(view, &Query(name), surely),
            Key::Claim(name) => self.values(view, &Claim(name), surely),
            Key::Method => Ok(self.fits(view.method().as_bytes())),
            Key::Path => Ok(self.fits(view.path().as_bytes())),
            Key::Route => Ok(view.route().is_some_and(|route| self.fits(route.as_bytes()))),
            Key::Host => self.values(view, &Host, surely),
            // The reader of a format compares these by other conditions.
            Key::Ip
            | Key::Global
            | Key::Country
            | Key::Region
            | Key::Const(_)
            | Key::First(_)
            | Key::Optional(_)
            | Key::All(_) => Ok(false),
        }
    }

    fn values<V: View>(
        &self,
        view: &V,
        values: &impl Values<V>,
        surely: bool,
    ) -> Result<bool, Missing> {
        let is_any = match surely {
            true => values.only(view, |value| self.fits(value))?,
            false => values.any(view, |value| self.fits(value))?,
        };
        Ok(is_any && !(self.every && values.any(view, |value| !self.fits(value))?))
    }

    /// An empty text counts as missing, as for keys.
    fn fits(&self, text: &[u8]) -> bool {
        !text.is_empty() && self.patterns.iter().any(|pattern| Self::matches(pattern, text))
    }
}

/// The most combinations of a host and a path by which one condition is found. With more, its paths are enough.
const MOST_COMBINATIONS: usize = 64;

/// Adds a condition to `index`. Without one, all requests are meant.
pub(super) fn add_to(index: &mut Index, condition: Option<&Condition>) {
    match condition {
        Some(condition) => index.add(&condition.targets()),
        None => index.add(&[Target::default()]),
    }
}

impl Condition {
    /// The hosts and paths for which it can hold.
    fn targets(&self) -> Vec<Target<'_>> {
        let hosts = self.0.iter().find_map(|test| match test {
            Test::Host(AnyOf(hosts)) => Some(hosts.as_slice()),
            _ => None,
        });
        let paths = self.0.iter().find_map(|test| match test {
            Test::Path(AnyOf(paths)) => Some(paths.as_slice()),
            _ => None,
        });
        let at_host = |host| Target { host: Some(host), path: None };
        let at_path = |path| Target { host: None, path: Some(path) };
        match (hosts, paths) {
            // The index finds a rule under every pair of a host and a path of it. Their number is a product, which a
            // short file could make huge. Beyond the bound, the paths alone find the rule. That is always allowed: the
            // index only has to name every rule that may apply, and the condition decides.
            (Some(hosts), Some(paths)) if hosts.len() * paths.len() <= MOST_COMBINATIONS => {
                let at_both = |host| {
                    paths.iter().map(move |path| Target { path: Some(path), ..at_host(host) })
                };
                hosts.iter().flat_map(at_both).collect()
            }
            (_, Some(paths)) => paths.iter().map(at_path).collect(),
            (Some(hosts), None) => hosts.iter().map(at_host).collect(),
            // A list of alternatives is found by what its parts name, if each of them names something.
            (None, None) => match self.only_any() {
                Some(any) => any.iter().flat_map(Self::targets).collect(),
                None => vec![Target::default()],
            },
        }
    }

    /// The conditions of which one has to hold, if nothing that comes before them can fail.
    fn only_any(&self) -> Option<&[Self]> {
        match self.0.as_slice() {
            // Tests run in this order, and one that comes first may fail, for example for want of a claim. A request
            // that the index skips would miss that failure, and be admitted instead of refused. A method cannot fail.
            [Test::Any(AnyOf(any))] | [Test::Method(_), Test::Any(AnyOf(any))] => Some(any),
            _ => None,
        }
    }
}
