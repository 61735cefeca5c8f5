use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use sluicegate_core::Limit;
use sluicegate_core::rule::KnownLimits;

use super::Map;
use super::rule::{Rate, Rule, Statistic};
use crate::document::{self, Condition, Document, Key, Wildcard};
use crate::envoy::limit_path::{Names, Step, digest, spelled};
use crate::envoy::read;
use crate::envoy::tree::{self, Descriptor, Value, WILDCARDS};
use crate::source::{Diagnostic, PolicyError, SourceLocation};

/// One domain of Envoy's rate limit service: a file, in a form that finds the rule of a descriptor quickly.
pub struct Domain {
    name: Box<str>,
    top: Level,
    rules: usize,
    is_meant: bool,
    /// The names of the limits, once another file was added.
    names: Option<Names>,
}

impl Domain {
    /// Reads a file of the service. Returns warnings about settings without an effect.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the file.
    pub fn read(text: &str) -> Result<(Self, Vec<Diagnostic>), PolicyError> {
        let (domain, warnings) = read(text, |domain, _| domain)?;
        let top = Level::of(&domain);
        let mut rules = 0;
        top.each_rule(&mut |_| rules += 1);
        let is_meant = domain.descriptors_at.is_some();
        Ok((Self { name: domain.name.into(), top, rules, is_meant, names: None }, warnings))
    }

    /// Adds the descriptors of another file with this domain, behind its own.
    ///
    /// # Errors
    ///
    /// What both files together have wrong: a descriptor with one key and value in each, or too many values with `*` for a
    /// key. Then this domain has only some of the descriptors.
    pub fn merge(&mut self, mut other: Self) -> Result<(), String> {
        self.name_apart(&mut other);
        self.top.merge(other.top)?;
        self.rules += other.rules;
        self.is_meant |= other.is_meant;
        Ok(())
    }

    /// Gives the limits of `other` whose names are taken here other names.
    fn name_apart(&mut self, other: &mut Self) {
        let names = self.names.get_or_insert_with(|| {
            let mut names = Names::default();
            self.top.each_rule(&mut |rule| {
                names.insert(rule.limit_name().unwrap_or_default());
            });
            names
        });
        let mut taken = Vec::new();
        other.top.each_rule_mut(&mut |rule| {
            if rule.limit_name().is_some_and(|name| !names.insert(name)) {
                taken.push(rule);
            }
        });
        // They come in no particular order.
        taken.sort_by(|one, other| one.statistic.cmp(&other.statistic));
        taken.into_iter().for_each(|rule| rule.rename(self.name.len() + 1, names));
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
        rule = rule.block();
    }
    // A file may have more limits than one request may meet.
    let never = Condition { method: Some(NO_METHOD.into()), ..Condition::default() };
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

/// One level of a domain: what each key leads to.
#[derive(Debug, Default)]
pub(super) struct Level(Map<[u8], Values>);

/// The entries for the values of one key.
#[derive(Debug, Default)]
struct Values {
    exact: Map<[u8], Entry>,
    /// In the order of the file.
    like: Vec<(Box<str>, Entry)>,
    any: Option<Entry>,
}

/// One entry of a file.
#[derive(Debug)]
pub(super) struct Entry {
    rule: Option<Rule>,
    kind: Kind,
    /// Whether statistics have the value.
    by_value: bool,
    below: Level,
}

/// Which values an entry is for.
#[derive(Debug)]
enum Kind {
    Exactly,
    Like(Box<str>),
    /// All of them share one budget.
    Shared(Box<str>),
    Any,
}

/// The rule of a descriptor, and the values that share budgets: for each entry, the pattern instead of the value.
#[derive(Debug, Clone)]
pub(super) struct MatchedRule<'d> {
    pub(super) rule: Cow<'d, Rule>,
    /// The index of an entry, and the pattern that stands for its value.
    pub(super) shared: Vec<(usize, &'d str)>,
}

impl Level {
    /// The top level of a domain that was read without errors.
    fn of(domain: &tree::Domain) -> Self {
        let mut names = Names::default();
        Self::new(&domain.name, &domain.descriptors, &mut Vec::new(), &mut names)
    }

