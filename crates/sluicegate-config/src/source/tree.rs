//! A text as values that know where they stand, whatever its format.

use std::collections::BTreeMap;

use super::location::SourceLocation;
use super::path::DocumentPath;

/// A value, and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    location: Spot,
    pub(crate) data: Data,
}

#[derive(Debug, Clone)]
pub(crate) enum Data {
    #[cfg_attr(
        all(feature = "toml", not(feature = "json")),
        expect(dead_code, reason = "TOML has none")
    )]
    Null,
    Truth(bool),
    Number(u64),
    Negative(i64),
    Fraction(f64),
    Text(String),
    /// What no document has a use for, in words: a date, or a number beyond all bounds.
    Other(String),
    List(Vec<Node>),
    Table(BTreeMap<String, Entry>),
    /// Something was wrong here and has been told: it stands for what fits, so that the rest can be read.
    Stub(Stub),
    /// Something was wrong here and has been told: as if it were not there.
    Gone,
}

/// What a value stands for that was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stub {
    /// A text, a number, an empty list or nothing, as is asked for.
    Any,
    /// A table.
    Table,
}

/// One step on the way to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Name(String),
    Index(usize),
}

/// A value that has a name.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    name: Spot,
    pub(crate) value: Node,
}

/// A [`SourceLocation`] in half the room: a text has fewer characters than fit.
#[derive(Debug, Clone, Copy)]
struct Spot {
    line: u32,
    column: u32,
}

impl Node {
    pub(crate) fn new(location: SourceLocation, data: Data) -> Self {
        Self { location: location.into(), data }
    }

    /// How many values it is, with all in it.
    pub(crate) fn size(&self) -> usize {
        let inside: usize = match &self.data {
            Data::List(list) => list.iter().map(Self::size).sum(),
            Data::Table(table) => table.values().map(|entry| entry.value.size()).sum(),
            _ => 0,
        };
        1 + inside
    }

    pub(crate) fn location(&self) -> SourceLocation {
        self.location.into()
    }

    /// Where the value stands, or else the nearest that the path goes through; and where its name stands, if
    /// that is there.
    pub(crate) fn find(&self, path: &DocumentPath<'_>) -> (SourceLocation, Option<SourceLocation>) {
        let mut found = (self, None);
        for step in path.steps() {
            let next = match (&found.0.data, step) {
                (Data::Table(table), DocumentPath::Name(_, name)) => {
                    table.get(*name).map(|entry| (&entry.value, Some(entry.name)))
                }
                (Data::List(list), DocumentPath::Index(_, index)) => {
                    list.get(*index).map(|value| (value, None))
                }
                _ => None,
            };
            match next {
                Some(next) => found = next,
                // What is missing has no name.
                None => return (found.0.location(), None),
            }
        }
        (found.0.location(), found.1.map(SourceLocation::from))
    }

    /// Whether something stands at the top under this name.
    pub(crate) fn says(&self, name: &str) -> bool {
        matches!(&self.data, Data::Table(table) if table.contains_key(name))
    }

    /// What stands at the end of the way.
    pub(crate) fn at(&mut self, way: &[Step]) -> Option<&mut Self> {
        way.iter().try_fold(self, |node, step| match (&mut node.data, step) {
            (Data::Table(table), Step::Name(name)) => {
                table.get_mut(name).map(|entry| &mut entry.value)
            }
            (Data::List(list), Step::Index(index)) => list.get_mut(*index),
            _ => None,
        })
    }

    /// Puts something under a name that is missing; says whether that could be done.
    pub(crate) fn supply(&mut self, name: &str) -> bool {
        if let Data::Stub(Stub::Table) = self.data {
            self.data = Data::Table(BTreeMap::new());
        }
        let Data::Table(table) = &mut self.data else { return false };
        let value = Self { location: self.location, data: Data::Stub(Stub::Any) };
        let before = table.insert(name.to_owned(), Entry { name: self.location, value });
        before.is_none_or(|before| matches!(before.value.data, Data::Gone))
    }

    /// What stands under this name.
    pub(crate) fn entry(&mut self, name: &str) -> Option<&mut Self> {
        match &mut self.data {
            Data::Table(table) => table.get_mut(name).map(|entry| &mut entry.value),
            _ => None,
        }
    }
}

impl Entry {
    pub(crate) fn new(name: SourceLocation, value: Node) -> Self {
        Self { name: name.into(), value }
    }
}

impl From<SourceLocation> for Spot {
    fn from(location: SourceLocation) -> Self {
        let short = |count| u32::try_from(count).unwrap_or(u32::MAX);
        Self { line: short(location.line), column: short(location.column) }
    }
}

impl From<Spot> for SourceLocation {
    fn from(spot: Spot) -> Self {
        Self { line: spot.line as usize, column: spot.column as usize }
    }
}
