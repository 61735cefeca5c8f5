//! Policies out of documents.

mod key;
mod limit;
mod notes;

use tollgate_core::{Charge, KeyBuf, KnownLimits, Limit, Limits, Missing, Rejection, Rule, View};

use crate::document::Document;
use crate::environment::Environment;
use crate::path::Path;
use crate::problem::Problems;

use self::key::Key;
use self::notes::Notes;

/// The policies of a document, compiled: a [`Rule`] like those that code makes.
#[derive(Debug)]
pub struct Policies {
    rules: Vec<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    key: Key,
    limits: Limits,
}

impl Policies {
    /// Compiles a document, whose names `environment` explains.
    ///
    /// # Errors
    ///
    /// All that is wrong with it: tiers and functions that nobody defined, limits that are none, names
    /// that stand for two things.
    pub fn new(document: &Document, environment: &Environment) -> Result<Self, Problems> {
        let _ = environment;
        let notes = Notes::new(&document.origin);
        let root = Path::Root;
        let list = root.name("rules");
        let mut rules = Vec::new();
        for (index, rule) in document.rules.iter().enumerate() {
            let path = list.index(index);
            let key = Key::compile(&rule.key, &path.name("key"), &notes);
            let limits = limit::compile(&rule.name, &rule.limits, &path.name("limits"), &notes);
            if let (Some(key), Some(limits)) = (key, limits) {
                rules.push(Compiled { key, limits });
            }
        }
        notes.finish(Self { rules })
    }

    /// What happens to a request that the limit of this name refuses.
    pub fn rejection_of(&self, limit: &str) -> Option<&Rejection> {
        let _ = limit;
        None
    }
}

impl<V: View> Rule<V> for Policies {
    fn owes(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        for rule in &self.rules {
            let mut key = KeyBuf::new();
            tollgate_core::Key::write(&rule.key, view, &mut key)?;
            rule.limits.iter().try_for_each(|limit| charge.owe(*limit, key, 1))?;
        }
        Ok(())
    }
}

impl KnownLimits for Policies {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.rules.iter().for_each(|rule| rule.limits.iter().for_each(&mut *each));
    }
}
