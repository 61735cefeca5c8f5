//! The limits that apply to a request.

use std::collections::HashMap;
use std::fmt;

use sluicegate_core::Limit;
use sluicegate_core::adapter::{Index, charge_together};
use sluicegate_core::condition::{ChosenBy, Condition as CoreCondition, InFlight};
use sluicegate_core::key::{Missing, View};
use sluicegate_core::limit::Limits;
use sluicegate_core::rule::{ByTier, KnownLimits, LimitsFor};

use super::Context;
use super::condition::{self, Condition, UNREACHED, unreached};
use super::key::Text;
use super::limit::{Budget, Names};
use super::tiers::{self, LimitGroup};
use crate::absent::Cpu;
use crate::document;
use crate::environment::CapacityFn;
use crate::source::DocumentPath;
use crate::words::InWords;

const BOTH: &str = "`tiers` sets the limits of every request, with `default` for unknown ones: expected no \
                    `limits` beside it";

/// Every list of limits of a rule.
fn lists<'a>(
    spec: &'a document::Rule,
    context: &Context<'a>,
) -> impl Iterator<Item = &'a [document::Limit]> {
    let cases = spec.cases.iter().map(|case| case.limits.as_slice());
    let tiers = spec.tiers.iter().flat_map(|_| context.document.tiers.values());
    cases.chain([spec.limits.as_slice()]).chain(tiers.map(|tier| tier.limits.as_slice()))
}

/// The limits of a rule: the same for every request, by tier, or by case.
#[derive(Debug)]
pub(super) enum Amounts {
    Always(Limits),
    Tiers(Box<ByTier<Text>>, Vec<LimitGroup>),
    Cases(Cases),
}

/// Other limits for some requests. The first case that applies is used, together with those that may apply and come before
/// it.
#[derive(Debug)]
pub(super) struct Cases {
    cases: Vec<(Case, Limits)>,
    /// Finds the cases that may apply to a request.
    index: Index,
    /// The cases in words.
    words: Vec<String>,
    otherwise: Box<Amounts>,
}

#[derive(Debug)]
struct Case {
    when: Option<Condition>,
    load: Option<Load>,
    /// Whether it has a budget of its own.
    is_apart: bool,
}

impl Amounts {
    pub(super) fn new(
        spec: &document::Rule,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        // With any other name, the rest of the rule can be checked. The wrong one was reported.
        let name = context.rule_name(&spec.name, &path.name("name")).unwrap_or("rule");
        // A refusal would keep the other rules from charging the request, so shadow rules have shadow limits.
        let on_trial = spec.reject == Some(document::Reject::Shadow);
        // Tiers and cases have other numbers for what was spent.
        let is_carried = context.carries || spec.tiers.is_some() || !spec.cases.is_empty();
        let names = Names::new(name, lists(spec, context), on_trial, is_carried);
        let otherwise = match &spec.tiers {
            None => {
                let path = path.name("limits");
                names.give(&spec.limits, Budget::Shared, &path, context).map(Self::Always)
            }
            Some(tiers) => {
                if !spec.limits.is_empty() {
                    context.report(&path.name("limits"), BOTH);
                }
                let path = path.name("tiers");
                let chosen = tiers::by_tier(tiers, &names, &path, context);
                chosen.map(|(tiers, groups)| Self::Tiers(Box::new(tiers), groups))
            }
        };
        let cases = Self::cases(spec, &names, &path.name("cases"), context);
        match cases.as_slice() {
            [] => otherwise,
            _ => {
                let words = spec.cases.iter().map(|case| InWords(case).to_string()).collect();
                let mut index = Index::default();
                cases
                    .iter()
                    .for_each(|(case, _)| condition::add_to(&mut index, case.when.as_ref()));
                Some(Self::Cases(Cases { cases, index, words, otherwise: Box::new(otherwise?) }))
            }
        }
    }

    /// All limits, for reports.
    pub(super) fn groups(&self) -> Vec<LimitGroup> {
        match self {
            Self::Always(limits) => {
                vec![LimitGroup {
                    of: String::new(),
                    limits: Some(limits.clone()),
                    is_apart: false,
                }]
            }
            Self::Tiers(_, groups) => groups.clone(),
            Self::Cases(Cases { cases, words, otherwise, .. }) => {
                let cases = cases.iter().zip(words).map(|((case, limits), of)| LimitGroup {
                    of: of.clone(),
                    limits: Some(limits.clone()),
                    is_apart: case.is_apart,
                });
                let otherwise =
                    otherwise.groups().into_iter().map(|group| match group.of.as_str() {
                        "" => LimitGroup { of: "otherwise".to_owned(), ..group },
                        _ => group,
                    });
                cases.chain(otherwise).collect()
            }
        }
    }

    fn cases(
        spec: &document::Rule,
        names: &Names<'_>,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Vec<(Case, Limits)> {
        let mut rows = HashMap::new();
        let all = spec.cases.iter();
        let all = all.map(|case| (InWords(case).to_string(), (&case.when, &case.load)));
        for i in unreached(all) {
            context.report(&path.index(i), UNREACHED);
        }
        let case = |(i, spec): (usize, &document::Case)| {
            let path = path.index(i);
            let case = Case::new(spec, &path, context);
            let row = row(spec, &mut rows, &path, context);
            let is_apart = case.as_ref().is_some_and(|case| case.is_apart);
            let budget = if is_apart { Budget::Own(&row) } else { Budget::Shared };
            let limits = names.give(&spec.limits, budget, &path.name("limits"), context);
            case.zip(limits)
        };
        spec.cases.iter().enumerate().filter_map(case).collect()
    }
}

