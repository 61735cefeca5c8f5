//! Policies out of documents.

mod amounts;
mod condition;
mod context;
mod cost;
mod key;
mod limit;
mod reject;
mod room;
mod rule;
mod tiers;

use std::collections::BTreeMap;

use tollgate_core::{Charge, KnownLimits, Limit, Missing, Rejection, Rule as CoreRule, View};

use self::context::Context;
use self::rule::Rule;
use crate::document::{self, Document};
use crate::environment::Environment;
use crate::path::Path;
use crate::problem::Problems;

/// The policies of a document, compiled: a [`Rule`](CoreRule) like those that code makes.
///
/// They do not change: what is read anew becomes other policies.
///
/// ```
/// use tollgate_config::{Environment, Policies, read_toml};
/// use tollgate_core::KnownLimits;
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
/// # Ok::<(), tollgate_config::Problems>(())
/// ```
#[derive(Debug)]
pub struct Policies {
    rules: Vec<Rule>,
    /// The rule of each limit, by its name.
    owners: BTreeMap<String, usize>,
}

impl Policies {
    /// Compiles a document, whose names `environment` explains.
    ///
    /// # Errors
    ///
    /// All that is wrong with it: tiers and functions that nobody defined, limits that are none, names
    /// that stand for two things.
    pub fn new(document: &Document, environment: &Environment) -> Result<Self, Problems> {
        let context = Context::new(document, environment);
        tiers::look(&context);
        let list = Path::Root.name("rules");
        let mut policies = Self { rules: Vec::new(), owners: BTreeMap::new() };
        for (index, said) in document.rules.iter().enumerate() {
            let path = list.index(index);
            let is_named_so = |other: &document::Rule| other.name == said.name;
            if document.rules[..index].iter().any(is_named_so) {
                let message = format!(
                    "another rule is called `{}` as well, expected a name of its own",
                    said.name
                );
                context.wrong(&path.name("name"), message);
                continue;
            }
            policies.add(Rule::new(said, &path, &context), &path, &context);
        }
        context.finish(policies)
    }

    /// Adds a rule whose limits have names that no other rule's have.
    fn add(&mut self, rule: Option<Rule>, path: &Path<'_>, context: &Context<'_>) {
        let Some(rule) = rule else { return };
        let owner = self.rules.len();
        let mut taken = None;
        rule.each_limit(&mut |limit| {
            let name = limit.name().to_string();
            if *self.owners.entry(name.clone()).or_insert(owner) != owner {
                taken = taken.take().or(Some(name));
            }
        });
        if let Some(name) = taken {
            let expected = "expected a name that tells them apart";
            let message = format!("limits of another rule are called `{name}` as well, {expected}");
            context.wrong(&path.name("name"), message);
        }
        self.rules.push(rule);
    }

    /// What happens to a request that the limit of this name refuses.
    pub fn rejection_of(&self, limit: &str) -> Option<&Rejection> {
        self.owners.get(limit).and_then(|owner| self.rules.get(*owner)).map(|rule| &rule.rejection)
    }
}

impl<V: View> CoreRule<V> for Policies {
    fn owes(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        self.rules.iter().try_for_each(|rule| rule.owes(view, charge))
    }
}

impl KnownLimits for Policies {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.rules.iter().for_each(|rule| rule.each_limit(&mut *each));
    }
}
