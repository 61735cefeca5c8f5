//! Checks a file of Envoy's rate limit service.

use std::path::Path;

use sluicegate_envoy::service::{Domain, Rule};

use super::Invalid;
use super::request::Example;

pub(super) fn check(path: &Path, example: &Example) -> Result<(), Invalid> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        eprintln!("{shown}: {error}");
        Invalid
    })?;
    let (domain, warnings) = Domain::read(&text).map_err(|problems| {
        eprintln!("{}", problems.in_file(shown.to_string()));
        Invalid
    })?;
    println!("{shown}: {}", words_of(&domain));
    for warning in &warnings {
        println!("{shown}:{warning}");
    }
    for entries in example.descriptors() {
        let said: Vec<_> = entries.iter().map(|(key, value)| format!("{key}={value}")).collect();
        println!("  {} meets {}", said.join(","), met(domain.rule(&entries)));
    }
    if domain.is_meant() {
        return Ok(());
    }
    eprintln!(
        "{shown}: no descriptor has a `rate_limit`: say `descriptors: []` if there are to be no limits"
    );
    Err(Invalid)
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
