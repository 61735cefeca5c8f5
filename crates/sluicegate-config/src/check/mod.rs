//! Checks a file without running anything.

mod together;
mod warnings;

use std::fmt;

use sluicegate_core::Limit;
use sluicegate_core::limit::WhenFull;

use self::warnings::{NO_PROXIES, warnings};
use crate::compile::{LimitGroup, Policies};
use crate::document::{Cost, Document, HoldUntil, Rule, Settle, SettleTable};
use crate::environment::Environment;
use crate::live::Changes;
use crate::policy_file::PolicyFile;
use crate::read::text_of;
use crate::source::{Diagnostic, PolicyError};
use crate::words::{InWords, besides};

/// Reads and compiles a policy file without running anything.
///
/// Anything that only the service can provide, such as a function that the file names, is assumed to exist,
/// and groups in the [`Report`].
///
/// ```no_run
/// match sluicegate_config::check("policies.toml") {
///     Ok(report) => println!("{report}"),
///     Err(problems) => eprintln!("{problems}"),
/// }
/// ```
///
/// # Errors
///
/// Everything that is wrong with the file, or that it cannot be read.
pub fn check(file: impl Into<PolicyFile>) -> Result<Report, PolicyError> {
    read(&file.into()).map(|checked| checked.report)
}

/// Checks a file like [`check`], and reports what it changes compared to the file `before`. A reload would
/// report the same, such as which limits have a new period and start from zero.
///
/// ```no_run
/// match sluicegate_config::check_change("policies.toml", "policies.new.toml") {
///     Ok(report) => println!("{report}"),
///     Err(problems) => eprintln!("{problems}"),
/// }
/// ```
///
/// # Errors
///
/// Everything that is wrong with one of the files, or that it cannot be read.
pub fn check_change(
    before: impl Into<PolicyFile>,
    file: impl Into<PolicyFile>,
) -> Result<Report, PolicyError> {
    let (old, new) = (read(&before.into())?, read(&file.into())?);
    let changes = Changes::between(
        (Some(&old.document), &old.policies),
        (Some(&new.document), &new.policies),
    );
    Ok(Report { changes: Some(changes), ..new.report })
}

/// A valid file.
struct CheckedFile {
    document: Document,
    policies: Policies,
    report: Report,
}

fn read(source: &PolicyFile) -> Result<CheckedFile, PolicyError> {
    let file = source.path().display().to_string();
    let checked = || {
        let text = text_of(source.path())
            .map_err(|error| Diagnostic::new("", format!("the file cannot be read: {error}")))?;
        let (document, idle) = source.read(&text)?;
        let policies = Policies::new(&document, &Environment::assuming())?;
        let report = Report::new(&file, &document, &policies, idle);
        Ok(CheckedFile { document, policies, report })
    };
    checked().map_err(|problems: PolicyError| problems.in_file(&file))
}

/// The contents of a valid file, from [`check`](crate::check()).
///
/// It prints as a readable page.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// The path of the file, as it was given.
    pub file: String,
    /// The rules, in the order of the file.
    pub rules: Vec<RuleReport>,
    /// How many customers have a tier.
    pub customers: usize,
    /// Everything that the service has to provide because the file names it, in words: ``a function for
    /// capacity called `database` ``.
    pub provided: Vec<String>,
    /// Settings that are valid and probably mistakes.
    pub warnings: Vec<Diagnostic>,
    /// The changes since an earlier file, if [`check_change`] was called.
    pub changes: Option<Changes>,
}

/// One rule of a file.
#[derive(Debug, Clone)]
pub struct RuleReport {
    name: String,
    words: Vec<String>,
    groups: Vec<LimitGroup>,
    /// Whether the charge is settled by the response.
    is_settled: bool,
}

impl Report {
    /// `idle` are warnings about settings without an effect.
    fn new(file: &str, document: &Document, policies: &Policies, idle: Vec<Diagnostic>) -> Self {
        let rules = document.rules.iter().zip(policies.limit_groups());
        Self {
            file: file.to_owned(),
            rules: rules.map(|(spec, groups)| RuleReport::new(spec, groups)).collect(),
            customers: document.customers.len(),
            provided: provided(document),
            warnings: warnings(document, policies, idle),
            changes: None,
        }
    }

    /// Leaves out the warning that the file names no `proxies`, for a program that is told elsewhere who its clients are, as
    /// `sluicegate serve` is.
    #[must_use]
    pub fn knows_addresses(mut self) -> Self {
        self.warnings.retain(|warning| warning.message() != NO_PROXIES);
        self
    }
}

impl RuleReport {
    fn new(spec: &Rule, groups: &[LimitGroup]) -> Self {
        let mut words = vec![format!("by {}", InWords(&spec.key))];
        words.extend(spec.when.as_ref().map(|when| format!("where {}", InWords(when))));
        words.extend(besides(spec));
        let is_settled = spec.settle.is_some() || !spec.count_if.is_empty();
        Self { name: spec.name.clone(), words, groups: groups.to_vec(), is_settled }
    }

