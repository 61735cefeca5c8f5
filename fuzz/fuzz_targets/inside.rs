//! What must be true of every error in a text.

use sluicegate_config::PolicyError;

/// Every error has a message, and its place is in the text or right behind the end of a line.
pub(crate) fn stand_inside(problems: &PolicyError, text: &str) {
    let lines: Vec<_> = text.split('\n').map(|line| line.chars().count()).collect();
    for problem in problems.iter() {
        assert!(!problem.message().is_empty());
        if let (Some(line), Some(column)) = (problem.line(), problem.column()) {
            let length = line.checked_sub(1).and_then(|line| lines.get(line));
            let inside = length.is_some_and(|length| (1..=length + 1).contains(&column));
            assert!(inside, "{problem} is not in {text:?}");
        }
    }
    assert!(!problems.to_string().is_empty());
}
