//! Settling a charge by the response.

use sluicegate_core::adapter::Reply;
use sluicegate_core::cost::llm::Count;
use sluicegate_core::cost::{reply_header, reply_header_scaled};
use sluicegate_core::rule::By;

use super::Context;
use crate::document::{self, Settle, SettleTable};
use crate::source::DocumentPath;

/// How the charge of a rule is settled when the response is known.
pub(super) struct Settlement {
    spent: Option<Spent>,
    at_end: bool,
    at_most: Option<u64>,
}

enum Spent {
    /// Requests with another status are given back what they were charged.
    CountIf(Vec<u16>),
    Cost(Cost),
    /// Tokens of a language model.
    Tokens(Count),
}

/// The cost according to the response. `None` keeps the charge.
type Cost = Box<dyn Fn(&dyn Reply) -> Option<u64> + Send + Sync>;

const NOTHING: &str = "nothing is settled: expected `settle` or `count_if` as well";

impl Settlement {
    pub(super) fn new(
        said: &document::Rule,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Self {
        let is_settled = said.settle.is_some() || !said.count_if.is_empty();
        if said.settle_at_end && !is_settled {
            context.report(&path.name("settle_at_end"), NOTHING);
        }
        let most = path.name("settle_at_most");
        match said.settle_at_most {
            Some(_) if !is_settled => context.report(&most, NOTHING),
            Some(0) => context.report(&most, "no request would cost anything: expected at least 1"),
            _ => {}
        }
        Self {
            spent: spent(said, path, context),
            at_end: said.settle_at_end,
            at_most: said.settle_at_most,
        }
    }

    /// The rule, settled like this.
    pub(super) fn of<K, L, C>(self, by: By<K, L, C>) -> By<K, L, C> {
        let by = match self.spent {
            None => return by,
            Some(Spent::CountIf(counted)) => by.count_if(move |status| counted.contains(&status)),
            Some(Spent::Cost(cost)) => by.settle_cost(cost),
            Some(Spent::Tokens(count)) => by.settle_tokens(count),
        };
        let by = if self.at_end { by.settle_at_end() } else { by };
        self.at_most.into_iter().fold(by, By::settle_at_most)
    }
}

/// The cost of a request. A request that is not counted costs nothing, whatever its response says.
fn spent(rule: &document::Rule, path: &DocumentPath<'_>, context: &Context<'_>) -> Option<Spent> {
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
        return Some(Spent::Tokens(count.into()));
    }
    let cost = settled_cost(rule.settle.as_ref(), &path.name("settle"), context);
    let list = path.name("count_if");
    context.not_empty(&list);
    for (i, status) in rule.count_if.iter().enumerate() {
        if !(100..=599).contains(status) {
            let path = list.index(i);
            context.report(&path, format!("{status} is not a status, expected 100 to 599"));
        }
    }
    let counted = rule.count_if.clone();
    match (counted.is_empty(), cost) {
        (true, cost) => cost.map(Spent::Cost),
        (false, None) => Some(Spent::CountIf(counted)),
        (false, Some(cost)) => Some(Spent::Cost(Box::new(move |reply| {
            if counted.contains(&reply.status()) { cost(reply) } else { Some(0) }
        }))),
    }
}

fn settled_cost(
    settle: Option<&Settle>,
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) -> Option<Cost> {
    match settle? {
        Settle::Response => Some(Box::new(|reply| reply.cost())),
        Settle::Table(table) => {
            let SettleTable { header: Some(header), tokens: None, .. } = table else {
                context
                    .report(path, "a cost has one source: expected one of `header` and `tokens`");
                return None;
            };
            let name = context.header_name(header, &path.name("header"));
            if table.scale == Some(0) {
                context.report(&path.name("scale"), "`scale` is 0, expected at least 1");
                return None;
            }
            Some(match table.scale {
                None => Box::new(reply_header(name?)),
                Some(scale) => Box::new(reply_header_scaled(name?, scale)),
            })
        }
    }
}
