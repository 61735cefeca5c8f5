//! Reads documents past errors, so that all errors are reported at once.

use serde::de::{Deserialize, DeserializeOwned};

use super::error::{FormError, Kind, nearest};
use crate::compile::Policies;
use crate::document::{Document, Rule, Tier};
use crate::environment::Environment;
use crate::source::DocumentPath;
use crate::source::SourceMap;
use crate::source::{Data, Node, Step, Stub};
use crate::source::{Diagnostic, MOST, PolicyError};

/// The document in `root`. Reports all errors of form, and errors of meaning in the parts with a correct form.
/// `problems` are the errors found so far.
pub(super) fn document(mut root: Node, problems: Vec<Diagnostic>) -> Result<Document, PolicyError> {
    // Most documents have no errors. Looking for them part by part would read each part twice.
    if problems.is_empty() {
        if let Ok(document) = <Document as Deserialize<'_>>::deserialize(&root) {
            return Ok(Document { source: SourceMap::of(root), ..document });
        }
    }
    let mut repair = Repair { problems, left: AGAIN, ..Repair::default() };
    let read = repair.document(&mut root);
    let source = SourceMap::of(root);
    let document = read.map(|document| Document { source, ..document });
    match document {
        Some(document) if repair.problems.is_empty() => return Ok(document),
        Some(document) => repair.add_meaning(&document),
        None if repair.problems.is_empty() => {
            return Err(Diagnostic::new("", "this is not a document").into());
        }
        None => {}
    }
    PolicyError::and_more(repair.problems, usize::from(repair.full))
        .map_or(Ok(Document::default()), Err)
}

/// A value of any type in `root`, and where its parts are. Reports all errors of form. `problems` are the errors found so
/// far.
#[cfg(all(feature = "toml", feature = "json"))]
pub(super) fn value<T: DeserializeOwned>(
    mut root: Node,
    problems: Vec<Diagnostic>,
) -> Result<(T, SourceMap), PolicyError> {
    let mut repair = Repair { problems, left: AGAIN, ..Repair::default() };
    match (repair.read(&mut root, &[]), PolicyError::of(repair.problems)) {
        (Some(value), None) => Ok((value, SourceMap::of(root))),
        (_, Some(error)) => Err(error),
        (None, None) => Err(Diagnostic::new("", "this cannot be read").into()),
    }
}

/// The most values that are read again in total. Each error makes its whole rule be read once more.
const AGAIN: usize = 5_000_000;

/// The errors, and where values were replaced because of them.
#[derive(Default)]
struct Repair {
    problems: Vec<Diagnostic>,
    /// Whether reading ended early, because of too many errors or too many values to read again.
    full: bool,
    /// How many more values may be read again.
    left: usize,
    /// The paths of replaced values. Their errors were reported.
    replaced: Vec<Vec<Step>>,
    /// The paths of tables from which a value was removed. That they are incomplete is a consequence.
    emptied: Vec<Vec<Step>>,
    /// The paths that misspelt names seem to be meant for.
    meant: Vec<Vec<Step>>,
    /// The paths of incomplete values.
    incomplete: Vec<Vec<Step>>,
}

/// How many values were replaced and errors reported before a value was read.
struct Checkpoint {
    replaced: usize,
    problems: usize,
}

