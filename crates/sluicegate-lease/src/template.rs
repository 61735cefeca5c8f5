//! What is configured for resources: how much there is, how it is divided, and for how long.

use std::collections::HashSet;
use std::time::Duration;

use sluicegate_core::adapter::ConfigError;
use wildmatch::WildMatch;

use crate::amount::Amount;
use crate::fair::Band;

/// How a capacity is divided among its clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// Everyone gets what is wanted, whatever the capacity is.
    None,
    /// Everyone gets what is wanted, at most the capacity each.
    Static,
    /// An equal share by weight, and of what is left over a part in proportion to what is wanted beyond it.
    ProportionalShare,
    /// Weighted max-min fairness.
    #[default]
    FairShare,
}

/// Where the capacity of a resource comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// This server has it: it is the root.
    Own(Amount),
    /// This server leases it from a parent.
    Parent,
}

/// The configuration of the resources whose names match a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pub(crate) pattern: Box<str>,
    pub(crate) source: Source,
    pub(crate) algorithm: Algorithm,
    pub(crate) lease: Duration,
    pub(crate) refresh: Duration,
    pub(crate) learning: Option<Duration>,
    pub(crate) safe: Option<Amount>,
    pub(crate) floors: Vec<(Band, Amount)>,
    pub(crate) description: Box<str>,
}

impl Template {
    /// The resources that match `pattern` have this capacity, divided by fair shares.
    ///
    /// In a pattern, `*` stands for any number of characters, and `?` for one. Leases last 60 seconds and are refreshed
    /// every 5 seconds, unless told otherwise.
    pub fn new(pattern: impl Into<Box<str>>, capacity: Amount) -> Self {
        Self::from_source(pattern.into(), Source::Own(capacity))
    }

    /// Like [`new`](Self::new), with a capacity that this server leases from a parent.
    pub fn from_parent(pattern: impl Into<Box<str>>) -> Self {
        Self::from_source(pattern.into(), Source::Parent)
    }

    fn from_source(pattern: Box<str>, source: Source) -> Self {
        Self {
            pattern,
            source,
            algorithm: Algorithm::default(),
            lease: Duration::from_secs(60),
            refresh: Duration::from_secs(5),
            learning: None,
            safe: None,
            floors: Vec::new(),
            description: Box::default(),
        }
    }

    /// Sets how the capacity is divided.
    #[must_use]
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Sets how long a grant lasts without being refreshed. Whole milliseconds count.
    ///
    /// Before you shorten it, set [`learning`](Self::learning) to the old one, and keep that for as long: a new master
    /// cannot know that grants of the last one were longer.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets how long clients wait until they ask again. Whole milliseconds count.
    #[must_use]
    pub fn refresh(mut self, refresh: Duration) -> Self {
        self.refresh = refresh;
        self
    }

    /// Sets how long a new master learns at the most, if it does not know who holds a lease. It is at least the lease,
    /// which is the default: after that time, every grant of its predecessor has ended.
    #[must_use]
    pub fn learning(mut self, learning: Duration) -> Self {
        self.learning = Some(learning);
        self
    }

    /// Sets what each client may use when it has lost its lease and is told to fall back on a safe capacity. Without
    /// it, that is the capacity divided by the number of clients.
    #[must_use]
    pub fn safe(mut self, safe: Amount) -> Self {
        self.safe = Some(safe);
        self
    }

    /// Keeps this capacity for a band, even when the bands before it want everything.
    #[must_use]
    pub fn floor(mut self, band: Band, floor: Amount) -> Self {
        self.floors.push((band, floor));
        self
    }

    /// Sets a description for people.
    #[must_use]
    pub fn description(mut self, description: impl Into<Box<str>>) -> Self {
        self.description = description.into();
        self
    }

    /// Whether nobody ever gets anything.
    pub(crate) fn is_nothing(&self) -> bool {
        self.source == Source::Own(Amount::ZERO) && self.algorithm != Algorithm::None
    }

    pub(crate) fn floor_of(&self, band: Band) -> Amount {
        self.floors
            .iter()
            .find(|(other, _)| *other == band)
            .map_or(Amount::ZERO, |(_, floor)| *floor)
    }

    /// Why it cannot work.
    fn problem(&self) -> Option<&'static str> {
        let floors: Amount = self.floors.iter().map(|(_, floor)| *floor).sum();
        let bands: HashSet<_> = self.floors.iter().map(|(band, _)| band).collect();
        let is_divided =
            matches!(self.algorithm, Algorithm::FairShare | Algorithm::ProportionalShare);
        let is_long = |learning| learning < self.lease || learning > MAX_LEASE;
        Some(if self.pattern.is_empty() {
            "needs a pattern, such as `db-*`"
        } else if self.lease < MIN_LEASE || self.lease > MAX_LEASE {
            "needs a lease of 100 milliseconds to one day"
        } else if self.refresh < MIN_REFRESH || self.refresh > self.lease / 2 {
            "needs a refresh interval of at least 10 milliseconds and at most half of the lease"
        } else if self.learning.is_some_and(is_long) {
            "has a learning time that is shorter than the lease, or longer than one day: grants of the last master could \
             still be in use"
        } else if bands.len() < self.floors.len() {
            "has two floors for one band"
        } else if matches!(self.source, Source::Own(capacity) if floors > capacity) {
            "keeps more for its floors than there is"
        } else if !is_divided && !self.floors.is_empty() {
            "has floors, but its algorithm does not divide the capacity"
        } else if !is_divided && self.source == Source::Parent {
            "leases its capacity from a parent, so its algorithm has to divide it: a fair or proportional share"
        } else {
            return None;
        })
    }
}

/// Shorter leases would be lost to latency.
const MIN_LEASE: Duration = Duration::from_millis(100);
/// What a dead client held is lost for so long.
const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);
/// A client that refreshes more often is a load of its own.
const MIN_REFRESH: Duration = Duration::from_millis(10);

/// The templates of a server. A resource uses the one whose pattern is its name, or else the first that matches.
#[derive(Debug, Clone)]
pub struct Templates(Vec<(WildMatch, Template)>);

impl Templates {
    /// Checks templates. The last one has to match every name: `*`.
    ///
    /// # Errors
    /// Names the template that cannot work, and why.
    pub fn new(templates: impl IntoIterator<Item = Template>) -> Result<Self, ConfigError> {
        let templates: Vec<_> = templates.into_iter().collect();
        let error = |pattern: &str, problem| {
            Err(ConfigError::new(format!("the template `{pattern}` {problem}")))
        };
        let mut patterns = HashSet::new();
        for (at, template) in templates.iter().enumerate() {
            let pattern = &*template.pattern;
            let is_last = at + 1 == templates.len();
            if let Some(problem) = template.problem() {
                return error(pattern, problem);
            }
            if !patterns.insert(pattern) {
                return error(pattern, "is given twice");
            }
            if !is_last && pattern == "*" {
                return error(pattern, "matches every name, so it has to be the last");
            }
        }
        if templates.last().is_none_or(|last| &*last.pattern != "*") {
            return error("*", "is missing: the last template has to match every name");
        }
        Ok(Self(templates.into_iter().map(|one| (WildMatch::new(&one.pattern), one)).collect()))
    }

    /// The template of a resource.
    pub(crate) fn of(&self, resource: &str) -> &Template {
        let exact = self.0.iter().find(|(_, template)| &*template.pattern == resource);
        let found = exact.or_else(|| self.0.iter().find(|(pattern, _)| pattern.matches(resource)));
        &found.expect("the last template matches every name").1
    }
}
