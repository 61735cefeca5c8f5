//! Limits from texts and tables, and their names.

use std::collections::BTreeSet;

use sluicegate_core::Limit;
use sluicegate_core::limit::{LimitError, Limits, MAX_LIMITS, WhenFull};

use super::Context;
use crate::document::{self, Amount, Ban, LimitTable};
use crate::source::DocumentPath;

/// The limits of a list as written. `None` if one of them is not valid.
fn list(
    spec: &[document::Limit],
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) -> Option<Vec<Limit>> {
    if spec.is_empty() {
        context.report(path, "the list has no limits, expected at least one");
    }
    if spec.len() > MAX_LIMITS {
        context.report(path, format!("the list has more than {MAX_LIMITS} limits"));
    }
    let made = spec.iter().enumerate().map(|(i, spec)| one(spec, &path.index(i), context));
    let made: Vec<_> = made.collect();
    made.into_iter()
        .collect::<Option<Vec<_>>>()
        .filter(|made| (1..=MAX_LIMITS).contains(&made.len()))
}

fn one(spec: &document::Limit, path: &DocumentPath<'_>, context: &Context<'_>) -> Option<Limit> {
    match spec {
        document::Limit::Text(text) => context.check(path, text.parse()),
        document::Limit::Table(table) => from_table(table, path, context),
    }
}

fn from_table(table: &LimitTable, path: &DocumentPath<'_>, context: &Context<'_>) -> Option<Limit> {
    let set =
        |name: &str, limit: Option<Limit>, set: &dyn Fn(Limit) -> Result<Limit, LimitError>| {
            limit.and_then(|limit| context.check(&path.name(name), set(limit)))
        };
    let read = context.check(&path.name("rate"), Limit::parse_with_options(&table.rate));
    let mut limit = read.map(|(limit, options)| {
        report_twice(table, &options, path, context);
        limit
    });
    if let Some(name) = &table.name {
        limit = set("name", limit, &|limit| limit.try_named(name));
    }
    if let Some(burst) = table.burst {
        limit = set("burst", limit, &|limit| limit.try_burst(burst));
    }
    // `soft` is a part of the limit as the file has it, without what `over` adds.
    let most = limit.map(|limit| limit.capacity());
    if let Some(over) = &table.over {
        let percent = context.percent(over, &path.name("over"));
        limit = percent
            .and_then(|percent| set("over", limit, &|limit| limit.try_over_percent(percent)));
    }
    if let Some(soft) = &table.soft {
        let soft = amount(soft, most, &path.name("soft"), context);
        limit = soft.and_then(|soft| set("soft", limit, &|limit| limit.try_soft(soft)));
    }
    if let Some(ban) = &table.ban {
        limit = banned(ban, limit, &path.name("ban"), context);
    }
    if let Some(answer) = table.when_full {
        limit = limit.map(|limit| limit.when_full(when_full(answer)));
    }
    if table.shadow == Some(true) {
        set("shadow", limit, &|limit| limit.try_shadow())
    } else {
        limit
    }
}

/// Reports what a table says although the text of its rate says it too: which of the two counts would not be clear.
fn report_twice(
    table: &LimitTable,
    options: &[String],
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) {
    for (name, option, is_set) in [
        ("name", "named", table.name.is_some()),
        ("burst", "burst", table.burst.is_some()),
        ("over", "over", table.over.is_some()),
        ("soft", "soft", table.soft.is_some()),
        // What is over the limit is worked out from the burst, and makes it the soft limit.
        ("burst", "over", table.burst.is_some()),
        ("soft", "over", table.soft.is_some()),
        ("ban", "ban", table.ban.is_some()),
        ("when_full", "when-full", table.when_full.is_some()),
        ("shadow", "shadow", table.shadow.is_some()),
    ] {
        if is_set && options.iter().any(|other| other == option) {
            let message = format!(
                "`rate` says this too, by `{option}`: expected it in one of the two places"
            );
            context.report(&path.name(name), message);
        }
    }
}

fn when_full(spec: document::WhenFull) -> WhenFull {
    match spec {
        document::WhenFull::Admit => WhenFull::Admit,
        document::WhenFull::Refuse => WhenFull::Refuse,
        document::WhenFull::Together => WhenFull::CountTogether,
    }
}

/// A number, or a percentage of `most`.
fn amount(
    amount: &Amount,
    most: Option<u64>,
    path: &DocumentPath<'_>,
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
    path: &DocumentPath<'_>,
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
            let limit = context.check(path, limit?.try_ban(time?))?;
            context.check(&path.name("after"), limit.try_ban_after(after, within?))
        }
        (Some(_), None) => context.refuse(path, "`after` needs a time: expected `within` as well"),
        (None, Some(_)) => {
            context.refuse(path, "`within` needs a number: expected `after` as well")
        }
    }
}

