//! What holds of every problem with a text.

use sluicegate_config::PolicyError;

/// Every problem says something, and stands where the text is, or right behind the end of a line.
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
