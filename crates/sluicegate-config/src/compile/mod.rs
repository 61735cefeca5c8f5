//! Policies from documents.
//!
//! A file decides by the same parts as code. A compiled rule is the core's `By` over enums of the core's
//! own keys, limits and costs, because a `View` cannot be a trait object. Tests send random requests to a
//! file and to the same rules in code, and compare the charges.

mod amounts;
mod condition;
mod context;
mod cost;
mod dialect;
mod key;
mod limit;
pub(crate) mod proxy;
mod rule;
#[cfg(feature = "throttle")]
pub(crate) mod throttle;
mod tiers;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sluicegate_core::adapter::{Charge, Hold, Index};
use sluicegate_core::key::{Missing, Proxies, View};
use sluicegate_core::limit::MAX_LIMITS;
use sluicegate_core::rule::{KnownLimits, Rule as CoreRule};
use sluicegate_core::{Ip, Limit, Rejection};
use sluicegate_llm::Dialect;

use self::context::Context;
pub use self::context::time;
use self::rule::Rule;
pub(crate) use self::rule::{BLOCKED, RankedRejection};
pub(crate) use self::tiers::LimitGroup;
use crate::document::{self, Document, HoldUntil, Reject, Settle};
use crate::environment::Environment;
use crate::source::DocumentPath;
use crate::source::PolicyError;

/// The compiled policies of a document: a [`Rule`](CoreRule) that decides like the same rules in code.
///
/// They never change, and clones share them. [`Live`](crate::Live) replaces policies while a service runs.
///
/// ```
/// use sluicegate_config::{Environment, Policies, read_toml};
/// use sluicegate_core::rule::KnownLimits;
///
/// let document = read_toml(
///     r#"
///     [[rules]]
///     name = "api"
///     key = "ip"
///     limits = ["100/minute burst 20"]
///     "#,
/// )?;
/// let policies = Policies::new(&document, &Environment::new())?;
/// policies.each_limit(&mut |limit| assert_eq!(limit.name().to_string(), "api"));
/// # Ok::<(), sluicegate_config::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Policies {
    rules: Arc<Rules>,
}

#[derive(Debug)]
struct Rules {
    list: Vec<Rule>,
    /// Finds the rules that may apply to a request.
    index: Index,
    /// The index of the rule of each limit, by the limit's name.
    owners: HashMap<String, usize>,
    /// The index of the rule of each limit, by the limit's row in a store.
    rows: HashMap<u64, usize>,
    /// Whether a rule counts tokens.
    counts_tokens: bool,
    /// The index of the first rule that settles by tokens.
    tokens_settled_by: Option<usize>,
    hold: Hold,
    dialect: Option<Dialect>,
    listen: Option<proxy::Listen>,
    upstream: Option<proxy::Upstream>,
    trusted: Option<Proxies>,
    client_header: Option<String>,
    ip: Ip,
    #[cfg(feature = "throttle")]
    throttle: Option<throttle::Throttling>,
}

impl Policies {
    /// Compiles a document. `environment` provides what the document names.
    ///
    /// # Errors
    ///
    /// Every error in the document, such as unknown tiers and functions, limits that are not valid, and duplicate
    /// names.
    pub fn new(document: &Document, environment: &Environment) -> Result<Self, PolicyError> {
        let policies = Self::compile(document, environment, true)?;
        // Only now, because limits that would share a row are found by rows that outlive a change of numbers.
        if environment.is_never_reloaded {
            return Self::compile(document, environment, false);
        }
        Ok(policies)
    }