/// Reports errors in a list of limits that no rule uses.
pub(super) fn look(spec: &[document::Limit], path: &DocumentPath<'_>, context: &Context<'_>) {
    list(spec, path, context);
}

/// Names for the limits of a rule. Limits without a name are named after the rule and the period, so that tiers and
/// cases share what was spent.
pub(super) struct Names<'a> {
    rule: &'a str,
    /// Whether limits without a name have several periods. Then the period is part of the name.
    has_several: bool,
    /// Whether the rule is a shadow rule. Then its limits are shadow limits.
    on_trial: bool,
    /// Whether limits carry over what was spent when their numbers change.
    is_carried: bool,
}

/// Which limits a list shares its budget with.
#[derive(Clone, Copy)]
pub(super) enum Budget<'a> {
    /// Limits with the same names in other lists.
    Shared,
    /// None: a case that the client can choose, identified by this text.
    Own(&'a str),
}

impl<'a> Names<'a> {
    /// Names for the rule called `rule`, which has these lists of limits.
    pub(super) fn new<'l>(
        rule: &'a str,
        lists: impl IntoIterator<Item = &'l [document::Limit]>,
        on_trial: bool,
        is_carried: bool,
    ) -> Self {
        let mut limits = lists.into_iter().flatten();
        // Most rules have one limit, and files may have 100,000 rules: its text is not read for this.
        let has_several = match (limits.next(), limits.next()) {
            (Some(first), Some(second)) => {
                let limits = [first, second].into_iter().chain(limits);
                limits.filter_map(nameless).collect::<BTreeSet<_>>().len() > 1
            }
            _ => false,
        };
        Self { rule, has_several, on_trial, is_carried }
    }

    /// The name of the rule.
    pub(super) fn rule(&self) -> &str {
        self.rule
    }

    /// The limits of one list with names. They carry over what was spent when their numbers change.
    pub(super) fn give(
        &self,
        spec: &[document::Limit],
        budget: Budget<'_>,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Limits> {
        let limits = list(spec, path, context)?;
        let mut named = Vec::<Limit>::with_capacity(limits.len());
        for (i, limit) in limits.iter().enumerate() {
            let path = path.index(i);
            let Some(limit) = context.check(&path, self.name(limit, budget)) else {
                continue;
            };
            let name = limit.name();
            if named.iter().any(|other| other.name().to_string() == name.to_string()) {
                let expected = "expected a `name` for one of them";
                let message = format!("two limits of the list are called `{name}`, {expected}");
                context.report(&path, message);
            } else if named.iter().any(|other| other.id() == limit.id()) {
                // A limit without a name is stored by rule and period, whatever it is called.
                let message = format!(
                    "what was spent of this limit, `{name}`, is stored under the name of another limit of the list: \
                     expected a `name` for each"
                );
                context.report(&path, message);
            } else {
                named.push(limit);
            }
        }
        if named.len() < limits.len() {
            return None;
        }
        context.check(path, Limits::try_from_iter(named))
    }

    fn name(&self, limit: &Limit, budget: Budget<'_>) -> Result<Limit, String> {
        let Self { rule, has_several, on_trial, is_carried } = *self;
        // The row has the period even where the name has none, so that a second limit may be added to the rule, which
        // changes the names, without losing what was spent.
        let row_name = format!("{rule}/{}", limit.period_name());
        let (name, row) = match limit.own_name() {
            Some(name) => (name.to_owned(), name.to_owned()),
            None if has_several => (row_name.clone(), row_name),
            None => (rule.to_owned(), row_name),
        };
        let named = limit.try_named(&name);
        let named = if is_carried { named.and_then(Limit::try_carried) } else { named };
        let named = if on_trial { named.and_then(Limit::try_shadow) } else { named };
        let named = named.map_err(|error| format!("a limit cannot be called `{name}`: {error}"))?;
        Ok(match budget {
            Budget::Shared => named.counted_as(&row),
            // No name of a limit contains a NUL.
            Budget::Own(case) => named.counted_as(&format!("\0{row} {case}")),
        })
    }
}

/// The period of a limit without a name. `None` for a limit with a name.
fn nameless(spec: &document::Limit) -> Option<String> {
    let rate = match spec {
        document::Limit::Text(text) => text,
        document::Limit::Table(LimitTable { name: Some(_), .. }) => return None,
        document::Limit::Table(table) => &table.rate,
    };
    let limit = rate.parse::<Limit>().ok().filter(|limit| limit.own_name().is_none())?;
    Some(limit.period_name().to_string())
}
