//! Settings that are valid and probably mistakes.

use sluicegate_core::Limit;
use sluicegate_core::key::Path as PathKey;
use sluicegate_core::limit::MAX_LIMITS;

use super::together::{Together, together};
use crate::compile::{LimitGroup, Policies};
use crate::document::{Condition, Cost, Document, Key, Rule, Texts};
use crate::source::{Diagnostic, DocumentPath};

/// That nothing says behind which proxies the service is.
pub(super) const NO_PROXIES: &str = "the client's address is that of the connection's other end: behind a proxy, say so by \
                                     `proxies`, or all clients have the proxy's";

/// Every warning, in the order of the text.
pub(super) fn warnings(
    document: &Document,
    policies: &Policies,
    idle: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    let mut warnings = Warnings { document, found: idle };
    let list = DocumentPath::Root.name("rules");
    for (i, (rule, groups)) in document.rules.iter().zip(policies.limit_groups()).enumerate() {
        warnings.of_rule(rule, &list.index(i));
        warnings.of_cost(rule, groups, &list.index(i));
        warnings.of_names(groups, &list.index(i));
    }
    if document.rules.is_empty() {
        warnings.warn(&list, "there is no rule: nothing is limited");
    }
    warnings.of_throttle();
    warnings.of_tiers();
    warnings.of_addresses();
    warnings.of_many();
    warnings.found.sort_by_key(|warning| (warning.line(), warning.column()));
    warnings.found
}

struct Warnings<'a> {
    document: &'a Document,
    found: Vec<Diagnostic>,
}