impl Repair {
    /// Reads the long parts value by value first, so that an error in one value does not make all of them be read
    /// again.
    fn document(&mut self, root: &mut Node) -> Option<Document> {
        if let Some(Node { data: Data::List(rules), .. }) = root.entry("rules") {
            for (index, rule) in rules.iter_mut().enumerate() {
                self.read::<Rule>(rule, &[Step::Name("rules".into()), Step::Index(index)]);
            }
        }
        if let Some(Node { data: Data::Table(tiers), .. }) = root.entry("tiers") {
            for (name, tier) in tiers {
                let at = [Step::Name("tiers".into()), Step::Name(name.clone())];
                self.read::<Tier>(&mut tier.value, &at);
            }
        }
        if let Some(Node { data: Data::Table(customers), .. }) = root.entry("customers") {
            for (name, tier) in customers {
                if !matches!(tier.value.data, Data::Text(_)) {
                    let at = [Step::Name("customers".into()), Step::Name(name.clone())];
                    self.read::<String>(&mut tier.value, &at);
                }
            }
        }
        // The long parts are taken out while the rest is read, or each error in the rest would read them again.
        let long = ["rules", "tiers", "customers"].map(|name| {
            let node = root.entry(name)?;
            let whole = matches!(node.data, Data::List(_) | Data::Table(_));
            let nothing = match node.data {
                Data::List(_) => Data::List(Vec::new()),
                _ => Data::Table(Default::default()),
            };
            whole.then(|| (name, std::mem::replace(&mut node.data, nothing)))
        });
        let head = self.read::<Document>(root, &[]);
        for (name, data) in long.into_iter().flatten() {
            if let Some(node) = root.entry(name) {
                // The error, a table instead of a list, was reported.
                if !matches!(node.data, Data::Stub(_) | Data::Gone) {
                    node.data = data;
                }
            }
        }
        head.filter(|_| !self.full).and_then(|_| Document::deserialize(&*root).ok())
    }

    /// Reads a value, and replaces the parts of it that are wrong. Nothing more is read once reading has ended early.
    fn read<T: DeserializeOwned>(&mut self, node: &mut Node, at: &[Step]) -> Option<T> {
        if self.full {
            return None;
        }
        let before = Checkpoint { replaced: self.replaced.len(), problems: self.problems.len() };
        let size = node.size();
        loop {
            let error = match T::deserialize(&*node) {
                Ok(value) => return Some(value),
                Err(error) => error,
            };
            let left = self.left.checked_sub(size);
            self.left = left.unwrap_or_default();
            self.full |= left.is_none() || self.problems.len() > MOST;
            if self.full || !self.repair(node, at, error, &before) {
                break;
            }
        }
        // That reading ended early is said by itself.
        if self.problems.len() == before.problems && (!self.full || self.problems.is_empty()) {
            self.report(node, at, &[], &Kind::Other("this cannot be read".to_owned()));
        }
        node.data = Data::Gone;
        self.incomplete.push(at[..at.len().saturating_sub(1)].to_vec());
        None
    }

    /// Reports an error and replaces the value. Returns whether that was possible.
    fn repair(
        &mut self,
        node: &mut Node,
        at: &[Step],
        FormError { kind, mut path }: FormError,
        before: &Checkpoint,
    ) -> bool {
        path.reverse();
        let whole = [at, &path].concat();
        let beside = |name: &str, path: &[Step]| [path, &[Step::Name(name.to_owned())]].concat();
        let missing = match kind {
            Kind::MissingField(name) => Some(name),
            _ => None,
        };
        // An error about a missing value is found at the table, and concerns the place where the value would be.
        let about = missing.map_or(whole.clone(), |name| beside(name, &whole));
        let follows = missing.is_none() && self.emptied.contains(&whole);
        // What stands in for a value may not fit either. That error is one of ours, and not of the file.
        let is_reported = |replaced: &Vec<Step>| about.starts_with(replaced);
        if !follows && !self.replaced[before.replaced..].iter().any(is_reported) {
            self.report(node, at, &path, &kind);
        }
        let Some(wrong) = node.at(&path) else { return false };
        self.replaced.push(about);
        if missing.is_some_and(|name| wrong.supply(name)) {
            return true;
        }
        let mut meant = None;
        wrong.data = match (&kind, &wrong.data) {
            (Kind::UnknownField { name, known }, _) => {
                let (_, parent) = whole.split_last().unwrap_or((&Step::Index(0), &[]));
                self.emptied.push(parent.to_vec());
                meant = nearest(name, known).map(|name| beside(name, parent));
                Data::Gone
            }
            // A stand-in begins as a text or a number, and becomes a table where only a table fits. Each value is
            // replaced at most twice and supplied at most once, so the loop comes to an end.
            (_, Data::Stub(Stub::Any)) => Data::Stub(Stub::Table),
            (Kind::MissingField(_), _) | (_, Data::Stub(Stub::Table)) if path.is_empty() => {
                return false;
            }
            // Nothing fits here, so the error concerns the value that contains this one.
            (Kind::MissingField(_), _) | (_, Data::Stub(Stub::Table)) => {
                // Of the document itself, only this part is incomplete.
                self.incomplete.push(whole[..(whole.len() - 1).max(1)].to_vec());
                Data::Gone
            }
            (_, Data::Gone) => return false,
            _ => Data::Stub(Stub::Any),
        };
        if let Some(meant) = meant {
            // That the correct name is missing is a consequence, unless it is there as well.
            let is_there = meant.strip_prefix(at).and_then(|way| node.at(way)).is_some();
            self.replaced.extend((!is_there).then(|| meant.clone()));
            self.meant.push(meant);
        }
        true
    }

