//! The domains of several files.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::{Display, Path};
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

/// A file of which not everything was checked.
struct Parsed {
    path: Box<Path>,
    domain: Domain,
    warnings: Vec<(Box<Path>, Diagnostic)>,
}

enum Read {
    Known(Arc<File>),
    Anew(Box<Parsed>),
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
            let read = match known {
                Some(file) => Ok(Read::Known(Arc::clone(file))),
                None => Read::anew(path, text),
            };
            let file = match read {
                Ok(file) => file,
                Err(problems) => {
                    broken.push(problems.in_file(path.display().to_string()));
                    continue;
                }
            };
            match set.entry(Box::from(file.domain())) {
                Entry::Vacant(place) => {
                    place.insert(file);
                }
                Entry::Occupied(mut other) if merges => {
                    if let Err(problems) = other.get_mut().merge(file) {
                        broken.push(problems.in_file(path.display().to_string()));
                    }
                }
                Entry::Occupied(other) => doubled.push(file.doubles(other.get())),
            }
        }
        let mut compiled = BTreeMap::new();
        for (name, file) in set {
            match file.compile() {
                Ok(file) => drop(compiled.insert(name, file)),
                Err(problems) => broken.push(problems),
            }
        }
        match (broken.is_empty(), doubled.is_empty()) {
            (true, true) => Ok(Self(compiled)),
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

impl Read {
    fn anew(path: &Path, text: &Result<String, String>) -> Result<Self, PolicyError> {
        let text = text.as_ref().map_err(|why| Diagnostic::new("", why))?;
        let (domain, warnings) = Domain::read(text)?;
        if domain.is_empty() && !domain.is_meant() {
            // A program that writes a file in place empties it first, and limits must not be lifted meanwhile.
            let what = "no descriptor has a `rate_limit`: say `descriptors: []` if there are to be no limits";
            return Err(Diagnostic::new("", what).into());
        }
        let warnings = warnings.into_iter().map(|warning| (path.into(), warning)).collect();
        Ok(Self::Anew(Box::new(Parsed { path: path.into(), domain, warnings })))
    }

    fn domain(&self) -> &str {
        match self {
            Self::Known(file) => file.domain.name(),
            Self::Anew(file) => file.domain.name(),
        }
    }

    fn path(&self) -> Display<'_> {
        match self {
            Self::Known(file) => file.path.display(),
            Self::Anew(file) => file.path.display(),
        }
    }

    /// Adds the descriptors of another file with the same domain.
    fn merge(&mut self, other: Self) -> Result<(), PolicyError> {
        let (Self::Anew(own), Self::Anew(other)) = (self, other) else {
            // Files that are merged are always read anew.
            return Ok(());
        };
        own.domain.merge(other.domain).map_err(|why| {
            let path = own.path.display();
            Diagnostic::new("descriptors", format!("{why}: {path} has this domain too"))
        })?;
        own.warnings.extend(other.warnings);
        Ok(())
    }

    /// That another file has the domain of this one.
    fn doubles(&self, other: &Self) -> PolicyError {
        let what = format!(
            "another file has the domain `{}` already, {}: give each file a domain of its own",
            self.domain(),
            other.path()
        );
        let start = SourceLocation { line: 1, column: 1 };
        let problem = Diagnostic::new("domain", what).at(Some(start));
        PolicyError::from(problem).in_file(self.path().to_string())
    }

    /// Once all files with its domain are there: this looks at all limits of the domain.
    fn compile(self) -> Result<Arc<File>, PolicyError> {
        let Parsed { path, domain, warnings } = match self {
            Self::Known(file) => return Ok(file),
            Self::Anew(file) => *file,
        };
        #[cfg(test)]
        tests::COMPILED.set(tests::COMPILED.get() + 1);
        let document = domain.document();
        let policies = Policies::new(&document, &Environment::new());
        let policies = policies.map_err(|error| error.in_file(path.display().to_string()))?;
        Ok(Arc::new(File { path, domain: Arc::new(domain), warnings, document, policies }))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// How often this thread has compiled the limits of a domain.
        pub(super) static COMPILED: Cell<u32> = const { Cell::new(0) };
    }

    const RATE: &str = "rate_limit: { unit: day, requests_per_unit: 1 }";

    /// A number of files of one domain, each with `each` descriptors of this key.
    fn merged(files: usize, each: usize, key: &str, value: &str) -> Result<Set, PoliciesError> {
        let text = |file| {
            let descriptor =
                |at| format!("- {{ key: {key}, value: '{file}-{at}{value}', {RATE} }}\n");
            let descriptors: String = (0..each).map(descriptor).collect();
            Ok(format!("domain: d\ndescriptors:\n{descriptors}"))
        };
        let found = (0..files).map(|file| (format!("{file:05}.yaml").into(), text(file)));
        Set::read(&found.collect(), true)
    }

    #[test]
    fn very_many_files_of_one_domain_are_merged_before_they_are_compiled() {
        COMPILED.set(0);
        let set = merged(2_000, 10, "user", "").expect("valid");
        assert_eq!(COMPILED.get(), 1);
        let file = set.0.values().next().expect("one domain");
        assert_eq!((set.0.len(), file.domain.len()), (1, 20_000));
        assert_eq!(file.document.rules.len(), 20_000);
    }

    #[test]
    fn merged_files_have_the_bound_of_one_on_wildcards() {
        merged(2, 128, "user", "*").expect("no more than one may have");
        let error = merged(2, 200, "user", "*").expect_err("too many").to_string();
        let why = "descriptors: `user` has more than 256 values with `*` together: 00000.yaml has this domain too";
        assert_eq!(error, format!("00001.yaml: {why}"));
    }
}
