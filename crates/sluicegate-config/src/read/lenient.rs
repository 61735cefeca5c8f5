//! Reads documents past errors, so that all errors are reported at once.

use serde::de::{Deserialize, DeserializeOwned};

use super::explain;
use super::value::Misfit;
use crate::compile::Policies;
use crate::document::{Document, Rule, Tier};
use crate::environment::Environment;
use crate::source::DocumentPath;
use crate::source::SourceMap;
use crate::source::{Data, Node, Step, Stub};
use crate::source::{Diagnostic, MOST, PolicyError};

/// The document in `root`. Reports all errors of form, and errors of meaning in the parts with a correct form.
/// `told` are the errors found so far.
pub(super) fn document(mut root: Node, told: Vec<Diagnostic>) -> Result<Document, PolicyError> {
    // Most documents have no errors. Looking for them part by part would read each part twice.
    if told.is_empty() {
        if let Ok(document) = <Document as Deserialize<'_>>::deserialize(&root) {
            return Ok(Document { source: SourceMap::of(root), ..document });
        }
    }
    let mut mended = Mended::new(told);
    let read = mended.document(&mut root);
    let source = SourceMap::of(root);
    let document = read.map(|document| Document { source, ..document });
    match document {
        Some(document) if mended.problems.is_empty() => return Ok(document),
        Some(document) => mended.add_meaning(&document),
        None if mended.problems.is_empty() => {
            return Err(Diagnostic::new("", "this is not a document").into());
        }
        None => {}
    }
    PolicyError::and_more(mended.problems, usize::from(mended.full))
        .map_or(Ok(Document::default()), Err)
}

/// The most values that are read again in total. Each error makes its whole rule be read once more.
const AGAIN: usize = 5_000_000;

/// The errors, and where values were replaced because of them.
struct Mended {
    problems: Vec<Diagnostic>,
    /// Whether reading ended early, because of too many errors or too many values to read again.
    full: bool,
    /// How many more values may be read again.
    left: usize,
    /// The paths of replaced values. Their errors were reported.
    touched: Vec<Vec<Step>>,
    /// The paths of tables from which a value was removed. That they are incomplete is a consequence.
    emptied: Vec<Vec<Step>>,
    /// The paths of incomplete values.
    broken: Vec<Vec<Step>>,
}

/// The state before a value was read.
struct Begun {
    touched: usize,
    told: usize,
}

impl Mended {
    fn new(problems: Vec<Diagnostic>) -> Self {
        Self {
            problems,
            full: false,
            left: AGAIN,
            touched: Vec::new(),
            emptied: Vec::new(),
            broken: Vec::new(),
        }
    }