/// Identifies the budget of a case by its name, or by its conditions; not by its position. `rows` counts the
/// identifiers of the earlier cases.
fn row(
    spec: &document::Case,
    rows: &mut HashMap<String, usize>,
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) -> String {
    let mut row = match &spec.name {
        Some(name) => format!("case {name}"),
        None => InWords(spec).to_string(),
    };
    let earlier = rows.entry(row.clone()).or_insert(0);
    if *earlier > 0 {
        // Two equal cases without a name are an error of their own.
        if let Some(name) = &spec.name {
            let message = format!("another case is also called `{name}`, expected a unique name");
            context.report(&path.name("name"), message);
        }
        row = format!("{row} {earlier}");
    }
    *earlier += 1;
    row
}

impl Case {
    fn new(spec: &document::Case, path: &DocumentPath<'_>, context: &Context<'_>) -> Option<Self> {
        if spec.when.is_none() && spec.load.is_none() {
            context.report(path, "the case always applies, expected `when`, `while` or both");
        }
        let when = spec.when.as_ref();
        let when = when.map(|when| Condition::new(when, &path.name("when"), context));
        let load = match &spec.load {
            Some(load) => Some(Load::new(load, &path.name("while"), context)?),
            None => None,
        };
        let chosen_by = when.as_ref().map_or(ChosenBy::Server, Condition::who_chooses);
        let is_shared = spec.shared.unwrap_or(chosen_by == ChosenBy::Server);
        Some(Self { when, load, is_apart: !is_shared })
    }

    fn holds<V: View>(&self, view: &V) -> Result<bool, Missing> {
        let when = self.when.as_ref().map_or(Ok(true), |when| when.holds(view))?;
        Ok(when && self.load.as_ref().map_or(Ok(true), |load| load.holds(view))?)
    }

    /// Whether a case that holds surely does. The load is not asked again: it may have changed, and is always certain.
    fn is_sure<V: View>(&self, view: &V) -> Result<bool, Missing> {
        self.when.as_ref().map_or(Ok(true), |when| when.surely_holds(view))
    }
}

impl<V: View> LimitsFor<V> for Amounts {
    #[inline]
    fn only_one(&self) -> Option<&Limit> {
        match self {
            Self::Always(limits) => LimitsFor::<V>::only_one(limits),
            Self::Tiers(..) | Self::Cases(_) => None,
        }
    }

    fn each(
        &self,
        view: &V,
        each: &mut dyn FnMut(&Limit) -> Result<(), Missing>,
    ) -> Result<(), Missing> {
        match self {
            Self::Always(limits) => limits.each(view, each),
            Self::Tiers(tiers, _) => tiers.each(view, each),
            Self::Cases(Cases { cases, index, otherwise, .. }) => {
                let mut uncertain = Vec::<&dyn LimitsFor<V>>::new();
                for (case, limits) in index.candidates(view).map(|at| &cases[at]) {
                    if !case.holds(view)? {
                        continue;
                    }
                    if case.is_sure(view)? {
                        return charge_together(&uncertain, limits, view, each);
                    }
                    uncertain.push(limits);
                }
                charge_together(&uncertain, &**otherwise, view, each)
            }
        }
    }
}

impl KnownLimits for Amounts {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        match self {
            Self::Always(limits) => limits.each_limit(each),
            Self::Tiers(tiers, _) => tiers.each_limit(each),
            Self::Cases(Cases { cases, otherwise, .. }) => {
                cases.iter().for_each(|(_, limits)| limits.each_limit(&mut *each));
                otherwise.each_limit(each);
            }
        }
    }
}

/// A condition on the load of the service.
#[derive(Clone)]
pub(super) enum Load {
    Capacity(CapacityFn),
    InFlight(InFlight),
    Cpu(Cpu),
}

impl<V: View> CoreCondition<V> for Load {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        match self {
            Self::Capacity(has_capacity) => Ok(has_capacity()),
            Self::InFlight(load) => load.holds(view),
            Self::Cpu(load) => load.holds(view),
        }
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Server
    }
}

impl fmt::Debug for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity(_) => f.write_str("Capacity"),
            Self::InFlight(load) => load.fmt(f),
            Self::Cpu(load) => load.fmt(f),
        }
    }
}

impl Load {
    pub(super) fn new(
        spec: &document::Load,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        match (&spec.has_capacity, spec.in_flight, &spec.cpu) {
            (Some(name), None, None) => {
                let capacity = context.environment.named_capacity(name);
                context.check(&path.name("has_capacity"), capacity).map(Self::Capacity)
            }
            (None, Some(0), None) => {
                let path = path.name("in_flight");
                context.refuse(&path, "there are never fewer than 0 requests, expected at least 1")
            }
            (None, Some(bound), None) => {
                let load = context.environment.load_below(bound);
                context.check(&path.name("in_flight"), load).map(Self::InFlight)
            }
            (None, None, Some(share)) => {
                let path = path.name("cpu");
                let share = context.share(share, &path)?;
                if let Some(has_capacity) = context.environment.cpu_below(share) {
                    return Some(Self::Capacity(has_capacity));
                }
                context.check(&path, Cpu::below(share)).map(Self::Cpu)
            }
            _ => context
                .refuse(path, "`while` takes exactly one of `has_capacity`, `in_flight` and `cpu`"),
        }
    }
}