    fn new<'d>(
        domain: &str,
        descriptors: &'d [Descriptor],
        steps: &mut Vec<Step<'d>>,
        names: &mut Names,
    ) -> Self {
        let mut level: Map<[u8], Values> = Map::default();
        for descriptor in descriptors {
            steps.push(Step { entry: descriptor, but: [].into() });
            let rule = rule(domain, descriptor, steps, names);
            let below = Self::new(domain, &descriptor.descriptors, steps, names);
            steps.pop();
            let kind = match &descriptor.value {
                Value::Any => Kind::Any,
                Value::Exactly(_) => Kind::Exactly,
                Value::Like(pattern) if descriptor.shared => Kind::Shared(pattern.as_str().into()),
                Value::Like(pattern) => Kind::Like(pattern.as_str().into()),
            };
            let entry = Entry { rule, kind, by_value: descriptor.by_value, below };
            let values = level.entry(descriptor.key.as_bytes().into()).or_default();
            match &descriptor.value {
                Value::Any => values.any = Some(entry),
                Value::Exactly(value) => {
                    values.exact.insert(value.as_bytes().into(), entry);
                }
                Value::Like(pattern) => values.like.push((pattern.as_str().into(), entry)),
            }
        }
        Self(level)
    }

    fn merge(&mut self, other: Self) -> Result<(), String> {
        for (key, values) in other.0 {
            let own = self.0.entry(key.clone()).or_default();
            own.merge(values).map_err(|value| match &*value {
                b"" => format!("{} is there already", shown(&key)),
                value => {
                    format!("{} with the value {} is there already", shown(&key), shown(value))
                }
            })?;
            // Each value of a request is compared with all of them.
            if own.like.len() > WILDCARDS {
                let key = shown(&key);
                return Err(format!("{key} has more than {WILDCARDS} values with `*` together"));
            }
        }
        Ok(())
    }

    /// The rule that a descriptor with these entries meets, as the service looks it up: an exact value first, then
    /// patterns in the order of the file, then the key alone; without going back. A rule counts only for a descriptor
    /// with as many entries as lead to it.
    pub(super) fn rule<T: AsRef<[u8]>>(&self, entries: &[(T, T)]) -> Option<&Rule> {
        self.walk(entries, |_, _| {})
    }

