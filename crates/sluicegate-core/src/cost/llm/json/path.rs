use super::name::Name;

/// The deepest nesting that is read, as in `serde_json`. A service that reads deeper documents is rare, and a stack of
/// any depth would let a client choose how much memory its request takes.
const DEEPEST: usize = 128;

/// The names that lead to a value, and whether each level is an object or an array.
#[derive(Debug, Clone)]
pub(in crate::cost::llm) struct Path {
    names: [Name; DEEPEST],
    /// One bit for each level: set for an object.
    objects: u128,
    depth: usize,
}

impl Path {
    pub(super) const fn new() -> Self {
        Self { names: [Name::Other; DEEPEST], objects: 0, depth: 0 }
    }

    /// The names, from the outermost inwards.
    pub(in crate::cost::llm) fn names(&self) -> &[Name] {
        &self.names[..self.depth]
    }

    /// Begins an object or an array. Returns `false` if it is nested too deeply.
    pub(super) fn open(&mut self, is_object: bool) -> bool {
        let Some(name) = self.names.get_mut(self.depth) else { return false };
        *name = if is_object { Name::Other } else { Name::Item };
        let bit = 1 << self.depth;
        self.objects = if is_object { self.objects | bit } else { self.objects & !bit };
        self.depth += 1;
        true
    }

    pub(super) fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Sets the name of the value that follows.
    pub(super) fn name(&mut self, name: Name) {
        if let Some(innermost) = self.names[..self.depth].last_mut() {
            *innermost = name;
        }
    }

    /// Whether the innermost level is an object.
    pub(super) fn is_object(&self) -> bool {
        self.depth.checked_sub(1).is_some_and(|level| self.objects >> level & 1 == 1)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.depth == 0
    }
}
