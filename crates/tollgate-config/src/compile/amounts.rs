//! Which limits hold for a request.

use std::collections::BTreeMap;

use tollgate_core::{
    ByTier, Condition as CoreCondition, KnownLimits, Limit, Limits, LimitsFor, Missing, View,
};

use super::condition::Condition;
use super::key::Text;
use super::limit::Names;
use super::room::Room;
use super::{Context, tiers};
use crate::document;
use crate::path::Path;
use crate::words::InWords;

const BOTH: &str = "the tiers say what the limits are, of everybody else too by `default`: \
                    expected no `limits` beside `tiers`";

/// The limits that hold where no tier and no case says otherwise.
fn usual<'a>(said: &'a document::Rule, context: &Context<'a>) -> &'a [document::Limit] {
    let tier = said.tiers.as_ref().and_then(|tiers| context.document.tiers.get(&tiers.default));
    tier.map_or(&said.limits, |tier| &tier.limits)
}

/// The limits of a rule: always the same, by tier, or by case.
#[derive(Debug)]
pub(super) enum Amounts {
    Always(Limits),
    Tiers(Box<ByTier<Text>>, Vec<Listed>),
    Cases(Cases),
}

/// The limits of one tier, or of one case, for people to read.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    /// The tier or the case; empty where there is but one.
    pub(crate) of: String,
    /// None: unlimited.
    pub(crate) limits: Option<Limits>,
}

impl Listed {
    /// The limits of all.
    pub(crate) fn limits(listed: &[Self]) -> impl Iterator<Item = &Limit> {
        listed.iter().filter_map(|one| one.limits.as_ref()).flat_map(Limits::iter)
    }

    /// The first limit that `differs` from the one that was first called the same.
    pub(crate) fn different(
        listed: &[Self],
        differs: impl Fn(&Limit, &Limit) -> bool,
    ) -> Option<&Limit> {
        let mut first = BTreeMap::new();
        Self::limits(listed)
            .find(|limit| differs(first.entry(limit.own_name()).or_insert(*limit), limit))
    }
}

/// Other limits in other cases: the first that holds.
#[derive(Debug)]
pub(super) struct Cases {
    cases: Vec<(Case, Limits)>,
    /// What the cases are, in words.
    words: Vec<String>,
    otherwise: Box<Amounts>,
}

#[derive(Debug)]
struct Case {
    when: Option<Condition>,
    room: Option<Room>,
}

impl Amounts {
    pub(super) fn new(
        said: &document::Rule,
        path: &Path<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        // Any other name will do for finding out what else is wrong.
        let name = context.rule_name(&said.name, &path.name("name")).unwrap_or("rule");
        // What a rule on trial refused would be charged to no other rule: its limits refuse nothing.
        let on_trial = said.reject == Some(document::Reject::Shadow);
        let names = Names::new(name, usual(said, context), on_trial);
        let otherwise = match &said.tiers {
            None => names.give(&said.limits, &path.name("limits"), context).map(Self::Always),
            Some(tiers) => {
                if !said.limits.is_empty() {
                    context.wrong(&path.name("limits"), BOTH);
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
                Some(Self::Cases(Cases { cases, words, otherwise: Box::new(otherwise?) }))
            }
        }
    }

    /// All limits, for people to read.
    pub(super) fn listed(&self) -> Vec<Listed> {
        match self {
            Self::Always(limits) => {
                vec![Listed { of: String::new(), limits: Some(limits.clone()) }]
            }
            Self::Tiers(_, listed) => listed.clone(),
            Self::Cases(Cases { cases, words, otherwise }) => {
                let cases = cases.iter().zip(words).map(|((_, limits), of)| Listed {
                    of: of.clone(),
                    limits: Some(limits.clone()),
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
        path: &Path<'_>,
        context: &Context<'_>,
    ) -> Vec<(Case, Limits)> {
        let case = |(i, said): (usize, &document::Case)| {
            let path = path.index(i);
            let limits = names.give(&said.limits, &path.name("limits"), context);
            Case::new(said, &path, context).zip(limits)
        };
        said.cases.iter().enumerate().filter_map(case).collect()
    }
}

impl Case {
    fn new(said: &document::Case, path: &Path<'_>, context: &Context<'_>) -> Option<Self> {
        if said.when.is_none() && said.room.is_none() {
            context.wrong(path, "the case always holds, expected `when`, or `while`, or both");
        }
        let when = said.when.as_ref();
        let when = when.map(|when| Condition::new(when, &path.name("when"), context));
        let room = match &said.room {
            Some(room) => Some(Room::new(room, &path.name("while"), context)?),
            None => None,
        };
        Some(Self { when, room })
    }

    fn holds<V: View>(&self, view: &V) -> Result<bool, Missing> {
        let when = self.when.as_ref().map_or(Ok(true), |when| when.holds(view))?;
        Ok(when && self.room.as_ref().map_or(Ok(true), |room| room.holds(view))?)
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
            Self::Cases(Cases { cases, otherwise, .. }) => {
                for (case, limits) in cases {
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
