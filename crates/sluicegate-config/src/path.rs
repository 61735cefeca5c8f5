//! Where in a document a value stands, in words.

use std::fmt;

/// A path into a document, made as it is walked: nothing is allocated until it is printed.
///
/// It prints as `rules[1].limits[0].burst`; a name that is not a bare one is quoted, as in TOML.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Path<'a> {
    Root,
    Name(&'a Self, &'a str),
    Index(&'a Self, usize),
}

impl<'a> Path<'a> {
    /// What stands under `name` here.
    pub(crate) fn name(&'a self, name: &'a str) -> Self {
        Path::Name(self, name)
    }

    /// All that the path goes through, from the top.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Self> {
        let mut steps = Vec::new();
        let mut path = self;
        while let Path::Name(parent, _) | Path::Index(parent, _) = path {
            steps.push(path);
            path = parent;
        }
        steps.into_iter().rev()
    }

    /// The `index`-th of the list that stands here.
    pub(crate) fn index(&'a self, index: usize) -> Self {
        Path::Index(self, index)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Index(parent, index) => write!(f, "{parent}[{index}]"),
            Path::Name(parent, name) => {
                parent.fmt(f)?;
                if !matches!(parent, Path::Root) {
                    f.write_str(".")?;
                }
                if is_bare(name) { f.write_str(name) } else { write!(f, "{name:?}") }
            }
        }
    }
}

/// Whether TOML lets the name stand without quotes.
fn is_bare(name: &str) -> bool {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !name.is_empty() && name.bytes().all(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_like_an_expression() {
        let root = Path::Root;
        let rules = root.name("rules");
        let rule = rules.index(1);
        assert_eq!(rule.name("key").to_string(), "rules[1].key");
        assert_eq!(root.name("customers").name("a.b").to_string(), "customers.\"a.b\"");
        assert_eq!(root.to_string(), "");
    }
}
