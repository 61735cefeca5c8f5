//! What a reload has changed, and how it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use sluicegate_core::Limit;
use sluicegate_core::rule::KnownLimits;

use crate::compile::Policies;
use crate::document::{Document, Rule};
use crate::source::PolicyError;

/// The difference between the new policies and the old ones.
///
/// Rules are compared by name, so a renamed rule counts as removed and added. Policies that were made in code have
/// limits but no rules to compare.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Changes {
    /// The names of new rules.
    pub added: Vec<String>,
    /// The names of removed rules.
    pub removed: Vec<String>,
    /// The names of changed rules.
    pub changed: Vec<String>,
    /// The names of those with another key. What was spent by the old key is not counted.
    pub rekeyed: Vec<String>,
    /// Changed limits.
    pub limits: Vec<LimitChange>,
    /// Other changed settings, by their name in the document, such as `tiers` and `customers`.
    pub settings: Vec<&'static str>,
    /// What changed besides rules in a [format](crate::Format) of your own, in words.
    pub others: Vec<String>,
}

/// A changed limit, or several limits with one name, such as those of a rule's cases.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LimitChange {
    /// The name.
    pub name: String,
    /// The old limits.
    pub old: Vec<Limit>,
    /// The new limits.
    pub new: Vec<Limit>,
}

/// Policies, and the document that they were compiled from.
pub(crate) type Version<'a> = (Option<&'a Document>, &'a Policies);

impl LimitChange {
    /// Whether a limit has a period that none of the old limits had.
    pub fn has_other_period(&self) -> bool {
        let period = |limit: &Limit| limit.period();
        self.new.iter().any(|new| !self.old.iter().any(|old| period(old) == period(new)))
    }

    /// Whether one of the new limits starts from zero in place of an old one, because its period, algorithm or case shares
    /// no budget with the old ones. A limit that is only added takes nothing away.
    pub fn begins_afresh(&self) -> bool {
        let lacks =
            |limits: &[Limit], limit: &Limit| limits.iter().all(|one| one.id() != limit.id());
        self.new.iter().any(|new| lacks(&self.old, new))
            && self.old.iter().any(|old| lacks(&self.new, old))
    }
}

impl Changes {
    pub(crate) fn between((old, from): Version<'_>, (new, to): Version<'_>) -> Self {
        let mut changes = Self { limits: limits(from, to), ..Self::default() };
        if let (Some(old), Some(new)) = (old, new) {
            changes.rules(old, new);
            changes.settings = settings(old, new);
            changes.others = others(old, new);
        }
        changes
    }

    /// The difference between the policies of two documents.
    pub fn of(old: (&Document, &Policies), new: (&Document, &Policies)) -> Self {
        Self::between((Some(old.0), old.1), (Some(new.0), new.1))
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn rules(&mut self, old: &Document, new: &Document) {
        let (old, new) = (by_name(old), by_name(new));
        for (name, rule) in &new {
            match old.get(name) {
                None => self.added.push((*name).to_owned()),
                Some(before) if before != rule => {
                    self.changed.push((*name).to_owned());
                    if before.key != rule.key {
                        self.rekeyed.push((*name).to_owned());
                    }
                }
                Some(_) => {}
            }
        }
        let gone = old.keys().filter(|name| !new.contains_key(*name));
        self.removed = gone.map(|name| (*name).to_owned()).collect();
    }
}

fn by_name(document: &Document) -> BTreeMap<&str, &Rule> {
    document.rules.iter().map(|rule| (rule.name.as_str(), rule)).collect()
}

fn settings(old: &Document, new: &Document) -> Vec<&'static str> {
    // Field by field, so that the compiler asks about a new setting.
    let Document {
        schema: _,
        time_zone,
        proxies,
        nat64,
        geoip,
        hold_until,
        dialect,
        throttle,
        listen,
        upstream,
        tiers,
        customers,
        rules: _,
        others: _,
        source: _,
    } = new;
    let settings = [
        ("time_zone", old.time_zone != *time_zone),
        ("proxies", old.proxies != *proxies),
        ("nat64", old.nat64 != *nat64),
        ("geoip", old.geoip != *geoip),
        ("hold_until", old.hold_until.unwrap_or_default() != hold_until.unwrap_or_default()),
        ("dialect", old.dialect != *dialect),
        ("listen", old.listen != *listen),
        ("upstream", old.upstream != *upstream),
        ("throttle", old.throttle != *throttle),
        ("tiers", old.tiers != *tiers),
        ("customers", old.customers != *customers),
    ];
    settings.into_iter().filter(|(_, changed)| *changed).map(|(name, _)| name).collect()
}

