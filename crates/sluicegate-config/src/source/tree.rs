//! A text of any format as a tree of values with locations.

use super::error::SourceLocation;
use super::path::DocumentPath;

/// A value and its location.
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
    /// A value that no document contains, in words: a date, or a number that is too large.
    Other(String),
    List(Vec<Node>),
    /// Sorted by name. A map would take as much memory for one entry as for eleven, and files have many small tables.
    Table(Vec<(String, Entry)>),
    /// Replaces a wrong value by one that fits, so that the rest can be read. The error was reported.
    Stub(Stub),
    /// A wrong value that counts as missing. The error was reported.
    Gone,
}

/// What replaces a wrong value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stub {
    /// A text, a number, an empty list or nothing, as expected.
    Any,
    /// A table.
    Table,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Name(String),
    Index(usize),
}

/// A value with a name.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    name: Spot,
    pub(crate) value: Node,
}

/// A [`SourceLocation`] in half the size. Texts are short enough for `u32`.
#[derive(Debug, Clone, Copy)]
struct Spot {
    line: u32,
    column: u32,
}

impl Node {
    pub(crate) fn new(location: SourceLocation, data: Data) -> Self {
        Self { location: location.into(), data }
    }

    /// The number of values in it, itself included.
    pub(crate) fn size(&self) -> usize {
        let inside: usize = match &self.data {
            Data::List(list) => list.iter().map(Self::size).sum(),
            Data::Table(table) => table.iter().map(|(_, entry)| entry.value.size()).sum(),
            _ => 0,
        };
        1 + inside
    }

    pub(crate) fn location(&self) -> SourceLocation {
        self.location.into()
    }

    /// The location of the value at `path`, or of its nearest parent; and the location of its name, if the value
    /// exists.
    pub(crate) fn find(&self, path: &DocumentPath<'_>) -> (SourceLocation, Option<SourceLocation>) {
        let mut found = (self, None);
        for step in path.steps() {
            let next = match (&found.0.data, step) {
                (Data::Table(table), DocumentPath::Name(_, name)) => {
                    field(table, name).map(|entry| (&entry.value, Some(entry.name)))
                }
                (Data::List(list), DocumentPath::Index(_, index)) => {
                    list.get(*index).map(|value| (value, None))
                }
                _ => None,
            };
            match next {
                Some(next) => found = next,
                // A missing value has no name.
                None => return (found.0.location(), None),
            }
        }
        (found.0.location(), found.1.map(SourceLocation::from))
    }

    /// The value at `path`.
    pub(crate) fn value(&self, path: &DocumentPath<'_>) -> Option<&Self> {
        path.steps().try_fold(self, |node, step| match (&node.data, step) {
            (Data::Table(table), DocumentPath::Name(_, name)) => {
                field(table, name).map(|entry| &entry.value)
            }
            (Data::List(list), DocumentPath::Index(_, index)) => list.get(*index),
            _ => None,
        })
    }

    /// Whether there is an empty list or table at `path`.
    pub(crate) fn has_empty(&self, path: &DocumentPath<'_>) -> bool {
        self.value(path).is_some_and(Self::is_empty)
    }

    fn is_empty(&self) -> bool {
        match &self.data {
            Data::List(list) => list.is_empty(),
            Data::Table(table) => table.is_empty(),
            _ => false,
        }
    }

    /// Whether it is or has an empty list or table.
    #[cfg(any(feature = "toml", feature = "json"))]
    pub(super) fn has_empties(&self) -> bool {
        self.is_empty()
            || match &self.data {
                Data::List(list) => list.iter().any(Self::has_empties),
                Data::Table(table) => table.iter().any(|(_, entry)| entry.value.has_empties()),
                _ => false,
            }
    }

    /// Whether there is a value with this name at the top level.
    pub(crate) fn says(&self, name: &str) -> bool {
        matches!(&self.data, Data::Table(table) if field(table, name).is_some())
    }

    /// The value at the end of the path.
    pub(crate) fn at(&mut self, way: &[Step]) -> Option<&mut Self> {
        way.iter().try_fold(self, |node, step| match (&mut node.data, step) {
            (Data::Table(table), Step::Name(name)) => {
                field_mut(table, name).map(|entry| &mut entry.value)
            }
            (Data::List(list), Step::Index(index)) => list.get_mut(*index),
            _ => None,
        })
    }

    /// Adds a stand-in for a missing value. Returns whether that was possible.
    pub(crate) fn supply(&mut self, name: &str) -> bool {
        if let Data::Stub(Stub::Table) = self.data {
            self.data = Data::Table(Vec::new());
        }
        let Data::Table(table) = &mut self.data else { return false };
        let value = Self { location: self.location, data: Data::Stub(Stub::Any) };
        let entry = Entry { name: self.location, value };
        match place(table, name) {
            Ok(_) => false,
            Err(at) => {
                table.insert(at, (name.to_owned(), entry));
                true
            }
        }
    }

    /// The value with this name.
    pub(crate) fn entry(&mut self, name: &str) -> Option<&mut Self> {
        match &mut self.data {
            Data::Table(table) => field_mut(table, name).map(|entry| &mut entry.value),
            _ => None,
        }
    }
}

/// Where the entry with this name is in a table, or where it would be.
fn place(table: &[(String, Entry)], name: &str) -> Result<usize, usize> {
    table.binary_search_by(|(other, _)| other.as_str().cmp(name))
}

fn field<'t>(table: &'t [(String, Entry)], name: &str) -> Option<&'t Entry> {
    place(table, name).ok().map(|at| &table[at].1)
}

fn field_mut<'t>(table: &'t mut [(String, Entry)], name: &str) -> Option<&'t mut Entry> {
    place(table, name).ok().map(|at| &mut table[at].1)
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
