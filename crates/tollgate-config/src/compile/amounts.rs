//! Which limits hold for a request.

use tollgate_core::{
    Condition as CoreCondition, KnownLimits, Limit, Limits, LimitsFor, Missing, View,
};

use super::Context;
use super::condition::Condition;
use super::limit::Names;
use super::room::Room;
use crate::document;
use crate::path::Path;

/// The limits of a rule: always the same, by tier, or by case.
#[derive(Debug)]
pub(super) enum Amounts {
    Always(Limits),
    Cases(Cases),
}

/// Other limits in other cases: the first that holds.
#[derive(Debug)]
pub(super) struct Cases {
    cases: Vec<(Case, Limits)>,
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
        let cases = said.cases.iter().map(|case| case.limits.as_slice());
        let lists: Vec<_> = cases.chain([said.limits.as_slice()]).collect();
        let names = Names::new(&said.name, &lists);
        let otherwise = names.give(&said.limits, &path.name("limits"), context).map(Self::Always);
        let cases = Self::cases(said, &names, &path.name("cases"), context);
        match cases.as_slice() {
            [] => otherwise,
            _ => Some(Self::Cases(Cases { cases, otherwise: Box::new(otherwise?) })),
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

    fn holds<V: View>(&self, view: &V) -> bool {
        self.when.as_ref().is_none_or(|when| when.holds(view))
            && self.room.as_ref().is_none_or(|room| room.holds(view))
    }
}

impl<V: View> LimitsFor<V> for Amounts {
    #[inline]
    fn only_one(&self) -> Option<&Limit> {
        match self {
            Self::Always(limits) => LimitsFor::<V>::only_one(limits),
            Self::Cases(_) => None,
        }
    }

    fn each(
        &self,
        view: &V,
        each: &mut dyn FnMut(&Limit) -> Result<(), Missing>,
    ) -> Result<(), Missing> {
        match self {
            Self::Always(limits) => limits.each(view, each),
            Self::Cases(Cases { cases, otherwise }) => {
                match cases.iter().find(|(case, _)| case.holds(view)) {
                    Some((_, limits)) => limits.each(view, each),
                    None => otherwise.each(view, each),
                }
            }
        }
    }
}

impl KnownLimits for Amounts {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        match self {
            Self::Always(limits) => limits.each_limit(each),
            Self::Cases(Cases { cases, otherwise }) => {
                cases.iter().for_each(|(_, limits)| limits.each_limit(&mut *each));
                otherwise.each_limit(each);
            }
        }
    }
}
