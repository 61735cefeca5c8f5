//! Where the parts of a document stand in the text that it was read from.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::path::DocumentPath;
use crate::problem::{Place, Problem};
use crate::read::Node;

/// Where each value of a document stands in its text: by its path, such as `rules[1].limits[0].burst`.
///
/// Two documents are equal if they say the same, wherever that stands: so all origins are.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The values of the text, which know where they stand.
    values: Option<Arc<Node>>,
    /// What was said otherwise, by path.
    marks: BTreeMap<String, Mark>,
}

#[derive(Debug, Clone)]
struct Mark {
    place: Place,
    /// The path to be told, where the text is of another format than the document.
    shown: Option<String>,
}

impl Origin {
    #[cfg(any(feature = "toml", feature = "json"))]
    /// That of a document that these values say.
    pub(crate) fn of(values: Node) -> Self {
        Self { values: Some(Arc::new(values)), marks: BTreeMap::new() }
    }

    /// Notes that what is at `path` in the document stands at `place` in the text.
    pub fn mark(&mut self, path: impl Into<String>, place: Place) {
        self.marks.insert(path.into(), Mark { place, shown: None });
    }

    /// The same, where the text is of another format, in which the path is `shown`.
    pub fn mark_as(&mut self, path: impl Into<String>, place: Place, shown: impl Into<String>) {
        self.marks.insert(path.into(), Mark { place, shown: Some(shown.into()) });
    }

    /// Whether the text says something at the top under this name.
    pub(crate) fn says(&self, name: &str) -> bool {
        self.marks.contains_key(name) || self.values.as_ref().is_some_and(|root| root.says(name))
    }

    /// A problem with what stands at `path`, or with what it should stand in.
    pub(crate) fn problem(&self, path: &DocumentPath<'_>, message: impl Into<String>) -> Problem {
        let text = path.to_string();
        match (self.find(path, &text), &self.values) {
            (Some(mark), _) => {
                let shown = mark.shown.clone().unwrap_or(text);
                Problem::new(shown, message).at(Some(mark.place))
            }
            (None, Some(root)) => {
                let (place, _) = root.find(path);
                Problem::new(text, message).at(Some(place))
            }
            (None, None) => Problem::new(text, message),
        }
    }

    /// The mark of the path, else of the nearest that it goes through.
    fn find(&self, path: &DocumentPath<'_>, text: &str) -> Option<&Mark> {
        if self.marks.is_empty() {
            return None;
        }
        self.marks.get(text).or_else(|| match path {
            DocumentPath::Root => None,
            DocumentPath::Name(parent, _) | DocumentPath::Index(parent, _) => {
                self.find(parent, &parent.to_string())
            }
        })
    }
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_the_text_stands_where_it_is_missing() {
        let mut origin = Origin::default();
        origin.mark("rules[0]", Place { line: 3, column: 1 });
        let root = DocumentPath::Root;
        let rules = root.name("rules");
        let rule = rules.index(0);
        let problem = origin.problem(&rule.name("key"), "there is no key");
        assert_eq!(problem.to_string(), "3:1: rules[0].key: there is no key");
        let problem = origin.problem(&rules, "there are none");
        assert_eq!(problem.to_string(), "rules: there are none");
    }
}
