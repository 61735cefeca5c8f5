//! Checks a file of rules.

use std::path::Path;

use sluicegate_config::{Live, PolicyFile, check as look};
use sluicegate_core::adapter::Charge;
use sluicegate_core::rule::Rule;
use sluicegate_server::{DescribedRequest, Policies};

use super::request::Example;
use super::{Invalid, report};

pub(super) fn check(path: &Path, example: &Example) -> Result<(), Invalid> {
    let looked = look(PolicyFile::new(path)).map_err(|problems| {
        eprintln!("{problems}");
        Invalid
    })?;
    println!("{looked}");
    // `serve` has nothing to offer to a file that names functions of a service.
    let policies = Policies::new().rules(path).map_err(|error| report(&error))?;
    match (policies.live(), example.request()) {
        (Some(rules), Some(request)) => explain(rules, &request),
        _ => Ok(()),
    }
}

/// Tells what a request is charged.
fn explain(rules: &Live, request: &DescribedRequest) -> Result<(), Invalid> {
    println!();
    let what = format!("{} {}", request.method, request.path);
    let mut charge = Charge::new();
    match rules.charge(request, &mut charge) {
        Err(missing) if missing.is_client() => {
            println!("{what} is answered with 400: {missing}");
            Ok(())
        }
        Err(missing) => {
            println!("{what} cannot be decided: {missing}");
            Err(Invalid)
        }
        Ok(()) if charge.is_empty() => {
            println!("{what} is charged by no limit");
            Ok(())
        }
        Ok(()) => {
            println!("{what} is charged:");
            for debit in charge.debits() {
                println!("  {} by {}: {}", debit.cost, debit.limit.name(), words(&debit.limit));
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
