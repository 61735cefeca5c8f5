//! The limits that apply to a request.

use std::collections::HashMap;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Index;
use sluicegate_core::condition::{ChosenBy, Condition as CoreCondition};
use sluicegate_core::key::{Missing, View};
use sluicegate_core::limit::Limits;
use sluicegate_core::rule::{ByTier, KnownLimits, LimitsFor};

use super::condition::{self, Condition};
use super::key::Text;
use super::limit::{Budget, Names};
use super::listed::Listed;
use super::load::Load;
use super::{Context, tiers};
use crate::document;
use crate::source::DocumentPath;
use crate::words::InWords;

const BOTH: &str = "`tiers` sets the limits of every request, with `default` for unknown ones: expected no \
                    `limits` beside it";

/// Every list of limits of a rule.
fn lists<'a>(
    said: &'a document::Rule,
    context: &Context<'a>,
) -> impl Iterator<Item = &'a [document::Limit]> {
    let cases = said.cases.iter().map(|case| case.limits.as_slice());
    let tiers = said.tiers.iter().flat_map(|_| context.document.tiers.values());
    cases.chain([said.limits.as_slice()]).chain(tiers.map(|tier| tier.limits.as_slice()))
}

/// The limits of a rule: the same for every request, by tier, or by case.
#[derive(Debug)]
pub(super) enum Amounts {
    Always(Limits),
    Tiers(Box<ByTier<Text>>, Vec<Listed>),
    Cases(Cases),
}

/// Other limits for some requests. The first case that applies is used.
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
        said: &document::Rule,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        // With any other name, the rest of the rule can be checked.
        let name = context.rule_name(&said.name, &path.name("name")).unwrap_or("rule");
        // A refusal would keep the other rules from charging the request, so shadow rules have shadow limits.
        let on_trial = said.reject == Some(document::Reject::Shadow);
        let names = Names::new(name, lists(said, context), on_trial);
        let otherwise = match &said.tiers {
            None => {
                let path = path.name("limits");
                names.give(&said.limits, Budget::Shared, &path, context).map(Self::Always)
            }
            Some(tiers) => {
                if !said.limits.is_empty() {
                    context.report(&path.name("limits"), BOTH);
                }
                let path = path.name("tiers");
                let chosen = tiers::by_tier(tiers, &names, &path, context);
                chosen.map(|(tiers, listed)| Self::Tiers(Box::new(tiers), listed))
            }
        };
        let cases = Self::cases(said, &names, &path.name("cases"), context);
        match cases.as_slice() {
            [] => otherwise,
            _ => {
                let words = said.cases.iter().map(|case| InWords(case).to_string()).collect();
                let mut index = Index::default();
                cases
                    .iter()
                    .for_each(|(case, _)| condition::add_to(&mut index, case.when.as_ref()));
                Some(Self::Cases(Cases { cases, index, words, otherwise: Box::new(otherwise?) }))
            }
        }
    }

    /// All limits, for reports.
    pub(super) fn listed(&self) -> Vec<Listed> {
        match self {
            Self::Always(limits) => {
                vec![Listed { of: String::new(), limits: Some(limits.clone()), is_apart: false }]
            }
            Self::Tiers(_, listed) => listed.clone(),
            Self::Cases(Cases { cases, words, otherwise, .. }) => {
                let cases = cases.iter().zip(words).map(|((case, limits), of)| Listed {
                    of: of.clone(),
                    limits: Some(limits.clone()),
                    is_apart: case.is_apart,
                });
                let otherwise =
                    otherwise.listed().into_iter().map(|listed| match listed.of.as_str() {
                        "" => Listed { of: "otherwise".to_owned(), ..listed },
                        _ => listed,
                    });
                cases.chain(otherwise).collect()
            }
        }
    }

    fn cases(
        said: &document::Rule,
        names: &Names<'_>,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Vec<(Case, Limits)> {
        let mut rows = HashMap::new();
        let case = |(i, said): (usize, &document::Case)| {
            let path = path.index(i);
            let case = Case::new(said, &path, context);
            let row = row(said, &mut rows);
            let is_apart = case.as_ref().is_some_and(|case| case.is_apart);
            let budget = if is_apart { Budget::Own(&row) } else { Budget::Shared };
            let limits = names.give(&said.limits, budget, &path.name("limits"), context);
            case.zip(limits)
        };
        said.cases.iter().enumerate().filter_map(case).collect()
    }
}

/// Identifies the budget of a case by its name, or by its conditions; not by its position. `rows` counts the
/// identifiers of the earlier cases.
fn row(said: &document::Case, rows: &mut HashMap<String, usize>) -> String {
    let mut row = match &said.name {
        Some(name) => format!("case {name}"),
        None => InWords(said).to_string(),
    };
    let earlier = rows.entry(row.clone()).or_insert(0);
    // The second of two equal cases never applies.
    if *earlier > 0 {
        row = format!("{row} {earlier}");
    }
    *earlier += 1;
    row
}

impl Case {
    fn new(said: &document::Case, path: &DocumentPath<'_>, context: &Context<'_>) -> Option<Self> {
        if said.when.is_none() && said.load.is_none() {
            context.report(path, "the case always applies, expected `when`, `while` or both");
        }
        let when = said.when.as_ref();
        let when = when.map(|when| Condition::new(when, &path.name("when"), context));
        let load = match &said.load {
            Some(load) => Some(Load::new(load, &path.name("while"), context)?),
            None => None,
        };
        let chosen_by = when.as_ref().map_or(ChosenBy::Server, Condition::who_chooses);
        let is_shared = said.shared.unwrap_or(chosen_by == ChosenBy::Server);
        Some(Self { when, load, is_apart: !is_shared })
    }

    fn holds<V: View>(&self, view: &V) -> Result<bool, Missing> {
        let when = self.when.as_ref().map_or(Ok(true), |when| when.holds(view))?;
        Ok(when && self.load.as_ref().map_or(Ok(true), |load| load.holds(view))?)
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
                for (case, limits) in index.candidates(view).map(|at| &cases[at]) {
                    if case.holds(view)? {
                        return limits.each(view, each);
                    }
                }
                otherwise.each(view, each)
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