    /// Compiles a document. `carries`: whether all limits carry over what was spent when their numbers change.
    fn compile(
        document: &Document,
        environment: &Environment,
        carries: bool,
    ) -> Result<Self, PolicyError> {
        let context = Context::new(document, environment, carries);
        tiers::look(&context);
        let list = DocumentPath::Root.name("rules");
        let hold = match document.hold_until.unwrap_or_default() {
            HoldUntil::Head => Hold::Head,
            HoldUntil::End => Hold::End,
        };
        let root = DocumentPath::Root;
        let listen = document.listen.as_ref();
        let listen = listen.and_then(|spec| proxy::listen(spec, &root.name("listen"), &context));
        let upstream = document.upstream.as_ref();
        let upstream =
            upstream.and_then(|spec| proxy::upstream(spec, &root.name("upstream"), &context));
        // The context has reported entries that are wrong.
        let trusted = document.proxies.as_ref();
        let client_header = trusted.and_then(|spec| spec.header.clone());
        let trusted = trusted.and_then(|spec| Proxies::try_from(&spec.trusted).ok());
        let count = document.rules.len();
        let mut names = HashSet::with_capacity(count);
        let mut rules = Rules {
            list: Vec::with_capacity(count),
            index: Index::default(),
            owners: HashMap::with_capacity(count),
            rows: HashMap::with_capacity(count),
            counts_tokens: false,
            tokens_settled_by: None,
            hold,
            dialect: None,
            listen,
            upstream,
            trusted,
            client_header,
            ip: context.ip.clone(),
            #[cfg(feature = "throttle")]
            throttle: None,
        };
        for (index, spec) in document.rules.iter().enumerate() {
            let path = list.index(index);
            let rule = Rule::new(spec, &path, &context);
            if spec.reject == Some(Reject::Degrade) && document.rules.len() > 1 {
                context.report(&path.name("reject"), DISARMS);
            }
            let path = path.name("name");
            if names.insert(&spec.name) {
                rules.add(rule, &path, &context);
            } else {
                let name = &spec.name;
                context.report(&path, format!("another rule is also called `{name}`, {OWN}"));
            }
        }
        if document.upstream.is_some() {
            proxy::report_unseen(document, &context);
        }
        let of_tokens = |rule: &document::Rule| matches!(&rule.settle, Some(Settle::Table(table)) if table.tokens.is_some());
        rules.tokens_settled_by = document.rules.iter().position(of_tokens);
        if let (Hold::Head, Some(index)) = (hold, rules.tokens_settled_by) {
            context.report(&list.index(index).name("settle"), TOO_SOON);
        }
        if let Some(spec) = &document.dialect {
            let path = DocumentPath::Root.name("dialect");
            // The names of a rule with an error are not known.
            let complete = rules.list.len() == document.rules.len();
            let names = rules.owners.keys();
            rules.dialect = dialect::dialect(spec, names, complete, &path, &context);
        }
        if let Some(spec) = &document.throttle {
            let path = DocumentPath::Root.name("throttle");
            if let Some(why) = environment.no_throttle {
                context.report(&path, why);
            }
            #[cfg(feature = "throttle")]
            {
                rules.throttle = throttle::Throttling::new(spec, &path, &context);
            }
            #[cfg(not(feature = "throttle"))]
            {
                let _ = spec;
                context.report(&path, crate::absent::needs("throttle"));
            }
        }
        // Only what is certain is an error. What may be is a warning of `check`.
        let fewest: usize = rules.list.iter().map(|rule| rule.fewest).sum();
        if fewest > MAX_LIMITS {
            let message = format!(
                "every request is charged by at least {fewest} limits, but {MAX_LIMITS} is the maximum: expected \
                 fewer limits, or `when` in some rules"
            );
            context.report(&list, message);
        }
        context.finish(Self { rules: Arc::new(rules) })
    }

    /// The limits of each rule, for reports.
    pub(crate) fn limit_groups(&self) -> impl Iterator<Item = &[LimitGroup]> {
        self.rules.list.iter().map(|rule| rule.groups.as_slice())
    }

    /// The rules that may apply to a request, in the order of the file, as their indexes in it. With
    /// [`charge_by`](Self::charge_by), this is for programs that judge requests of which they know only a part: one rule may be
    /// beyond what they know, and the others are not.
    pub fn candidates<V: View>(&self, view: &V) -> impl Iterator<Item = usize> {
        self.rules.index.candidates(view)
    }

    /// Charges a request by one rule.
    ///
    /// # Errors
    ///
    /// Returns what the request lacks. Some limits of the rule may be charged then.
    pub fn charge_by<V: View>(
        &self,
        rule: usize,
        view: &V,
        charge: &mut Charge,
    ) -> Result<(), Missing> {
        self.rules.list.get(rule).map_or(Ok(()), |rule| rule.charge(view, charge))
    }

    /// The names of the rules, in the order of the file.
    pub fn rule_names(&self) -> impl Iterator<Item = &str> {
        self.rules.list.iter().map(|rule| rule.name.as_str())
    }

    /// What happens to a request that the limit with this name refuses.
    pub fn rejection_of(&self, limit: &str) -> Option<&Rejection> {
        self.refused_by(limit).map(|refused| &refused.rejection)
    }

    /// Until when a served request holds its places, for the `hold_until` of a layer.
    pub fn hold_until(&self) -> Hold {
        self.rules.hold
    }

    /// Whether a rule counts tokens of a language model.
    pub fn counts_tokens(&self) -> bool {
        self.rules.counts_tokens
    }

