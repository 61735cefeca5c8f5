//! The domains of several files.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use sluicegate_config::document::Document;
use sluicegate_config::envoy::service::{Domain, Domains};
use sluicegate_config::texts::Found;
use sluicegate_config::{Changes, Diagnostic, Environment, Policies, PolicyError, SourceLocation};
use sluicegate_core::Limit;
use sluicegate_core::limit::LimitError;
use sluicegate_core::rule::KnownLimits;

use super::PoliciesError;

/// The domains by their names.
#[derive(Debug, Default)]
pub(super) struct Set(BTreeMap<Box<str>, Arc<File>>);

/// A file that is valid by itself.
#[derive(Debug)]
struct File {
    path: Box<Path>,
    domain: Arc<Domain>,
    /// With the files that they are about.
    warnings: Vec<(Box<Path>, Diagnostic)>,
    document: Document,
    policies: Policies,
}

impl Set {
    /// Reads every file. If it `merges`, several files may have one domain.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with any of them.
    pub(super) fn read(found: &Found, merges: bool) -> Result<Self, PoliciesError> {
        Self::default().read_again(|_| None, found, merges)
    }

    /// Like [`read`](Self::read), but takes a file whose text is the same `before` from this set. A management server sends
    /// thousands of files again for each that has changed.
    pub(super) fn read_again<'t>(
        &self,
        before: impl Fn(&Path) -> Option<&'t Result<String, String>>,
        found: &Found,
        merges: bool,
    ) -> Result<Self, PoliciesError> {
        let known: HashMap<_, _> = self.0.values().map(|file| (&*file.path, file)).collect();
        let mut set = BTreeMap::new();
        let (mut broken, mut doubled) = (Vec::new(), Vec::new());
        for (path, text) in found {
            // A file that was merged has the text of others too.
            let known = known.get(&**path).filter(|_| !merges && before(path) == Some(text));
            let read = known
                .map_or_else(|| File::read(path, text).map(Arc::new), |file| Ok(Arc::clone(file)));
            let file = match read {
                Ok(file) => file,
                Err(problems) => {
                    broken.push(problems.in_file(path.display().to_string()));
                    continue;
                }
            };
            match set.entry(file.domain.name().into()) {
                Entry::Vacant(place) => {
                    place.insert(file);
                }
                Entry::Occupied(mut other) if merges => {
                    // Nobody else has them before the set is in force.
                    let both = Arc::get_mut(other.get_mut()).zip(Arc::into_inner(file));
                    if let Some(Err(problems)) = both.map(|(other, file)| other.merge(file)) {
                        broken.push(problems.in_file(path.display().to_string()));
                    }
                }
                Entry::Occupied(other) => doubled.push(file.doubles(other.get())),
            }
        }
        match (broken.is_empty(), doubled.is_empty()) {
            (true, true) => Ok(Self(set)),
            (true, false) => Err(PoliciesError { several: true, ..PoliciesError::all(doubled) }),
            (false, _) => Err(PoliciesError::all(broken.into_iter().chain(doubled))),
        }
    }

    pub(super) fn domains(&self) -> Domains {
        let mut domains = Domains::new();
        for file in self.0.values() {
            domains.add(Arc::clone(&file.domain));
        }
        domains
    }

    /// Checks every limit.
    pub(super) fn check(
        &self,
        check: &dyn Fn(&Limit) -> Result<(), LimitError>,
    ) -> Result<(), PoliciesError> {
        let mut unkept = Vec::new();
        for file in self.0.values() {
            let mut problems = Vec::new();
            file.domain.each_limit(&mut |limit| {
                if let Err(reason) = check(limit) {
                    let what = format!("the store cannot keep the limit `{limit}`: {reason}");
                    problems.push(Diagnostic::new("", what));
                }
            });
            let problems = PolicyError::of(problems);
            unkept.extend(problems.map(|all| all.in_file(file.path.display().to_string())));
        }
        if unkept.is_empty() { Ok(()) } else { Err(PoliciesError::all(unkept)) }
    }

    /// What is different from `before`, in words: a line for each domain.
    pub(super) fn changes_since(&self, before: &Self) -> Vec<String> {
        let mut told = Vec::new();
        for (name, file) in &self.0 {
            let Some(before) = before.0.get(name) else {
                told.push(format!("domain {name}: new, {} limits", file.domain.len()));
                continue;
            };
            if Arc::ptr_eq(file, before) {
                continue;
            }
            let old = (&before.document, &before.policies);
            let changes = Changes::of(old, (&file.document, &file.policies));
            if !changes.is_empty() {
                told.push(format!("domain {name}: {changes}"));
            }
        }
        let gone = before.0.keys().filter(|name| !self.0.contains_key(*name));
        told.extend(gone.map(|name| format!("domain {name}: removed")));
        told
    }

    /// Logs what is probably a mistake.
    pub(super) fn warn(&self) {
        for file in self.0.values() {
            for (path, warning) in &file.warnings {
                tracing::warn!("{}:{warning}", path.display());
            }
        }
    }
}

impl File {
    fn read(path: &Path, text: &Result<String, String>) -> Result<Self, PolicyError> {
        let text = text.as_ref().map_err(|why| Diagnostic::new("", why))?;
        let (domain, warnings) = Domain::read(text)?;
        if domain.is_empty() && !domain.is_meant() {
            // A program that writes a file in place empties it first, and limits must not be lifted meanwhile.
            let what = "no descriptor has a `rate_limit`: say `descriptors: []` if there are to be no limits";
            return Err(Diagnostic::new("", what).into());
        }
        let document = domain.document();
        let policies = Policies::new(&document, &Environment::new())?;
        let warnings = warnings.into_iter().map(|warning| (path.into(), warning)).collect();
        Ok(Self { path: path.into(), domain: Arc::new(domain), warnings, document, policies })
    }

    /// Adds the descriptors of another file with the same domain.
    fn merge(&mut self, other: Self) -> Result<(), PolicyError> {
        let (Some(domain), Some(other_domain)) =
            (Arc::get_mut(&mut self.domain), Arc::into_inner(other.domain))
        else {
            // Nobody else has them before the set is in force.
            return Ok(());
        };
        domain.merge(other_domain).map_err(|twice| {
            let path = self.path.display();
            Diagnostic::new("descriptors", format!("{twice} is in {path} already, in this domain"))
        })?;
        self.document = domain.document();
        self.policies = Policies::new(&self.document, &Environment::new())?;
        self.warnings.extend(other.warnings);
        Ok(())
    }

    /// That another file has the domain of this one.
    fn doubles(&self, other: &Self) -> PolicyError {
        let what = format!(
            "another file has the domain `{}` already, {}: give each file a domain of its own",
            self.domain.name(),
            other.path.display()
        );
        let start = SourceLocation { line: 1, column: 1 };
        let problem = Diagnostic::new("domain", what).at(Some(start));
        PolicyError::from(problem).in_file(self.path.display().to_string())
    }
}
