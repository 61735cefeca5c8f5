//! Policies out of documents.
//!
//! A file decides by the same parts as code. A compiled rule is the core's `By` over enums of the core's
//! own keys, limits and costs, because a `View` cannot be a trait object. Tests send random requests to a
//! file and to the same rules in code, and compare the charges.

mod amounts;
mod condition;
mod context;
mod cost;
mod key;
mod limit;
mod listed;
mod reject;
mod room;
mod rule;
mod settlement;
mod tiers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sluicegate_core::adapter::{Charge, Hold};
use sluicegate_core::key::{Missing, View};
use sluicegate_core::limit::MAX_LIMITS;
use sluicegate_core::rule::{KnownLimits, Rule as CoreRule};
use sluicegate_core::{Limit, Rejection};

use self::context::Context;
pub(crate) use self::listed::Listed;
pub(crate) use self::reject::{BLOCKED, Refused};
use self::rule::Rule;
use crate::document::{Document, HoldUntil, Reject};
use crate::environment::Environment;
use crate::source::DocumentPath;
use crate::source::PolicyError;

/// The policies of a document, compiled: a [`Rule`](CoreRule) like those that code makes.
///
/// They do not change, and clones are the same: what is read anew becomes other policies.
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

#[derive(Debug, Default)]
struct Rules {
    list: Vec<Rule>,
    /// Where the rule stands of each limit, by its name.
    owners: BTreeMap<String, usize>,
    /// The same by what its state is kept as, which can be another's name.
    rows: BTreeMap<u64, usize>,
    hold: Hold,
}

impl Policies {
    /// Compiles a document, whose names `environment` explains.
    ///
    /// # Errors
    ///
    /// All that is wrong with it: tiers and functions that nobody defined, limits that are none, names
    /// that stand for two things.
    pub fn new(document: &Document, environment: &Environment) -> Result<Self, PolicyError> {
        let context = Context::new(document, environment);
        tiers::look(&context);
        let list = DocumentPath::Root.name("rules");
        let hold = match document.hold_until.unwrap_or_default() {
            HoldUntil::Head => Hold::Head,
            HoldUntil::End => Hold::End,
        };
        let mut rules = Rules { hold, ..Rules::default() };
        let mut names = BTreeSet::new();
        for (index, said) in document.rules.iter().enumerate() {
            let path = list.index(index);
            let rule = Rule::new(said, &path, &context);
            if said.reject == Some(Reject::Degrade) && document.rules.len() > 1 {
                context.wrong(&path.name("reject"), DISARMS);
            }
            let path = path.name("name");
            if names.insert(&said.name) {
                rules.add(rule, &path, &context);
            } else {
                let name = &said.name;
                context.wrong(&path, format!("another rule is called `{name}` as well, {OWN}"));
            }
        }
        let fewest: usize = rules.list.iter().map(|rule| rule.fewest).sum();
        if fewest > MAX_LIMITS {
            let message = format!(
                "every request is charged to at least {fewest} limits, and none can be charged to more than \
                 {MAX_LIMITS}: expected fewer, or `when` for some"
            );
            context.wrong(&list, message);
        }
        context.finish(Self { rules: Arc::new(rules) })
    }

    /// The limits of each rule, for people to read.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &[Listed]> {
        self.rules.list.iter().map(|rule| rule.listed.as_slice())
    }

    /// What happens to a request that the limit of this name refuses.
    pub fn rejection_of(&self, limit: &str) -> Option<&Rejection> {
        self.refused_by(limit).map(|refused| &refused.rejection)
    }

    /// Until when a served request holds its places, for the `hold_until` of a layer.
    pub fn hold_until(&self) -> Hold {
        self.rules.hold
    }

    pub(crate) fn refused_by(&self, limit: &str) -> Option<&Refused> {
        let Rules { list, owners, .. } = &*self.rules;
        owners.get(limit).and_then(|owner| list.get(*owner)).map(|rule| &rule.refused)
    }
}

const OWN: &str = "expected a name of its own";

const DISARMS: &str = "a request that is served less is charged to no rule, and slips past the others, expected \
                       the rule to be the only one of its file";

impl Rules {
    /// Adds a rule whose limits have names that no other rule's have.
    fn add(&mut self, rule: Option<Rule>, path: &DocumentPath<'_>, context: &Context<'_>) {
        let Some(rule) = rule else { return };
        let owner = self.list.len();
        let mut taken = None;
        rule.each_limit(&mut |limit| {
            let name = limit.name().to_string();
            let has_name = *self.owners.entry(name.clone()).or_insert(owner) == owner;
            if *self.rows.entry(limit.id()).or_insert(owner) != owner || !has_name {
                taken = taken.take().or(Some(name));
            }
        });
        if let Some(name) = taken {
            let message = format!("a limit of another rule is called `{name}` as well, {OWN}");
            context.wrong(path, message);
        }
        self.list.push(rule);
    }
}

impl<V: View> CoreRule<V> for Policies {
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        self.rules.list.iter().try_for_each(|rule| rule.charge(view, charge))
    }
}

impl KnownLimits for Policies {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.rules.list.iter().for_each(|rule| rule.each_limit(&mut *each));
    }
}
