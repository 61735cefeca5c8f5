//! Combines conditions of documents.

use crate::document::Condition;

/// A condition that may be known without a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Question {
    Always,
    Never,
    If(Box<Condition>),
}

impl Question {
    pub(super) fn when(condition: Condition) -> Self {
        Self::If(Box::new(condition))
    }

    /// A condition with what `set` sets.
    pub(super) fn of(set: impl FnOnce(&mut Condition)) -> Self {
        let mut condition = Condition::default();
        set(&mut condition);
        Self::when(condition)
    }

    pub(super) fn known(holds: bool) -> Self {
        if holds { Self::Always } else { Self::Never }
    }

    /// Holds if this one does not.
    pub(super) fn not(self) -> Self {
        match self {
            Self::Always => Self::Never,
            Self::Never => Self::Always,
            Self::If(condition) => Self::If(Box::new(negated(*condition))),
        }
    }

    /// Holds if all of `tests` do.
    pub(super) fn all(tests: impl IntoIterator<Item = Self>) -> Self {
        let mut conditions = Vec::new();
        for test in tests {
            match test {
                Self::Always => {}
                Self::Never => return Self::Never,
                Self::If(condition) => conditions.push(*condition),
            }
        }
        match conditions.len() {
            0 => Self::Always,
            1 => Self::when(conditions.remove(0)),
            // All hold if none does not.
            _ => Self::when(negated(either(conditions.into_iter().map(negated).collect()))),
        }
    }

    /// Holds if one of `tests` does.
    pub(super) fn any(tests: impl IntoIterator<Item = Self>) -> Self {
        Self::all(tests.into_iter().map(Self::not)).not()
    }
}

fn either(any: Vec<Condition>) -> Condition {
    let mut either = Condition::default();
    either.any = any;
    either
}

/// The negation of `condition`. A double negation is removed.
fn negated(mut condition: Condition) -> Condition {
    match condition.not.take() {
        Some(inner) if condition == Condition::default() => *inner,
        not => {
            condition.not = not;
            let mut negated = Condition::default();
            negated.not = Some(Box::new(condition));
            negated
        }
    }
}