    /// What `limit`, one of this rule's limits, does with a new key when the store is full.
    pub fn answer_when_full(&self, limit: &Limit) -> WhenFull {
        match self.is_settled && !limit.says_when_full() {
            true => WhenFull::CountTogether,
            false => limit.answer_when_full(),
        }
    }

    /// The limits for each answer to a new key when the store is full, in words.
    fn when_full(&self) -> Vec<String> {
        let answers = [
            (WhenFull::CountTogether, "counts new keys together", "count new keys together"),
            (WhenFull::Admit, "does not count new keys", "do not count new keys"),
            (WhenFull::Refuse, "refuses new keys", "refuse new keys"),
        ];
        let answers = answers.into_iter().filter_map(|(answer, one, many)| {
            let mut names: Vec<_> = (self.limits())
                .filter(|(_, limit)| self.answer_when_full(limit) == answer)
                .map(|(_, limit)| limit.name().to_string())
                .collect();
            names.sort();
            names.dedup();
            let does = if names.len() == 1 { one } else { many };
            (!names.is_empty()).then(|| format!("`{}` {does}", names.join("` and `")))
        });
        answers.collect()
    }

    /// The name of the rule.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The limits, each with its case or tier in words, which is empty if the rule has none.
    pub fn limits(&self) -> impl Iterator<Item = (&str, &Limit)> {
        self.groups.iter().flat_map(|groups| {
            groups.limits.iter().flat_map(|limits| limits.iter()).map(|limit| (&*groups.of, limit))
        })
    }
}

/// Everything that the service has to provide, each once.
fn provided(document: &Document) -> Vec<String> {
    let mut provided = Vec::new();
    // `sluicegate proxy` reads tokens by itself, and has all of these layers.
    let is_proxied = document.upstream.is_some();
    for rule in &document.rules {
        if let Some(Cost::Table(table)) = &rule.cost {
            provided.extend(
                table.call.as_ref().map(|name| format!("a function for costs called `{name}`")),
            );
            if table.tokens.is_some() && !is_proxied {
                provided.push("the layer that estimates tokens".to_owned());
            }
        }
        let settles_tokens =
            matches!(&rule.settle, Some(Settle::Table(SettleTable { tokens: Some(_), .. })));
        if settles_tokens && !is_proxied {
            provided.push("the layer that reads the usage of tokens".to_owned());
        }
        for load in rule.cases.iter().filter_map(|case| case.load.as_ref()) {
            provided.extend(
                load.has_capacity
                    .as_ref()
                    .map(|name| format!("a function for capacity called `{name}`")),
            );
            provided.extend(load.in_flight.map(|_| "the count of requests in flight".to_owned()));
        }
    }
    if !is_proxied {
        if document.hold_until == Some(HoldUntil::Head) {
            provided.push("a layer with `hold_until`, from `Policies::hold_until`".to_owned());
        }
        if document.dialect.is_some() {
            provided
                .push("a layer with `dialect` and `respond`, from `Policies::dialect`".to_owned());
        }
        if document.throttle.is_some() {
            provided.push("the throttle's layer, from `Live::throttle`".to_owned());
        }
    }
    provided.sort();
    provided.dedup();
    provided
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, counted(self.rules.len(), "rule"))?;
        if self.customers > 0 {
            write!(f, ", {}", counted(self.customers, "customer"))?;
        }
        for rule in &self.rules {
            write!(f, "\n\n{rule}")?;
        }
        if !self.provided.is_empty() {
            write!(f, "\n\nprovided by the service:")?;
            self.provided.iter().try_for_each(|name| write!(f, "\n  {name}"))?;
        }
        if !self.warnings.is_empty() {
            write!(f, "\n\nwarnings:")?;
            self.warnings
                .iter()
                .try_for_each(|warning| write!(f, "\n  {}:{warning}", self.file))?;
        }
        if let Some(changes) = &self.changes {
            write!(f, "\n\nchanges: {changes}")?;
        }
        Ok(())
    }
}

impl fmt::Display for RuleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.words.join("; "))?;
        for LimitGroup { of, limits, is_apart } in &self.groups {
            let own = if *is_apart { " (a budget of its own)" } else { "" };
            let of = if of.is_empty() { String::new() } else { format!("{of}{own}: ") };
            match limits {
                None => write!(f, "\n  {of}unlimited")?,
                Some(limits) => {
                    for limit in limits.iter() {
                        write!(f, "\n  {of}{}", limit_in_words(limit))?;
                    }
                }
            }
        }
        match self.when_full().join("; ") {
            none if none.is_empty() => Ok(()),
            words => write!(f, "\n  when the store is full: {words}"),
        }
    }
}

/// A limit as in a file, and its name.
fn limit_in_words(limit: &Limit) -> String {
    let text = limit.to_string().replace(" carried", "");
    match limit.own_name() {
        Some(name) => {
            let named = format!(" named {name:?}");
            format!("{} (`{name}`)", text.replace(&named, ""))
        }
        None => text,
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
