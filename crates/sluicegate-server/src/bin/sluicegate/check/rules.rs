//! Checks a file of rules.

use std::path::Path;

use sluicegate_config::{Live, PolicyFile, check as look};
use sluicegate_core::adapter::{Charge, Debit};
use sluicegate_core::rule::Rule;
use sluicegate_server::{DescribedRequest, Policies};

use super::request::Example;
use super::{Invalid, proxied, report, say};

pub(super) fn check(path: &Path, example: &Example) -> Result<(), Invalid> {
    let looked = look(PolicyFile::new(path)).map_err(report)?;
    // `serve` has nothing to offer to a file that names functions of a service.
    let policies = Policies::new().rules(path);
    // The proxies that ask `serve` say who their clients are, and an option names them. `sluicegate proxy` has the file alone.
    let serves = |policies: &Policies| {
        policies.live().is_some_and(|rules| rules.policies().upstream().is_none())
    };
    let is_served = policies.as_ref().is_ok_and(serves);
    say(if is_served { looked.knows_addresses() } else { looked })?;
    let policies = policies.map_err(report)?;
    for line in policies.live().map(|live| proxied::described(&live.policies())).unwrap_or_default()
    {
        say(line)?;
    }
    let in_force = policies.live().map(Live::policies);
    if in_force.is_some_and(|rules| rules.counts_tokens() && rules.upstream().is_none()) {
        say(TOKENS)?;
    }
    match (policies.live(), example.request()) {
        (Some(rules), Some(request)) => explain(rules, &request),
        _ => Ok(()),
    }
}

const TOKENS: &str = "warning: a rule counts tokens. `sluicegate proxy` reads them in bodies. `sluicegate serve` knows them only from \
                      clients of `POST /v1/take`, not where a proxy asks it about requests.";

/// Tells what a request is charged.
fn explain(rules: &Live, request: &DescribedRequest) -> Result<(), Invalid> {
    let what = format!("\n{} {}", request.method, request.path);
    let mut charge = Charge::new();
    match rules.charge(&request.view(), &mut charge) {
        Err(missing) if missing.is_client() => {
            say(format_args!("{what} is answered with 400: {missing}"))
        }
        Err(missing) => {
            say(format_args!("{what} cannot be decided: {missing}"))?;
            Err(Invalid)
        }
        Ok(()) if charge.is_empty() => say(format_args!("{what} is charged by no limit")),
        Ok(()) => {
            say(format_args!("{what} is charged:"))?;
            for debit in charge.debits() {
                let Debit { limit, cost, .. } = debit;
                say(format_args!("  {cost} by {}: {}", limit.name(), words(limit)))?;
            }
            Ok(())
        }
    }
}

/// A limit without its name.
fn words(limit: &sluicegate_core::Limit) -> String {
    let text = limit.to_string();
    let name = limit.own_name().map(|name| format!(" named {name:?}"));
    text.replace(&name.unwrap_or_default(), "").replace(" carried", "")
}
