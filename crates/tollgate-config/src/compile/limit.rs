//! Limits out of texts and tables, and what they are called.

use std::collections::BTreeSet;
use std::time::Duration;

use tollgate_core::{Limit, LimitError, Limits, MAX_LIMITS};

use super::Context;
use crate::document::{self, Amount, Ban, LimitTable};
use crate::path::Path;

/// The limits of a list, as they were said; `None` where one of them is none.
pub(super) fn list(
    said: &[document::Limit],
    path: &Path<'_>,
    context: &Context<'_>,
) -> Option<Vec<Limit>> {
    if said.is_empty() {
        context.wrong(path, "there is no limit in the list, expected at least one");
    }
    if said.len() > MAX_LIMITS {
        context.wrong(path, format!("there are more than {MAX_LIMITS} limits in the list"));
    }
    let made = said.iter().enumerate().map(|(i, said)| one(said, &path.index(i), context));
    let made: Vec<_> = made.collect();
    made.into_iter().collect::<Option<Vec<_>>>().filter(|made| (1..=MAX_LIMITS).contains(&made.len()))
}

fn one(said: &document::Limit, path: &Path<'_>, context: &Context<'_>) -> Option<Limit> {
    match said {
        document::Limit::Text(text) => context.check(path, text.parse()),
        document::Limit::Table(table) => from_table(table, path, context),
    }
}

fn from_table(table: &LimitTable, path: &Path<'_>, context: &Context<'_>) -> Option<Limit> {
    let set = |name: &str, limit: Option<Limit>, set: &dyn Fn(Limit) -> Result<Limit, LimitError>| {
        limit.and_then(|limit| context.check(&path.name(name), set(limit)))
    };
    let mut limit = context.check(&path.name("rate"), table.rate.parse::<Limit>());
    if let Some(name) = &table.name {
        limit = set("name", limit, &|limit| limit.try_named(name));
    }
    if let Some(burst) = table.burst {
        limit = set("burst", limit, &|limit| limit.try_burst(burst));
    }
    let most = limit.map(|limit| limit.capacity());
    if let Some(over) = &table.over {
        let percent = context.percent(over, &path.name("over"));
        limit = percent.and_then(|percent| set("over", limit, &|limit| limit.try_over_percent(percent)));
    }
    if let Some(soft) = &table.soft {
        let soft = amount(soft, most, &path.name("soft"), context);
        limit = soft.and_then(|soft| set("soft", limit, &|limit| limit.try_soft(soft)));
    }
    if let Some(ban) = &table.ban {
        limit = banned(ban, limit, &path.name("ban"), context);
    }
    if table.shadow { set("shadow", limit, &|limit| limit.try_shadow()) } else { limit }
}

/// A number, or a part of the `most`.
fn amount(
    amount: &Amount,
    most: Option<u64>,
    path: &Path<'_>,
    context: &Context<'_>,
) -> Option<u64> {
    match amount {
        Amount::Count(count) => Some(*count),
        Amount::Percent(text) => {
            let percent = context.percent(text, path)?;
            u64::try_from(u128::from(most?) * u128::from(percent) / 100).ok()
        }
    }
}

fn banned(
    ban: &Ban,
    limit: Option<Limit>,
    path: &Path<'_>,
    context: &Context<'_>,
) -> Option<Limit> {
    let table = match ban {
        Ban::Time(text) => {
            let time = context.time(text, path)?;
            return context.check(path, limit?.try_ban(time));
        }
        Ban::Table(table) => table,
    };
    let time = context.time(&table.time, &path.name("for"));
    let within = table.within.as_ref().map(|text| context.time(text, &path.name("within")));
    match (table.after, within) {
        (None | Some(1), None) => context.check(path, limit?.try_ban(time?)),
        (Some(after), Some(within)) => {
            let limit = limit?.try_ban(time?);
            let (after, within) = (after, within?);
            context.check(path, limit.and_then(|limit| limit.try_ban_after(after, within)))
        }
        (Some(_), None) => {
            context.wrong(path, "`after` needs a time, expected `within` besides");
            None
        }
        (None, Some(_)) => {
            context.wrong(path, "`within` needs a number, expected `after` besides");
            None
        }
    }
}

/// Names the limits after their rule, where they have no names, and lets them keep what was spent when
/// their numbers change.
pub(super) fn named(
    rule: &str,
    limits: &[Limit],
    path: &Path<'_>,
    context: &Context<'_>,
) -> Option<Limits> {
    let mut names = BTreeSet::new();
    let mut made = Vec::new();
    for (i, limit) in limits.iter().enumerate() {
        let path = path.index(i);
        let named = match (has_name(limit), limits.len()) {
            (true, _) => Ok(*limit),
            (false, 1) => limit.try_named(rule),
            (false, _) => limit.try_named(&format!("{rule}/{}", period_of(limit))),
        };
        let named = context.check(&path, named.and_then(|limit| limit.try_carried()))?;
        let name = named.name().to_string();
        if !names.insert(name.clone()) {
            context.wrong(&path, format!("two limits are called `{name}`, expected a `name` to tell them apart"));
        }
        made.push(named);
    }
    (names.len() == limits.len()).then(|| Limits::from(made))
}

/// Whether a limit was given a name: nothing else in its text is.
fn has_name(limit: &Limit) -> bool {
    limit.to_string().contains(" named ")
}

/// The period in words: `minute`, `30 days`.
fn period_of(limit: &Limit) -> String {
    let in_words = |period: Duration| {
        let text = Limit::fixed_window(1, period).to_string();
        text.trim_start_matches("fixed 1").trim_start_matches(['/']).trim_start_matches(" per ").to_owned()
    };
    limit.period().map_or("concurrent".to_owned(), in_words)
}

trait Later: Sized + Copy {
    fn try_carried(self) -> Result<Limit, LimitError>;
    fn try_shadow(self) -> Result<Limit, LimitError>;
    fn try_over_percent(self, percent: u64) -> Result<Limit, LimitError>;
    fn try_ban_after(self, after: u64, within: Duration) -> Result<Limit, LimitError>;
}
impl Later for Limit {
    fn try_carried(self) -> Result<Limit, LimitError> { Ok(self) }
    fn try_shadow(self) -> Result<Limit, LimitError> { Ok(self) }
    fn try_over_percent(self, _: u64) -> Result<Limit, LimitError> { Ok(self) }
    fn try_ban_after(self, _: u64, _: Duration) -> Result<Limit, LimitError> { Ok(self) }
}
