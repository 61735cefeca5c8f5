//! Where the parts of a document stand in the text that it was read from.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::path::Path;
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
    marks: BTreeMap<String, Receipt>,
}

#[derive(Debug, Clone)]
struct Receipt {
    place: Place,
    /// The path to be told, where the text is of another format than the document.
    shown: Option<String>,
}

impl Origin {
    /// That of a document that these values say.
    pub(crate) fn of(values: Node) -> Self {
        Self { values: Some(Arc::new(values)), marks: BTreeMap::new() }
    }

    /// Notes that what is at `path` in the document stands at `place` in the text.
    pub fn mark(&mut self, path: impl Into<String>, place: Place) {
        self.marks.insert(path.into(), Receipt { place, shown: None });
    }

    /// The same, where the text is of another format, in which the path is `shown`.
    pub fn mark_as(&mut self, path: impl Into<String>, place: Place, shown: impl Into<String>) {
        self.marks.insert(path.into(), Receipt { place, shown: Some(shown.into()) });
    }

    /// Whether the text says something at the top under this name.
    pub(crate) fn says(&self, name: &str) -> bool {
        self.marks.contains_key(name) || self.values.as_ref().is_some_and(|root| root.says(name))
    }

    /// A problem with what stands at `path`, or with what it should stand in.
    pub(crate) fn problem(&self, path: &Path<'_>, message: impl Into<String>) -> Problem {
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
    fn find(&self, path: &Path<'_>, text: &str) -> Option<&Receipt> {
        if self.marks.is_empty() {
            return None;
        }
        self.marks.get(text).or_else(|| match path {
            Path::Root => None,
            Path::Name(parent, _) | Path::Index(parent, _) => {
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

/// Lines and columns of a text, by the offset in bytes.
pub(crate) struct Lines<'a> {
    text: &'a [u8],
    /// Where each line begins.
    starts: Vec<usize>,
    /// How many characters stand before each step: a text may be one long line.
    before: Vec<usize>,
}

/// Bytes between two counts of characters.
const STEP: usize = 256;

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(breaks).collect();
        let text = text.as_bytes();
        let sums = text.chunks(STEP).scan(0, |sum, chunk| {
            *sum += characters(chunk);
            Some(*sum)
        });
        Self { text, starts, before: std::iter::once(0).chain(sums).collect() }
    }

    pub(crate) fn place(&self, offset: usize) -> Place {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|&start| start <= offset);
        let column = self.characters_before(offset) - self.characters_before(self.starts[line - 1]);
        Place { line, column: column + 1 }
    }

    /// The place of the `column`-th byte in a line, both counted from 1.
    pub(crate) fn place_of_byte(&self, line: usize, column: usize) -> Place {
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        self.place(start + column.saturating_sub(1))
    }

    fn characters_before(&self, offset: usize) -> usize {
        let step = offset / STEP;
        self.before[step] + characters(&self.text[step * STEP..offset])
    }
}

/// How many characters begin here.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters() {
        let lines = Lines::new("a = 1\nü = 2\n");
        let place = |line, column| Place { line, column };
        assert_eq!(lines.place(0), place(1, 1));
        assert_eq!(lines.place(4), place(1, 5));
        assert_eq!(lines.place(6), place(2, 1));
        assert_eq!(lines.place(11), place(2, 5));
        assert_eq!(lines.place(100), place(3, 1));
    }

    #[test]
    fn a_long_line_is_counted_to_its_end() {
        let text = format!("{}\n{}x", "ü".repeat(1_000), "ä€".repeat(1_000));
        let lines = Lines::new(&text);
        for (at, char) in text.char_indices() {
            let before = text[..at].rsplit('\n').next().expect("a line");
            let column = before.chars().count() + 1;
            assert_eq!(lines.place(at).column, column, "{at} {char}");
        }
        assert_eq!(lines.place(text.len()), Place { line: 2, column: 2_002 });
    }

    #[test]
    fn what_is_not_in_the_text_stands_where_it_is_missing() {
        let mut origin = Origin::default();
        origin.mark("rules[0]", Place { line: 3, column: 1 });
        let root = Path::Root;
        let rules = root.name("rules");
        let rule = rules.index(0);
        let problem = origin.problem(&rule.name("key"), "there is no key");
        assert_eq!(problem.to_string(), "3:1: rules[0].key: there is no key");
        let problem = origin.problem(&rules, "there are none");
        assert_eq!(problem.to_string(), "rules: there are none");
    }
}