fn others(old: &Document, new: &Document) -> Vec<String> {
    let (old, new) = (&old.others, &new.others);
    let mut others = Vec::new();
    for (name, words) in new {
        match old.get(name) {
            None => others.push(format!("added {name}: {words}")),
            Some(before) if before != words => others.push(format!("{name}: {before} -> {words}")),
            Some(_) => {}
        }
    }
    others.extend(
        old.keys().filter(|name| !new.contains_key(*name)).map(|name| format!("removed {name}")),
    );
    others
}

/// The limits with names in both, if they differ.
fn limits(from: &Policies, to: &Policies) -> Vec<LimitChange> {
    let (mut old, new) = (named(from), named(to));
    let changed = new.into_iter().filter_map(|(name, new)| {
        let old = old.remove(&name).filter(|old| *old != new)?;
        Some(LimitChange { name, old, new })
    });
    changed.collect()
}

fn named(policies: &Policies) -> BTreeMap<String, Vec<Limit>> {
    let mut named: BTreeMap<String, Vec<Limit>> = BTreeMap::new();
    policies.each_limit(&mut |limit| {
        let limits = named.entry(limit.name().to_string()).or_default();
        if !limits.contains(limit) {
            limits.push(*limit);
        }
    });
    named
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lists = Vec::new();
        let with_limits: BTreeSet<_> =
            self.limits.iter().map(|limit| limit.name.as_str()).collect();
        for (what, names) in [("added", &self.added), ("removed", &self.removed)] {
            if !names.is_empty() {
                lists.push(format!("{what} {}", names.join(", ")));
            }
        }
        let changed = self.changed.iter().map(String::as_str);
        let is_told = |name: &str| {
            with_limits.contains(name) || self.rekeyed.iter().any(|rekeyed| rekeyed == name)
        };
        let changed: Vec<_> = changed.filter(|name| !is_told(name)).collect();
        if !changed.is_empty() {
            lists.push(format!("changed {}", changed.join(", ")));
        }
        for name in &self.rekeyed {
            lists.push(format!("changed {name} (another key: what was spent is not counted)"));
        }
        lists.extend(self.limits.iter().map(LimitChange::to_string));
        if !self.settings.is_empty() {
            lists.push(format!("changed {}", self.settings.join(", ")));
        }
        lists.extend(self.others.iter().cloned());
        f.write_str(if lists.is_empty() { "nothing changed" } else { "" })?;
        f.write_str(&lists.join("; "))
    }
}

impl fmt::Display for LimitChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |limits: &[Limit]| limits.iter().map(Limit::to_string).collect::<Vec<_>>().join(" or ");
        write!(f, "{}: {} -> {}", self.name, list(&self.old), list(&self.new))?;
        f.write_str(match (self.has_other_period(), self.begins_afresh()) {
            (true, true) => " (another period: what was spent is not counted)",
            (true, false) => " (another period)",
            (false, true) => " (what was spent is not counted)",
            (false, false) => "",
        })
    }
}

/// The result of a change.
///
/// With the feature `tracing`, each is a `tracing` event as well.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// New policies are in force.
    Reloaded(Changes),
    /// The file is not valid or cannot be read. The old policies stay in force.
    Refused(PolicyError),
    /// The file is missing. The old policies stay in force.
    Missing(PathBuf),
    /// A directory cannot be watched, for this reason. Another attempt follows each second.
    Unwatched(String),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reloaded(changes) => write!(f, "policies reloaded: {changes}"),
            Self::Refused(problems) => write!(f, "policies not reloaded:\n{problems}"),
            Self::Missing(path) => {
                write!(f, "policies not reloaded: there is no file {}", path.display())
            }
            Self::Unwatched(reason) => write!(f, "policies not watched: {reason}"),
        }
    }
}

impl Event {
    /// Writes the event to the log. `is_end` says that policies are in force again after a file that was refused or
    /// missing. The end has the level of the beginning.
    pub(super) fn log(&self, is_end: bool) {
        #[cfg(feature = "tracing")]
        match self {
            Self::Reloaded(_) if !is_end => tracing::info!("{self}"),
            _ => tracing::warn!("{self}"),
        }
        #[cfg(not(feature = "tracing"))]
        let _ = is_end;
    }
}
