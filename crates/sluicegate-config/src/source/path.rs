//! Paths to values in a document.

use std::fmt;

/// A path to a value in a document. It borrows its parts, and allocates only when it is printed.
///
/// It prints as `rules[1].limits[0].burst`. Names are quoted where TOML would require it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DocumentPath<'a> {
    /// The document as a whole.
    Root,
    /// The value with this name in a table.
    Name(&'a Self, &'a str),
    /// The value at this index of a list.
    Index(&'a Self, usize),
}

impl<'a> DocumentPath<'a> {
    /// The path to the value called `name` in this table.
    pub(crate) fn name(&'a self, name: &'a str) -> Self {
        DocumentPath::Name(self, name)
    }

    /// Every path from the root to this one, without the root.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Self> {
        let mut steps = Vec::new();
        let mut path = self;
        while let DocumentPath::Name(parent, _) | DocumentPath::Index(parent, _) = path {
            steps.push(path);
            path = parent;
        }
        steps.into_iter().rev()
    }

    /// The path to the value at `index` in this list.
    pub(crate) fn index(&'a self, index: usize) -> Self {
        DocumentPath::Index(self, index)
    }
}

impl fmt::Display for DocumentPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DocumentPath::Root => Ok(()),
            DocumentPath::Index(parent, index) => write!(f, "{parent}[{index}]"),
            DocumentPath::Name(parent, name) => {
                parent.fmt(f)?;
                if !matches!(parent, DocumentPath::Root) {
                    f.write_str(".")?;
                }
                if is_bare(name) { f.write_str(name) } else { write!(f, "{name:?}") }
            }
        }
    }
}

/// Whether TOML allows the name without quotes.
fn is_bare(name: &str) -> bool {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !name.is_empty() && name.bytes().all(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_like_an_expression() {
        let root = DocumentPath::Root;
        let rules = root.name("rules");
        let rule = rules.index(1);
        assert_eq!(rule.name("key").to_string(), "rules[1].key");
        assert_eq!(root.name("customers").name("a.b").to_string(), "customers.\"a.b\"");
        assert_eq!(root.to_string(), "");
    }
}