    /// Like [`rule`](Self::rule), with the values that share budgets.
    pub(super) fn find<'d>(&'d self, entries: &[(&[u8], &[u8])]) -> Option<MatchedRule<'d>> {
        let mut shared = Vec::new();
        let rule = self.walk(entries, |at, entry| {
            if let Kind::Shared(pattern) = &entry.kind {
                shared.push((at, &**pattern));
            }
        })?;
        Some(MatchedRule { rule: Cow::Borrowed(rule), shared })
    }

    /// What the statistics of a rule are called that a descriptor with these entries meets. The service builds these names
    /// while it looks for the limit.
    pub(super) fn statistic<'r>(
        &self,
        domain: &str,
        rule: &'r Rule,
        entries: &[(&[u8], &[u8])],
    ) -> Cow<'r, str> {
        let Statistic { name, detailed, by_value, digest: _ } = &rule.statistic;
        if !detailed && !by_value {
            return Cow::Borrowed(name);
        }
        // A limit that a request brings along is at no place in the file.
        let is_own = !name.is_empty();
        let mut found = Vec::new();
        if is_own {
            self.walk(entries, |_, entry| found.push(entry));
        }
        let is_shared = found.iter().any(|entry| matches!(entry.kind, Kind::Shared(_)));
        let mut written = domain.to_owned();
        for (at, (key, value)) in entries.iter().enumerate() {
            let entry = found.get(at);
            let value = match entry.map(|entry| &entry.kind) {
                Some(Kind::Shared(pattern)) => pattern.as_bytes(),
                _ if *detailed => value,
                Some(Kind::Exactly) => value,
                Some(_) if entry.is_some_and(|entry| entry.by_value) => value,
                Some(Kind::Like(pattern)) => pattern.as_bytes(),
                Some(Kind::Any) | None => b"",
            };
            written.push('.');
            written.push_str(&String::from_utf8_lossy(key));
            // The service writes `key_` where a detailed metric has an empty value.
            if !value.is_empty() || *detailed && is_own && !is_shared {
                written.push('_');
                written.push_str(&String::from_utf8_lossy(value));
            }
        }
        Cow::Owned(written)
    }

    /// Calls `each` with each entry on the way.
    fn walk<'d, T: AsRef<[u8]>>(
        &'d self,
        entries: &[(T, T)],
        mut each: impl FnMut(usize, &'d Entry),
    ) -> Option<&'d Rule> {
        let mut level = self;
        for (at, (key, value)) in entries.iter().enumerate() {
            let entry = level.0.get(key.as_ref())?.find(value.as_ref())?;
            each(at, entry);
            if at + 1 == entries.len() {
                return entry.rule.as_ref();
            }
            level = &entry.below;
        }
        None
    }

    fn each_rule_mut<'r>(&'r mut self, each: &mut dyn FnMut(&'r mut Rule)) {
        for values in self.0.values_mut() {
            let like = values.like.iter_mut().map(|(_, entry)| entry);
            for entry in values.exact.values_mut().chain(like).chain(&mut values.any) {
                entry.rule.iter_mut().for_each(&mut *each);
                entry.below.each_rule_mut(each);
            }
        }
    }

    /// Calls `each` with every rule.
    pub(super) fn each_rule(&self, each: &mut dyn FnMut(&Rule)) {
        for values in self.0.values() {
            let like = values.like.iter().map(|(_, entry)| entry);
            for entry in values.exact.values().chain(like).chain(&values.any) {
                entry.rule.iter().for_each(&mut *each);
                entry.below.each_rule(each);
            }
        }
    }
}

fn shown(text: &[u8]) -> String {
    format!("`{}`", String::from_utf8_lossy(text))
}

impl Values {
    /// The error is the value that both have.
    fn merge(&mut self, other: Self) -> Result<(), Box<[u8]>> {
        for (value, entry) in other.exact {
            if self.exact.insert(value.clone(), entry).is_some() {
                return Err(value);
            }
        }
        for (pattern, entry) in other.like {
            if self.like.iter().any(|(own, _)| *own == pattern) {
                return Err(pattern.as_bytes().into());
            }
            self.like.push((pattern, entry));
        }
        match (&self.any, other.any) {
            (Some(_), Some(_)) => return Err([].into()),
            (None, any) => self.any = any,
            _ => {}
        }
        Ok(())
    }

    fn find(&self, value: &[u8]) -> Option<&Entry> {
        let like = || self.like.iter().find(|(pattern, _)| Wildcard::matches(pattern, value));
        self.exact.get(value).or_else(|| like().map(|(_, entry)| entry)).or(self.any.as_ref())
    }
}

fn rule(
    domain: &str,
    descriptor: &Descriptor,
    steps: &[Step<'_>],
    names: &mut Names,
) -> Option<Rule> {
    let spec = descriptor.limit.as_ref()?;
    let rate = match spec.rate {
        tree::Rate::Unlimited => None,
        tree::Rate::Per(count, unit) => {
            let name = names.give(&spelled(steps), digest(steps));
            // Every count below 2^32 in one of the units is a limit, and every name is one.
            Some(Rate::new(count, unit, &name).ok()?)
        }
    };
    Some(Rule {
        rate,
        name: spec.name.as_deref().map(Into::into),
        replaces: spec.replaces.iter().map(|name| name.as_str().into()).collect(),
        shadow: descriptor.shadow,
        quota: descriptor.quota.is_some(),
        statistic: Statistic {
            name: statistic(domain, steps).into(),
            detailed: descriptor.detailed,
            by_value: steps.iter().any(|step| step.entry.by_value),
            digest: digest(steps),
        },
    })
}

/// The way to a rule as its statistics name it.
fn statistic(domain: &str, steps: &[Step<'_>]) -> String {
    format!("{domain}.{}", spelled(steps))
}
