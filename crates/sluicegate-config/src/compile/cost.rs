//! What requests cost.

use std::fmt;

use sluicegate_core::Header;
use sluicegate_core::cost::llm::{Count, Tokens, tokens};
use sluicegate_core::cost::{ContentLength, CostFrom, CostOf, content_length, cost_from};
use sluicegate_core::key::{Missing, Query, View};

use super::Context;
use super::context::Name;
use crate::document::{self, CostTable};
use crate::environment::CostFn;
use crate::request::Request;
use crate::source::DocumentPath;

/// The cost of a request.
#[derive(Clone)]
pub(super) enum Cost {
    Fixed(u64),
    Header(CostFrom<Header<Name>>),
    Query(CostFrom<Query<Name>>),
    Body(CostFrom<ContentLength>),
    Tokens(Tokens),
    Call(CostFn),
}

impl<V: View> CostOf<V> for Cost {
    #[inline]
    fn of(&self, view: &V) -> Result<u64, Missing> {
        match self {
            Self::Fixed(cost) => Ok(*cost),
            Self::Header(cost) => cost.of(view),
            Self::Query(cost) => cost.of(view),
            Self::Body(cost) => cost.of(view),
            Self::Tokens(cost) => cost.of(view),
            Self::Call(cost) => Ok(cost(&Request::of(view))),
        }
    }

    #[inline]
    fn is_length(&self) -> bool {
        matches!(self, Self::Body(_))
    }
}

impl fmt::Debug for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(cost) => cost.fmt(f),
            Self::Header(cost) => cost.fmt(f),
            Self::Query(cost) => cost.fmt(f),
            Self::Body(cost) => cost.fmt(f),
            Self::Tokens(cost) => cost.fmt(f),
            Self::Call(_) => f.write_str("Call"),
        }
    }
}

const ONE: &str =
    "a cost has one source: expected one of `header`, `query`, `body`, `tokens` and `call`";

impl Cost {
    pub(super) fn new(
        cost: Option<&document::Cost>,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        match cost {
            None => Some(Self::Fixed(1)),
            Some(document::Cost::Fixed(0)) => {
                context
                    .report(path, "with a cost of 0 nothing would be charged, expected at least 1");
                None
            }
            Some(document::Cost::Fixed(cost)) => Some(Self::Fixed(*cost)),
            Some(document::Cost::Table(table)) => Self::from_table(table, path, context),
        }
    }

    fn from_table(
        table: &CostTable,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        let CostTable { header, query, body, call, .. } = table;
        if let Some(count) = table.tokens {
            return Self::of_tokens(count.into(), table, path, context);
        }
        match (header, query, body, call) {
            (Some(name), None, None, None) => {
                let name = context.header_name(name, &path.name("header"));
                let fits = bounds_fit(table, path, context);
                Some(Self::Header(within(cost_from(Header(name?)), table, fits)?))
            }
            (None, Some(name), None, None) => {
                let name = context.name("parameter", name, &path.name("query"));
                let fits = bounds_fit(table, path, context);
                Some(Self::Query(within(cost_from(Query(name?)), table, fits)?))
            }
            (None, None, Some(0), None) => {
                context.report(
                    &path.name("body"),
                    "a cost for each 0 bytes would be infinite, expected at least 1",
                );
                None
            }
            (None, None, Some(bytes), None) => {
                let fits = bounds_fit(table, path, context);
                for (name, said) in [("per", table.per), ("scale", table.scale)] {
                    if said.is_some() {
                        context.report(
                            &path.name(name),
                            format!(
                                "`body` already sets the bytes for a cost of 1, expected no `{name}`"
                            ),
                        );
                    }
                }
                Some(Self::Body(within(content_length(), table, fits)?.per(*bytes)))
            }
            (None, None, None, Some(name)) => {
                let alone = CostTable { call: call.clone(), ..CostTable::default() };
                if *table != alone {
                    context
                        .report(path, "`call` computes the whole cost, expected nothing besides");
                }
                let call = context.environment.named_cost(name);
                context.check(&path.name("call"), call).map(Self::Call)
            }
            _ => {
                context.report(path, ONE);
                None
            }
        }
    }
}

impl Cost {
    /// What the service's estimate of tokens says.
    fn of_tokens(
        count: Count,
        table: &CostTable,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        let CostTable { tokens: said, default, most, .. } = *table;
        if *table != (CostTable { tokens: said, default, most, ..CostTable::default() }) {
            context.report(
                path,
                "`tokens` is the whole cost, expected only `default` and `most` besides",
            );
            return None;
        }
        if !bounds_fit(table, path, context) {
            return None;
        }
        let cost = default.into_iter().fold(tokens(count), Tokens::or);
        Some(Self::Tokens(most.into_iter().fold(cost, Tokens::at_most)))
    }
}

impl From<document::Tokens> for Count {
    fn from(said: document::Tokens) -> Self {
        match said {
            document::Tokens::All => Self::All,
            document::Tokens::Uncached => Self::Uncached,
            document::Tokens::Input => Self::Input,
            document::Tokens::UncachedInput => Self::UncachedInput,
            document::Tokens::Output => Self::Output,
        }
    }
}

/// Whether the bounds of a cost can be met.
fn bounds_fit(table: &CostTable, path: &DocumentPath<'_>, context: &Context<'_>) -> bool {
    let mut fit = true;
    for (name, number) in [("per", table.per), ("scale", table.scale), ("most", table.most)] {
        if number == Some(0) {
            context.report(&path.name(name), format!("`{name}` is 0, expected at least 1"));
            fit = false;
        }
    }
    let (least, most) = (table.least.unwrap_or(1), table.most.unwrap_or(u64::MAX));
    if fit && least > most {
        let name = if table.least.is_some() { "least" } else { "most" };
        context.report(&path.name(name), format!("no cost is at least {least} and at most {most}"));
        fit = false;
    }
    fit
}

fn within<S>(cost: CostFrom<S>, table: &CostTable, fits: bool) -> Option<CostFrom<S>> {
    if !fits {
        return None;
    }
    // `cost_from` has a minimum of 1, and the maximum must not be below it.
    let cost = cost.at_least(table.least.unwrap_or(1));
    let cost = table.most.into_iter().fold(cost, CostFrom::at_most);
    let cost = table.default.into_iter().fold(cost, CostFrom::default);
    let cost = table.per.into_iter().fold(cost, CostFrom::per);
    Some(table.scale.into_iter().fold(cost, CostFrom::scaled))
}
