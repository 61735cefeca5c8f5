use std::fmt;
use std::sync::Arc;

use crate::document::{self, Condition, Document, Key};
use crate::reader::text_within_bounds;
use crate::{Diagnostic, PolicyError, SourceLocation};
use sluicegate_core::Limit;
use sluicegate_core::rule::KnownLimits;

use super::Map;
use super::lookup::Level;
use super::rule::{Rate, Rule};
use crate::envoy::file::read_domain;

/// One domain of Envoy's rate limit service: a file, in a form that finds the rule of a descriptor quickly.
pub struct Domain {
    name: Box<str>,
    top: Level,
    rules: usize,
    is_meant: bool,
}

impl Domain {
    /// Reads a file of the service. Returns warnings about settings without an effect.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the file.
    pub fn read(text: &str) -> Result<(Self, Vec<Diagnostic>), PolicyError> {
        let text = text_within_bounds(text)?;
        let (domain, warnings) = read_domain(text)?;
        let top = Level::of(&domain);
        let mut rules = 0;
        top.each_rule(&mut |_| rules += 1);
        let is_meant = domain.said.is_some();
        Ok((Self { name: domain.name.into(), top, rules, is_meant }, warnings))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many rules it has.
    pub fn len(&self) -> usize {
        self.rules
    }

    /// Whether it has no rule.
    pub fn is_empty(&self) -> bool {
        self.rules == 0
    }

    /// Whether the file says what is limited: it has a rule, or `descriptors: []`. A file that was cut off may have
    /// neither.
    pub fn is_meant(&self) -> bool {
        self.is_meant
    }

    /// The rule that a descriptor with these keys and values meets.
    pub fn rule<T: AsRef<[u8]>>(&self, entries: &[(T, T)]) -> Option<&Rule> {
        self.top.rule(entries)
    }

    /// Calls `each` with every rule, in no particular order.
    pub fn each_rule(&self, each: &mut dyn FnMut(&Rule)) {
        self.top.each_rule(each);
    }

    /// Its limits as a document, so that [`Live`](crate::Live) checks them and tells what a reload changes.
    /// It does not decide about HTTP requests.
    pub fn document(&self) -> Document {
        let mut document = Document::default();
        if self.is_meant {
            document.source.mark("rules", SourceLocation { line: 1, column: 1 });
        }
        self.top.each_rule(&mut |rule| {
            if let Some(rate) = rule.rate {
                document.rules.push(as_rule(rate, rule.shadow || rule.quota));
            }
        });
        document.rules.sort_by(|one, other| one.name.cmp(&other.name));
        document
    }

    pub(super) fn top(&self) -> &Level {
        &self.top
    }
}

/// The method of the rules in a domain's document. No request has it.
const NO_METHOD: &str = "DESCRIPTOR";

fn as_rule(rate: Rate, shadow: bool) -> document::Rule {
    let named = rate.limit();
    // The name of a limit is that of its only rule.
    let name = named.name().to_string();
    let limit = Limit::fixed_window(named.count(), rate.unit.period());
    let limit = if shadow { limit.shadow() } else { limit };
    let mut rule = document::Rule::new(&name, Key::Const(name.clone())).limit(limit);
    if rate.count == 0 {
        rule = rule.cost(2);
    }
    // A file may have more limits than one request may meet.
    let mut never = Condition::default();
    never.method = Some(NO_METHOD.into());
    rule.when = Some(never);
    rule
}

impl KnownLimits for Domain {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.top.each_rule(&mut |rule| {
            if let Some(rate) = rule.rate {
                each(&rate.limit());
            }
        });
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain").field("name", &self.name).field("rules", &self.rules).finish()
    }
}

/// The domains that a service answers for.
#[derive(Debug, Clone, Default)]
pub struct Domains(Map<str, Arc<Domain>>);

impl Domains {
    /// No domain.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a domain. Returns the one that had this name before, if there was one.
    pub fn add(&mut self, domain: Arc<Domain>) -> Option<Arc<Domain>> {
        self.0.insert(domain.name().into(), domain)
    }

    /// The domain with this name.
    pub fn named(&self, name: &str) -> Option<&Domain> {
        self.0.get(name).map(Arc::as_ref)
    }

    /// The domains, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Domain> {
        self.0.values().map(Arc::as_ref)
    }
}