    fn report(&mut self, node: &Node, at: &[Step], path: &[Step], kind: &Kind) {
        let (location, is_table) = with_path(&DocumentPath::Root, path, |path| {
            let (location, name) = node.find(path);
            // An error about a name is where the name is.
            let name = name.filter(|_| matches!(kind, Kind::UnknownField { .. }));
            let is_table = matches!(node.value(path), Some(Node { data: Data::Table(_), .. }));
            (name.unwrap_or(location), is_table)
        });
        let whole = [at, path].concat();
        let path = with_path(&DocumentPath::Root, &whole, |path| path.to_string());
        let hint = match is_table && path == "rules" {
            true => ": in TOML, each rule begins with `[[rules]]`",
            false => "",
        };
        self.problems.push(Diagnostic::new(path, format!("{kind}{hint}")).at(Some(location)));
    }

    /// Adds the errors of meaning, except those that depend on a replaced value.
    fn add_meaning(&mut self, document: &Document) {
        if self.problems.len() > MOST {
            return;
        }
        let Err(problems) = Policies::new(document, &Environment::guessing()) else { return };
        let in_words = |paths: &[Vec<Step>]| -> Vec<String> {
            let words =
                |way: &Vec<Step>| with_path(&DocumentPath::Root, way, |path| path.to_string());
            paths.iter().map(words).collect()
        };
        let repaired = [in_words(&self.replaced), in_words(&self.incomplete)].concat();
        // A rule or a tier needs no limits beside these.
        let instead = |path: &String| {
            let (parent, name) = path.rsplit_once('.')?;
            matches!(name, "tiers" | "unlimited").then(|| format!("{parent}.limits"))
        };
        let limits: Vec<_> = repaired.iter().filter_map(instead).collect();
        // Rules and customers name tiers, and a dialect names rules.
        let (mut no_tiers, mut no_rules) = (false, false);
        for path in repaired.iter().chain(&in_words(&self.meant)) {
            no_tiers |= path == "tiers";
            no_rules |= path == "rules" || path.starts_with("rules[") && path.ends_with("].name");
        }
        let names_a_tier = |path: &str| {
            within(path, "customers")
                || path.starts_with("rules[")
                    && (path.ends_with("].tiers.default") || path.ends_with("].tiers.by"))
        };
        let depends = |path: &str| {
            no_tiers && names_a_tier(path)
                || no_rules && within(path, "dialect")
                || limits.iter().any(|limits| limits == path)
                || repaired.iter().any(|repaired| within(path, repaired) || within(repaired, path))
        };
        let own = problems.iter().filter(|problem| !depends(problem.path()));
        self.problems.extend(own.cloned());
    }
}

/// Whether the value at `path` is part of the value at `whole`.
fn within(path: &str, whole: &str) -> bool {
    let rest = path.strip_prefix(whole);
    rest.is_some_and(|rest| whole.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

fn with_path<O>(
    parent: &DocumentPath<'_>,
    steps: &[Step],
    then: impl FnOnce(&DocumentPath<'_>) -> O,
) -> O {
    match steps {
        [] => then(parent),
        [Step::Name(name), rest @ ..] => with_path(&parent.name(name), rest, then),
        [Step::Index(index), rest @ ..] => with_path(&parent.index(*index), rest, then),
    }
}
