//! The fields of a map. Each is read once, and unknown fields are errors.

use std::collections::HashSet;

use saphyr::YamlData;

use super::diagnostics::Diagnostics;
use super::yaml::{Node, bare, is_nothing, location, scalar};
use crate::source::{DocumentPath, SourceLocation};

/// The fields of a map that have not been read yet.
pub(super) struct Fields<'n, 't> {
    path: &'n DocumentPath<'n>,
    location: SourceLocation,
    left: Vec<Field<'n, 't>>,
    /// The names of all fields, including those that were read.
    known: HashSet<&'n str>,
}

struct Field<'n, 't> {
    name: &'n str,
    /// The location of the name.
    location: SourceLocation,
    value: &'n Node<'t>,
}

/// A text and its location.
pub(super) type Text<'n> = Option<(SourceLocation, &'n str)>;

impl<'n, 't> Fields<'n, 't> {
    /// The fields of `node` at `path`. `what` describes it in errors.
    pub(super) fn of(
        node: &'n Node<'t>,
        path: &'n DocumentPath<'n>,
        what: &str,
        found: &mut Diagnostics,
    ) -> Option<Self> {
        let mut fields =
            Self { path, location: location(node), left: Vec::new(), known: HashSet::new() };
        if !fields.add(node, found) {
            let what = match kind(node) {
                Some(kind) => format!("{what} is a map of fields, not {kind}"),
                None => format!("{what} is empty, expected a map of fields"),
            };
            found.problem(path, location(node), what);
            return None;
        }
        Some(fields)
    }

    /// Adds new fields of a map, then those of the maps that it merges (`<<`). Returns whether `node` is a map.
    fn add(&mut self, node: &'n Node<'t>, found: &mut Diagnostics) -> bool {
        let YamlData::Mapping(map) = bare(node) else { return false };
        let (mut own, mut merged) = (HashSet::new(), Vec::new());
        for (key, value) in map {
            match scalar(key) {
                Some("<<") => merged.push(value),
                Some(name) if !own.insert(name) => {
                    found.problem(&self.path.name(name), location(key), "this occurs twice");
                }
                Some(name) => {
                    if self.known.insert(name) {
                        self.left.push(Field { name, location: location(key), value });
                    }
                }
                None => found.problem(self.path, location(key), "the name of a field is text"),
            }
        }
        merged.into_iter().for_each(|value| self.merge(value, found));
        true
    }

    /// `<<: *one`, or `<<: [*one, *other]`.
    fn merge(&mut self, value: &'n Node<'t>, found: &mut Diagnostics) {
        let are_maps = match bare(value) {
            YamlData::Sequence(maps) => maps.iter().all(|map| self.add(map, found)),
            _ => self.add(value, found),
        };
        if !are_maps {
            let what =
                format!("`<<` merges a map, or a list of maps, not {}", kind_or_nothing(value));
            found.problem(self.path, location(value), what);
        }
    }

    /// Where the map begins.
    pub(super) fn location(&self) -> SourceLocation {
        self.location
    }

    /// Reports an error in the map as a whole: something is missing.
    pub(super) fn lacks(&self, what: impl Into<String>, found: &mut Diagnostics) {
        found.problem(self.path, self.location, what);
    }

    /// The location of a field's value, if it has one.
    pub(super) fn location_of(&self, name: &str) -> Option<SourceLocation> {
        let field = self.left.iter().find(|field| field.name == name)?;
        (!is_nothing(field.value)).then(|| location(field.value))
    }

    /// The value of a field, if it has one.
    pub(super) fn take(&mut self, name: &str) -> Option<&'n Node<'t>> {
        let at = self.left.iter().position(|field| field.name == name)?;
        let Field { value, .. } = self.left.remove(at);
        (!is_nothing(value)).then_some(value)
    }

    /// The text of a field. Numbers and booleans are texts as written, as in the service.
    pub(super) fn text(&mut self, name: &str, found: &mut Diagnostics) -> Text<'n> {
        let value = self.take(name)?;
        let text = scalar(value);
        if text.is_none() {
            let what = format!("expected text, not {}", kind_or_nothing(value));
            found.problem(&self.path.name(name), location(value), what);
        }
        text.map(|text| (location(value), text))
    }

    /// The location of a field that is `true`. `None` if it is `false` or missing.
    pub(super) fn flag(&mut self, name: &str, found: &mut Diagnostics) -> Option<SourceLocation> {
        let (location, text) = self.text(name, found)?;
        // All words of YAML 1.1, which the service accepts too.
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "y" => Some(location),
            "false" | "no" | "off" | "n" => None,
            _ => {
                let other = text;
                let what = format!("expected true or false, not {}", short(other));
                found.problem(&self.path.name(name), location, what);
                None
            }
        }
    }

    /// The list of a field.
    pub(super) fn list(&mut self, name: &str, found: &mut Diagnostics) -> &'n [Node<'t>] {
        let Some(value) = self.take(name) else { return &[] };
        if let YamlData::Sequence(list) = bare(value) {
            return list;
        }
        let what = format!("expected a list, not {}", kind_or_nothing(value));
        found.problem(&self.path.name(name), location(value), what);
        &[]
    }

    /// Reads a field that the service accepts here but does not use.
    pub(super) fn idle(&mut self, name: &str, found: &mut Diagnostics) {
        if let Some(location) = self.remove(name) {
            let what = "this changes nothing, here or in the service";
            found.warning(&self.path.name(name), location, what);
        }
    }

    /// Reports a field that the service accepts and ignores here, so that an intended limit would be missing.
    pub(super) fn misplaced(&mut self, name: &str, found: &mut Diagnostics) {
        if let Some(location) = self.remove(name) {
            let what = "the service ignores this here, and there would be no limit: expected it under \
                        `rate_limit`";
            found.problem(&self.path.name(name), location, what);
        }
    }

    fn remove(&mut self, name: &str) -> Option<SourceLocation> {
        let at = self.left.iter().position(|field| field.name == name)?;
        Some(self.left.remove(at).location)
    }

    /// Reports all remaining fields as unknown.
    pub(super) fn finish(self, known: &str, found: &mut Diagnostics) {
        for Field { name, location, .. } in self.left {
            let what = format!("{} is not known here: expected {known}", short(name));
            found.problem(self.path, location, what);
        }
    }
}

fn kind_or_nothing(node: &Node<'_>) -> String {
    kind(node).unwrap_or_else(|| "nothing".to_owned())
}

/// What a node is, if it is not empty.
fn kind(node: &Node<'_>) -> Option<String> {
    match bare(node) {
        YamlData::Sequence(_) => Some("a list".to_owned()),
        YamlData::Mapping(_) => Some("a map".to_owned()),
        _ => scalar(node).map(short),
    }
}

/// Quotes a text in a message: its beginning, on one line.
pub(super) fn short(text: &str) -> String {
    let beginning: String = text.chars().take(60).collect();
    let more = if beginning.len() < text.len() { ".." } else { "" };
    format!("`{}{more}`", beginning.escape_debug())
}
