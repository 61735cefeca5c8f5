//! What requests cost, and how a charge is settled by the response.

use std::fmt;

use sluicegate_core::Header;
use sluicegate_core::adapter::Reply;
use sluicegate_core::cost::{
    ContentLength, CostFrom, CostOf, content_length, cost_from, reply_header, reply_header_scaled,
};
use sluicegate_core::key::{Missing, Query, View};
use sluicegate_core::rule::By;
use sluicegate_llm::{Count, Tokens, tokens, used_tokens};

use super::Context;
use super::context::Name;
use crate::document::{self, CostTable, Settle, SettleTable};
use crate::environment::CostFn;
use crate::source::DocumentPath;

/// The cost of a request.
#[derive(Clone)]
pub(super) enum Cost {
    Fixed(u64),
    /// The cost of a rule that refuses every request. Its limits are 1, and this is more.
    Block,
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
            Self::Block => Ok(2),
            Self::Header(cost) => cost.of(view),
            Self::Query(cost) => cost.of(view),
            Self::Body(cost) => cost.of(view),
            Self::Tokens(cost) => cost.of(view),
            Self::Call(cost) => Ok(cost(view)),
        }
    }

    #[inline]
    fn is_length(&self) -> bool {
        matches!(self, Self::Body(_))
    }

    #[inline]
    fn is_block(&self) -> bool {
        matches!(self, Self::Block)
    }
}

impl fmt::Debug for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(cost) => cost.fmt(f),
            Self::Block => f.write_str("Block"),
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
            Some(document::Cost::Fixed(0)) => context
                .refuse(path, "with a cost of 0 nothing would be charged, expected at least 1"),
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
                let name = context.request_header(name, &path.name("header"));
                let fits = bounds_fit(table, path, context);
                Some(Self::Header(within(cost_from(Header(name?)), table, fits)?))
            }
            (None, Some(name), None, None) => {
                let name = context.name("parameter", name, &path.name("query"));
                let fits = bounds_fit(table, path, context);
                Some(Self::Query(within(cost_from(Query(name?)), table, fits)?))
            }
            (None, None, Some(0), None) => context.refuse(
                &path.name("body"),
                "a cost for each 0 bytes would be infinite, expected at least 1",
            ),
            (None, None, Some(bytes), None) => {
                let fits = bounds_fit(table, path, context);
                for (name, spec) in [("per", table.per), ("scale", table.scale)] {
                    if spec.is_some() {
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
            _ => context.refuse(path, ONE),
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
        let CostTable { tokens: spec, default, most, .. } = *table;
        if *table != (CostTable { tokens: spec, default, most, ..CostTable::default() }) {
            return context.refuse(
                path,
                "`tokens` is the whole cost, expected only `default` and `most` besides",
            );
        }
        if !bounds_fit(table, path, context) {
            return None;
        }
        let cost = default.into_iter().fold(tokens(count), Tokens::or);
        Some(Self::Tokens(most.into_iter().fold(cost, Tokens::at_most)))
    }
}

impl From<document::Tokens> for Count {
    fn from(spec: document::Tokens) -> Self {
        match spec {
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

/// How the charge of a rule is settled when the response is known.
pub(super) struct Settlement {
    spent: Option<SettlementKind>,
    at_end: bool,
    at_most: Option<u64>,
}

enum SettlementKind {
    /// Requests with another status are given back what they were charged.
    CountIf(Vec<u16>),
    Cost(ReplyCost),
    /// Tokens of a language model.
    Tokens(Count),
}

/// The cost according to the response. `None` keeps the charge.
type ReplyCost = Box<dyn Fn(&dyn Reply) -> Option<u64> + Send + Sync>;

const UNSETTLED: &str = "nothing is settled: expected `settle` or `count_if` as well";

impl Settlement {
    pub(super) fn new(
        spec: &document::Rule,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Self {
        let is_settled = spec.settle.is_some() || !spec.count_if.is_empty();
        if spec.settle_at_end && !is_settled {
            context.report(&path.name("settle_at_end"), UNSETTLED);
        }
        let most = path.name("settle_at_most");
        match spec.settle_at_most {
            Some(_) if !is_settled => context.report(&most, UNSETTLED),
            Some(0) => context.report(&most, "no request would cost anything: expected at least 1"),
            _ => {}
        }
        Self {
            spent: spent(spec, path, context),
            at_end: spec.settle_at_end,
            at_most: spec.settle_at_most,
        }
    }

    /// The rule, settled like this.
    pub(super) fn of<K, L, C>(self, by: By<K, L, C>) -> By<K, L, C> {
        let by = match self.spent {
            None => return by,
            Some(SettlementKind::CountIf(counted)) => {
                by.count_if(move |status| counted.contains(&status))
            }
            Some(SettlementKind::Cost(cost)) => by.settle_cost(cost),
            Some(SettlementKind::Tokens(count)) => by.settle_by(used_tokens(count)),
        };
        let by = if self.at_end { by.settle_at_end() } else { by };
        self.at_most.into_iter().fold(by, By::settle_at_most)
    }
}

/// The cost of a request. A request that is not counted costs nothing, whatever its response says.
fn spent(
    rule: &document::Rule,
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) -> Option<SettlementKind> {
    if let Some(Settle::Table(SettleTable { header: None, tokens: Some(count), scale })) =
        rule.settle
    {
        for (name, is_there) in
            [("settle.scale", scale.is_some()), ("count_if", !rule.count_if.is_empty())]
        {
            if is_there {
                let message = format!("tokens are counted as they are: expected no `{name}`");
                context.report(&path.name("settle"), message);
            }
        }
        return Some(SettlementKind::Tokens(count.into()));
    }
    let cost = settled_cost(rule.settle.as_ref(), &path.name("settle"), context);
    let list = path.name("count_if");
    context.not_empty(&list);
    for (i, status) in rule.count_if.iter().enumerate() {
        // No response ends with another informational status than that of an upgrade.
        if !matches!(status, 101 | 200..=599) {
            let path = list.index(i);
            let message = format!("{status} is not the status of a response, expected 200 to 599");
            context.report(&path, message);
        }
    }
    let counted = rule.count_if.clone();
    match (counted.is_empty(), cost) {
        (true, cost) => cost.map(SettlementKind::Cost),
        (false, None) => Some(SettlementKind::CountIf(counted)),
        (false, Some(cost)) => Some(SettlementKind::Cost(Box::new(move |reply| {
            if counted.contains(&reply.status()) { cost(reply) } else { Some(0) }
        }))),
    }
}

fn settled_cost(
    settle: Option<&Settle>,
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) -> Option<ReplyCost> {
    match settle? {
        Settle::Response => Some(Box::new(|reply| reply.cost())),
        Settle::Table(table) => {
            let SettleTable { header: Some(header), tokens: None, .. } = table else {
                return context
                    .refuse(path, "a cost has one source: expected one of `header` and `tokens`");
            };
            let name = context.header_name(header, &path.name("header"));
            if table.scale == Some(0) {
                return context.refuse(&path.name("scale"), "`scale` is 0, expected at least 1");
            }
            Some(match table.scale {
                None => Box::new(reply_header(name?)),
                Some(scale) => Box::new(reply_header_scaled(name?, scale)),
            })
        }
    }
}
