//! Where the parts of a document stand in the text that it was read from.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::Diagnostic;
use super::location::SourceLocation;
use super::path::DocumentPath;
use super::tree::Node;

/// Where each value of a document stands in its text: by its path, such as `rules[1].limits[0].burst`.
///
/// Two documents are equal if they say the same, wherever that stands: so all origins are.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    /// The values of the text, which know where they stand.
    values: Option<Arc<Node>>,
    /// What was said otherwise, by path.
    marks: BTreeMap<String, Mark>,
}

#[derive(Debug, Clone)]
struct Mark {
    location: SourceLocation,
    /// The path to be told, where the text is of another format than the document.
    shown: Option<String>,
}

impl SourceMap {
    #[cfg(any(feature = "toml", feature = "json"))]
    /// That of a document that these values say.
    pub(crate) fn of(values: Node) -> Self {
        Self { values: Some(Arc::new(values)), marks: BTreeMap::new() }
    }

    /// Notes that what is at `path` in the document stands at `place` in the text.
    pub fn mark(&mut self, path: impl Into<String>, location: SourceLocation) {
        self.marks.insert(path.into(), Mark { location, shown: None });
    }

    /// The same, where the text is of another format, in which the path is `shown`.
    pub fn mark_as(
        &mut self,
        path: impl Into<String>,
        location: SourceLocation,
        shown: impl Into<String>,
    ) {
        self.marks.insert(path.into(), Mark { location, shown: Some(shown.into()) });
    }

    /// Whether the text says something at the top under this name.
    pub(crate) fn says(&self, name: &str) -> bool {
        self.marks.contains_key(name) || self.values.as_ref().is_some_and(|root| root.says(name))
    }

    /// A problem with what stands at `path`, or with what it should stand in.
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
