//! What `sluicegate proxy` can never see of a request: what only the code of a service leaves there.
//!
//! A rule that needs it would refuse every request, or never apply, so it is an error in a file with `[upstream]`.

use super::Context;
use crate::document::{Condition, Document, Key, Rule, Settle};
use crate::source::DocumentPath;

const CLAIM: &str = "claims are left by the code of a service, and a proxy has none: expected what the request itself shows";
const ROUTE: &str = "the routes of the application are not known to a proxy: expected `path`";
const RESPONSE: &str = "a proxy sees no cost that a handler reports: expected `header` or `tokens`";

/// Reports what the rules of a proxy cannot see.
pub(super) fn report(document: &Document, context: &Context<'_>) {
    let list = DocumentPath::Root.name("rules");
    for (i, rule) in document.rules.iter().enumerate() {
        of_rule(rule, &list.index(i), context);
    }
}

fn of_rule(rule: &Rule, path: &DocumentPath<'_>, context: &Context<'_>) {
    of_key(&rule.key, &path.name("key"), context);
    if let Some(when) = &rule.when {
        of_condition(when, &path.name("when"), context);
    }
    let cases = path.name("cases");
    for (i, case) in rule.cases.iter().enumerate() {
        if let Some(when) = &case.when {
            of_condition(when, &cases.index(i).name("when"), context);
        }
    }
    if let Some(tiers) = &rule.tiers {
        let path = path.name("tiers");
        for (name, key) in [("by", &tiers.by), ("customer", &tiers.customer)] {
            if let Some(key) = key {
                of_key(key, &path.name(name), context);
            }
        }
    }
    if rule.settle == Some(Settle::Response) {
        context.report(&path.name("settle"), RESPONSE);
    }
}

fn of_key(key: &Key, path: &DocumentPath<'_>, context: &Context<'_>) {
    match key {
        Key::Claim(_) => context.report(path, CLAIM),
        Key::Route => context.report(path, ROUTE),
        Key::Optional(key) => of_key(key, &path.name("optional"), context),
        Key::First(keys) => {
            let path = path.name("first");
            keys.iter().enumerate().for_each(|(i, key)| of_key(key, &path.index(i), context));
        }
        Key::All(keys) => {
            keys.iter().enumerate().for_each(|(i, key)| of_key(key, &path.index(i), context));
        }
        _ => {}
    }
}

fn of_condition(when: &Condition, path: &DocumentPath<'_>, context: &Context<'_>) {
    if !when.claim.is_empty() {
        context.report(&path.name("claim"), CLAIM);
    }
    if when.route.is_some() {
        context.report(&path.name("route"), ROUTE);
    }
    if let Some(not) = &when.not {
        of_condition(not, &path.name("not"), context);
    }
    let list = path.name("any");
    for (i, any) in when.any.iter().enumerate() {
        of_condition(any, &list.index(i), context);
    }
}