    /// The first rule whose charge depends on when and how a request is answered: by `count_if`, by `settle` other than that of tokens, or
    /// by a limit of requests in flight.
    pub fn needs_answer(&self) -> Option<&str> {
        let mut rules = self.rules.list.iter();
        rules.find(|rule| rule.needs_answer).map(|rule| rule.name.as_str())
    }

    /// Whether a rule that counts tokens of a language model may charge this request. Then its body has to be read, and that
    /// of its answer, as [`Estimate`](sluicegate_llm::Estimate) and
    /// [`UsageReader`](sluicegate_llm::UsageReader) do.
    pub fn counts_tokens_of<V: View>(&self, view: &V) -> bool {
        let Rules { list, index, counts_tokens, .. } = &*self.rules;
        // A condition that cannot be evaluated may hold: reading a body in vain costs less than a budget that was not
        // charged.
        let may_count = |at: usize| list[at].counts_tokens && list[at].may_apply(view);
        *counts_tokens && index.candidates(view).any(may_count)
    }

    /// Header fields and errors as an API of language models has them, for the `dialect` and the `respond` of a layer.
    /// `None` if the document has no `[dialect]`.
    pub fn dialect(&self) -> Option<&Dialect> {
        self.rules.dialect.as_ref()
    }

    /// Where a proxy listens, if the document says so.
    pub fn listen(&self) -> Option<&proxy::Listen> {
        self.rules.listen.as_ref()
    }

    /// The application behind a proxy, if the document names it.
    pub fn upstream(&self) -> Option<&proxy::Upstream> {
        self.rules.upstream.as_ref()
    }

    /// The proxies whose forwarding headers are believed, if the document names them.
    pub fn trusted(&self) -> Option<&Proxies> {
        self.rules.trusted.as_ref()
    }

    /// The key and the condition of the rule that has a limit of this name, in words.
    pub fn rule_in_words(&self, limit: &str) -> Option<&str> {
        let Rules { list, owners, .. } = &*self.rules;
        owners.get(limit).and_then(|owner| list.get(*owner)).map(|rule| rule.words.as_str())
    }

    /// The header in which those proxies pass the client's address on, if the document chooses one.
    pub fn client_header(&self) -> Option<&str> {
        self.rules.client_header.as_deref()
    }

    /// Finds the address of a client, as the keys `ip` of the document do.
    pub fn ip(&self) -> &Ip {
        &self.rules.ip
    }

    pub(crate) fn tokens_settled_by(&self) -> Option<usize> {
        self.rules.tokens_settled_by
    }

    #[cfg(feature = "throttle")]
    pub(crate) fn throttling(&self) -> Option<&throttle::Throttling> {
        self.rules.throttle.as_ref()
    }

    pub(crate) fn refused_by(&self, limit: &str) -> Option<&RankedRejection> {
        let Rules { list, owners, .. } = &*self.rules;
        owners.get(limit).and_then(|owner| list.get(*owner)).map(|rule| &rule.refused)
    }
}

const TOO_SOON: &str = "the tokens of an answer are known at the end of its body, and `hold_until = \"head\"` settles before: \
                        expected no `hold_until`";

const OWN: &str = "expected a unique name";

const DISARMS: &str = "a degraded request is charged by no rule, so it would bypass the others: expected this to be \
                       the only rule of the file";

impl Rules {
    /// Adds a rule. Its limits must not have the names of another rule's limits.
    fn add(&mut self, rule: Option<Rule>, path: &DocumentPath<'_>, context: &Context<'_>) {
        let Some(rule) = rule else { return };
        let owner = self.list.len();
        let mut taken = None;
        rule.each_limit(&mut |limit| {
            let has_name = *self.owners.entry(limit.name().to_string()).or_insert(owner) == owner;
            // Limits of one row would share what was spent, whatever they are called.
            if *self.rows.entry(limit.id()).or_insert(owner) != owner || !has_name {
                taken = taken.take().or_else(|| Some(limit.name().to_string()));
            }
        });
        if let Some(name) = taken {
            let message = format!("a limit of another rule is also called `{name}`, {OWN}");
            context.report(path, message);
        }
        // The position in the index is that in the list, so both grow together.
        self.counts_tokens |= rule.counts_tokens;
        rule.add_to(&mut self.index);
        self.list.push(rule);
    }
}

impl<V: View> CoreRule<V> for Policies {
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        let Rules { list, index, .. } = &*self.rules;
        // In the order of the file, as all rules one by one would be: the first that lacks its key decides what the
        // error says.
        index.candidates(view).try_for_each(|at| list[at].charge(view, charge))
    }
}

impl KnownLimits for Policies {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.rules.list.iter().for_each(|rule| rule.each_limit(&mut *each));
    }
}
