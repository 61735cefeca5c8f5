//! Checks a file of Envoy's rate limit service.

use std::path::Path;

use sluicegate_config::envoy::service::{Domain, Rule};

use super::request::Example;
use super::{Invalid, report, say, text};

pub(super) fn check(path: &Path, example: &Example) -> Result<(), Invalid> {
    let shown = path.display();
    let text = text(path)?;
    let (domain, warnings) =
        Domain::read(&text).map_err(|problems| report(problems.in_file(shown.to_string())))?;
    say(format_args!("{shown}: {}", words_of(&domain)))?;
    for warning in &warnings {
        say(format_args!("{shown}:{warning}"))?;
    }
    for entries in example.descriptors() {
        let said: Vec<_> = entries.iter().map(|(key, value)| format!("{key}={value}")).collect();
        say(format_args!("  {} meets {}", said.join(","), met(domain.rule(&entries))))?;
    }
    if domain.is_meant() {
        return Ok(());
    }
    Err(report(format_args!(
        "{shown}: no descriptor has a `rate_limit`: say `descriptors: []` if there are to be no limits"
    )))
}

fn words_of(domain: &Domain) -> String {
    let rules = domain.len();
    format!("domain {:?}, {rules} limit{}", domain.name(), if rules == 1 { "" } else { "s" })
}

fn met(rule: Option<&Rule>) -> String {
    match rule {
        None => "no limit".to_owned(),
        Some(rule) => rule.to_string(),
    }
}