    /// Reads the long parts value by value first, so that an error in one value does not make all of them be read
    /// again.
    fn document(&mut self, root: &mut Node) -> Option<Document> {
        if let Some(Node { data: Data::List(rules), .. }) = root.entry("rules") {
            for (index, rule) in rules.iter_mut().enumerate() {
                if self.full {
                    return None;
                }
                self.read::<Rule>(rule, &[Step::Name("rules".into()), Step::Index(index)]);
            }
        }
        if let Some(Node { data: Data::Table(tiers), .. }) = root.entry("tiers") {
            for (name, tier) in tiers {
                if self.full {
                    return None;
                }
                let at = [Step::Name("tiers".into()), Step::Name(name.clone())];
                self.read::<Tier>(&mut tier.value, &at);
            }
        }
        if let Some(Node { data: Data::Table(customers), .. }) = root.entry("customers") {
            for (name, tier) in customers {
                if self.full {
                    return None;
                }
                if !matches!(tier.value.data, Data::Text(_)) {
                    let at = [Step::Name("customers".into()), Step::Name(name.clone())];
                    self.read::<String>(&mut tier.value, &at);
                }
            }
        }
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

    /// Reads a value, and replaces the parts of it that are wrong.
    fn read<T: DeserializeOwned>(&mut self, node: &mut Node, at: &[Step]) -> Option<T> {
        let begun = Begun { touched: self.touched.len(), told: self.problems.len() };
        let size = node.size();
        loop {
            let misfit = match T::deserialize(&*node) {
                Ok(value) => return Some(value),
                Err(misfit) => misfit,
            };
            let left = self.left.checked_sub(size);
            self.left = left.unwrap_or_default();
            self.full |= left.is_none() || self.problems.len() > MOST;
            if self.full || !self.mend(node, at, misfit, &begun) {
                break;
            }
        }
        if self.problems.len() == begun.told {
            self.tell(node, at, &[], "this cannot be read");
        }
        node.data = Data::Gone;
        self.broken.push(at[..at.len().saturating_sub(1)].to_vec());
        None
    }

    /// Reports an error and replaces the value. Returns whether that was possible.
    fn mend(&mut self, node: &mut Node, at: &[Step], misfit: Misfit, begun: &Begun) -> bool {
        let Misfit { message, mut way } = misfit;
        way.reverse();
        let whole = [at, &way].concat();
        let beside = |name: &str, path: &[Step]| [path, &[Step::Name(name.to_owned())]].concat();
        let missing = explain::missing(&message);
        let about = missing.map_or(whole.clone(), |name| beside(name, &whole));
        let follows = missing.is_none() && self.emptied.contains(&whole);
        let is_told = |touched: &Vec<Step>| about.starts_with(touched);
        if !follows && !self.touched[begun.touched..].iter().any(is_told) {
            self.tell(node, at, &way, &message);
        }
        let Some(wrong) = node.at(&way) else { return false };
        self.touched.push(about);
        if let Some(name) = missing {
            return wrong.supply(name);
        }
        wrong.data = match wrong.data {
            _ if explain::is_about_name(&message) => {
                // That the correct name is missing is a consequence.
                let (_, parent) = whole.split_last().unwrap_or((&Step::Index(0), &[]));
                self.emptied.push(parent.to_vec());
                if let Some(name) = explain::suggested(&message) {
                    self.touched.push(beside(&name, parent));
                }
                Data::Gone
            }
            Data::Stub(Stub::Any) => Data::Stub(Stub::Table),
            Data::Stub(Stub::Table) if way.is_empty() => return false,
            // Nothing fits here, so the error concerns the value that contains this one.
            Data::Stub(Stub::Table) => {
                self.broken.push(whole[..whole.len() - 1].to_vec());
                Data::Gone
            }
            Data::Gone => return false,
            _ => Data::Stub(Stub::Any),
        };
        true
    }

    fn tell(&mut self, node: &Node, at: &[Step], way: &[Step], message: &str) {
        let problem = with_path(&DocumentPath::Root, way, |path| {
            let (location, name) = node.find(path);
            match explain::is_about_name(message) {
                true => name.unwrap_or(location),
                false => location,
            }
        });
        let path = with_path(&DocumentPath::Root, &[at, way].concat(), |path| path.to_string());
        let mut sentence = explain::sentence(message);
        if path == "rules" && sentence.starts_with("found a table") {
            sentence += ": in TOML, each rule begins with `[[rules]]`";
        }
        self.problems.push(Diagnostic::new(path, sentence).at(Some(problem)));
    }

    /// Adds the errors of meaning, except those that depend on a replaced value.
    fn add_meaning(&mut self, document: &Document) {
        if self.problems.len() > MOST {
            return;
        }
        let Err(problems) = Policies::new(document, &Environment::guessing()) else { return };
        let mended = self.touched.iter().chain(&self.broken);
        let touched: Vec<_> = mended
            .map(|way| with_path(&DocumentPath::Root, way, |path| path.to_string()))
            .collect();
        let hangs = |path: &str| {
            touched.iter().any(|touched| within(path, touched) || within(touched, path))
        };
        let own = problems.iter().filter(|problem| !hangs(problem.path()));
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