impl Warnings<'_> {
    fn warn(&mut self, path: &DocumentPath<'_>, message: impl Into<String>) {
        self.found.push(self.document.source.problem(path, message));
    }

    fn of_rule(&mut self, rule: &Rule, path: &DocumentPath<'_>) {
        rule.key.each(&path.name("key"), &mut |key, path| self.of_key(&rule.name, key, path));
        rule.each_condition(path, &mut |when, path| self.of_condition(when, path));
        if let Some(Cost::Table(table)) = &rule.cost {
            let said_by_client = table.header.is_some() || table.query.is_some();
            if said_by_client && rule.settle.is_none() {
                self.warn(
                    &path.name("cost"),
                    "the client says what its request costs, and gains by saying less: `settle` it by what \
                     the response says, or check it elsewhere",
                );
            }
        }
    }

    /// A limit below the smallest cost admits nothing.
    fn of_cost(&mut self, rule: &Rule, groups: &[LimitGroup], path: &DocumentPath<'_>) {
        if rule.blocks {
            return;
        }
        let least = match &rule.cost {
            None => 1,
            Some(Cost::Fixed(cost)) => *cost,
            Some(Cost::Table(table)) => table.least.unwrap_or(1),
        };
        if let Some(limit) = LimitGroup::limits(groups).find(|limit| limit.capacity() < least) {
            let (name, most) = (limit.name(), limit.capacity());
            let message = format!(
                "nothing is ever admitted by `{name}`, which holds {most} at most: a request costs {least} \
                 at least"
            );
            self.warn(&path.name("cost"), message);
            return;
        }
        self.of_default(rule, groups, &path.name("cost"));
    }

    /// A limit below the default cost admits no request without the value.
    fn of_default(&mut self, rule: &Rule, groups: &[LimitGroup], path: &DocumentPath<'_>) {
        let Some(Cost::Table(table)) = &rule.cost else { return };
        let Some(default) = table.default else { return };
        // More tokens than the most reserve the most.
        let bound = if table.tokens.is_some() { table.most } else { None };
        let cost = bound.map_or(default, |most| default.min(most));
        if let Some(limit) = LimitGroup::limits(groups).find(|limit| limit.never_fits(cost)) {
            let (name, most) = (limit.name(), limit.capacity());
            let message = format!(
                "`{name}` never admits a request without the value: by `default` it costs {cost}, and the limit holds \
                 {most} at most"
            );
            self.warn(&path.name("default"), message);
        }
    }

    /// Limits with the same name belong together only if their period is the same.
    fn of_names(&mut self, groups: &[LimitGroup], path: &DocumentPath<'_>) {
        let differs = |first: &Limit, limit: &Limit| first.period() != limit.period();
        if let Some(limit) = LimitGroup::different(groups, differs) {
            let name = limit.name();
            let message = format!(
                "the limits called `{name}` are of one time and of another: give those that do not belong \
                 together a `name`"
            );
            self.warn(&path.name("name"), message);
        }
    }

    fn of_key(&mut self, rule: &str, key: &Key, path: &DocumentPath<'_>) {
        let chosen_by_client = match key {
            Key::Header(name) => format!("header (`{name}`)"),
            Key::Cookie(name) => format!("cookie (`{name}`)"),
            Key::Query(name) => format!("query parameter (`{name}`)"),
            Key::Path => "path, in any spelling,".to_owned(),
            Key::Host => "host".to_owned(),
            Key::Method => "method".to_owned(),
            Key::Optional(inner) => {
                if is_clients(inner) {
                    let message =
                        format!("a client that leaves it out is not limited by rule `{rule}`");
                    self.warn(path, message);
                }
                return;
            }
            // The server knows these, or the keys inside are looked at by themselves.
            Key::Ip
            | Key::Route
            | Key::Global
            | Key::Country
            | Key::Region
            | Key::Claim(_)
            | Key::Const(_)
            | Key::First(_)
            | Key::All(_) => return,
        };
        let message = format!(
            "rule `{rule}` is keyed by a {chosen_by_client} that the client may invent: each new one has a fresh \
             budget, unless something else rejects those that were made up"
        );
        self.warn(path, message);
    }

    fn of_condition(&mut self, when: &Condition, path: &DocumentPath<'_>) {
        for (name, spec) in [("path", &when.path), ("route", &when.route)] {
            let path = path.name(name);
            for (i, pattern) in spec.iter().flat_map(Texts::as_slice).enumerate() {
                let path = match spec {
                    Some(Texts::Any(_)) => path.index(i),
                    _ => path,
                };
                self.of_pattern(pattern, &path);
            }
        }
        // With a wildcard of the same bytes beside it, the exception is for no other spelling.
        if when.not.as_ref().is_some_and(|not| not.path.is_some() && not.wildcards.is_empty()) {
            self.warn(
                &path.name("not").name("path"),
                "a path matches in every way that it may be read, so a client may spell another one to \
                 be among these: where the framework routes, make exceptions by `route`",
            );
        }
    }

    fn of_pattern(&mut self, pattern: &str, path: &DocumentPath<'_>) {
        if let Some(segment) = PathKey::literal_segment(pattern) {
            let message = format!(
                "`{segment}` is compared literally, so hardly any request has such a path: a segment of any value is \
                 written `{{id}}`, and the rest of a path `*`"
            );
            self.warn(path, message);
        }
    }

    /// The conditions of the throttle.
    fn of_throttle(&mut self) {
        let Some(throttle) = &self.document.throttle else { return };
        let path = DocumentPath::Root.name("throttle");
        throttle.each_condition(&path, &mut |when, path| self.of_condition(when, path));
    }

    fn of_tiers(&mut self) {
        let Document { rules, tiers, customers, .. } = self.document;
        let chosen = || rules.iter().filter_map(|rule| rule.tiers.as_ref());
        if chosen().next().is_none() {
            for name in tiers.keys() {
                self.warn(&DocumentPath::Root.name("tiers").name(name), "no rule goes by tiers");
            }
        }
        if !customers.is_empty() && chosen().all(|tiers| tiers.customer.is_none()) {
            self.warn(&DocumentPath::Root.name("customers"), "no rule chooses tiers by `customer`");
        }
    }

    /// Without `proxies`, the client's address is that of the nearest proxy.
    fn of_addresses(&mut self) {
        let path = DocumentPath::Root.name("rules");
        let by_address =
            |rule: &Rule| uses_address(&rule.key) || rule.when.iter().any(asks_address);
        let first = self.document.rules.iter().position(by_address);
        if let (Some(first), None) = (first, &self.document.proxies) {
            self.warn(&path.index(first), NO_PROXIES);
        }
    }

    /// A request that meets too many rules would be a server error.
    fn of_many(&mut self) {
        let tiers = self.document.tiers.values().map(|tier| tier.limits.len()).max().unwrap_or(0);
        let most = |rule: &Rule| {
            let cases = rule.cases.iter().map(|case| case.limits.len());
            let tiers = if rule.tiers.is_some() { tiers } else { 0 };
            cases.chain([tiers, rule.limits.len()]).max().unwrap_or(0)
        };
        let rules = &self.document.rules;
        let sum = |rules: &mut dyn Iterator<Item = &Rule>| rules.map(most).sum::<usize>();
        let (which, sum) = match together(rules.iter().map(|rule| (rule.when.as_ref(), most(rule))))
        {
            Together::Few => return,
            Together::Many(met) => {
                let first: Vec<_> = met.iter().take(2).map(|at| &*rules[*at].name).collect();
                let which = format!("the rules `{}` and others apply", first.join("`, `"));
                (which, sum(&mut met.iter().map(|at| &rules[*at])))
            }
            Together::Unknown => ("all rules apply".to_owned(), sum(&mut rules.iter())),
        };
        let message = format!(
            "a request to which {which} is charged to {sum} limits, and is answered with an error beyond \
             {MAX_LIMITS}: let no request meet so many"
        );
        self.warn(&DocumentPath::Root.name("rules"), message);
    }
}

/// Whether the client chooses the value.
fn is_clients(key: &Key) -> bool {
    match key {
        Key::Header(_) | Key::Cookie(_) | Key::Query(_) => true,
        Key::First(keys) => keys.iter().all(is_clients),
        Key::All(keys) => keys.iter().any(is_clients),
        // Every request has these, or only the server can leave them out.
        Key::Ip
        | Key::Route
        | Key::Method
        | Key::Path
        | Key::Host
        | Key::Global
        | Key::Country
        | Key::Region
        | Key::Claim(_)
        | Key::Const(_)
        | Key::Optional(_) => false,
    }
}

fn uses_address(key: &Key) -> bool {
    match key {
        Key::Ip | Key::Country | Key::Region => true,
        Key::First(keys) | Key::All(keys) => keys.iter().any(uses_address),
        Key::Optional(key) => uses_address(key),
        Key::Route
        | Key::Method
        | Key::Path
        | Key::Host
        | Key::Global
        | Key::Header(_)
        | Key::Cookie(_)
        | Key::Query(_)
        | Key::Claim(_)
        | Key::Const(_) => false,
    }
}

fn asks_address(when: &Condition) -> bool {
    let own = when.network.is_some() || when.country.is_some() || when.region.is_some();
    own || when.not.iter().any(|not| asks_address(not)) || when.any.iter().any(asks_address)
}
