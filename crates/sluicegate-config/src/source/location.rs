/// A location in a text. Lines and columns count from 1, and a column is a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLocation {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}
