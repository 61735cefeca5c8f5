//! Where the values of a document are in its text.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::{Diagnostic, SourceLocation};
use super::path::DocumentPath;
use super::tree::Node;

/// The location of each value of a document in its text, by the value's path, such as `rules[1].limits[0].burst`.
///
/// All source maps are equal, so that documents with the same contents are equal.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    /// The values of the text with their locations.
    values: Option<Arc<Node>>,
    /// Whether some list or table of the text is empty. Hardly any text has one, and each rule asks several times.
    has_empties: bool,
    /// Marks by path. They take precedence.
    marks: BTreeMap<String, Mark>,
}

#[derive(Debug, Clone)]
struct Mark {
    location: SourceLocation,
    /// The path in the text, if the text has another format than the document.
    shown: Option<String>,
}

impl SourceMap {
    #[cfg(any(feature = "toml", feature = "json"))]
    /// The source map of a document that was read from these values.
    pub(crate) fn of(values: Node) -> Self {
        let has_empties = values.has_empties();
        Self { values: Some(Arc::new(values)), has_empties, marks: BTreeMap::new() }
    }

    /// Sets the location of the value at `path`.
    pub fn mark(&mut self, path: impl Into<String>, location: SourceLocation) {
        self.marks.insert(path.into(), Mark { location, shown: None });
    }

    /// Like [`mark`](Self::mark), for a text of another format, in which the path is `shown`.
    #[cfg(feature = "envoy")]
    pub(crate) fn mark_as(
        &mut self,
        path: impl Into<String>,
        location: SourceLocation,
        shown: impl Into<String>,
    ) {
        self.marks.insert(path.into(), Mark { location, shown: Some(shown.into()) });
    }

    /// A diagnostic about the value at a path such as `cases[1].requests[0].at`. If the value is missing, it has the location
    /// of the table that lacks it.
    pub fn diagnostic(&self, path: &str, message: impl Into<String>) -> Diagnostic {
        fn problem(
            map: &SourceMap,
            path: &DocumentPath<'_>,
            left: &str,
            message: String,
        ) -> Diagnostic {
            let left = left.strip_prefix('.').unwrap_or(left);
            if let Some((index, rest)) =
                left.strip_prefix('[').and_then(|left| left.split_once(']'))
            {
                let index = index.parse().unwrap_or(usize::MAX);
                return problem(map, &path.index(index), rest, message);
            }
            let (name, rest) = left.split_at(left.find(['.', '[']).unwrap_or(left.len()));
            match name {
                "" => map.problem(path, message),
                name => problem(map, &path.name(name), rest, message),
            }
        }
        problem(self, &DocumentPath::Root, path, message.into())
    }

    /// Whether the text has a value with this name at the top level.
    pub(crate) fn says(&self, name: &str) -> bool {
        self.marks.contains_key(name) || self.values.as_ref().is_some_and(|root| root.says(name))
    }

    /// Whether the document was read from a text in its own format. A reader of another format may make empty conditions.
    pub(crate) fn is_of_text(&self) -> bool {
        self.values.is_some()
    }

    /// Whether the text has an empty list or table at `path`.
    pub(crate) fn has_empty(&self, path: &DocumentPath<'_>) -> bool {
        self.has_empties && self.values.as_ref().is_some_and(|root| root.has_empty(path))
    }

    /// A diagnostic about the value at `path`. If the value is missing, it has the location of its parent.
    pub(crate) fn problem(
        &self,
        path: &DocumentPath<'_>,
        message: impl Into<String>,
    ) -> Diagnostic {
        let text = path.to_string();
        match (self.find(path, &text), &self.values) {
            (Some(mark), _) => {
                let shown = mark.shown.clone().unwrap_or(text);
                Diagnostic::new(shown, message).at(Some(mark.location))
            }
            (None, Some(root)) => {
                let (location, _) = root.find(path);
                Diagnostic::new(text, message).at(Some(location))
            }
            (None, None) => Diagnostic::new(text, message),
        }
    }

    /// The mark of the path, or of its nearest parent with one.
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

impl PartialEq for SourceMap {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_the_text_stands_where_it_is_missing() {
        let mut origin = SourceMap::default();
        origin.mark("rules[0]", SourceLocation { line: 3, column: 1 });
        let root = DocumentPath::Root;
        let rules = root.name("rules");
        let rule = rules.index(0);
        let problem = origin.problem(&rule.name("key"), "there is no key");
        assert_eq!(problem.to_string(), "3:1: rules[0].key: there is no key");
        let problem = origin.problem(&rules, "there are none");
        assert_eq!(problem.to_string(), "rules: there are none");
    }
}
