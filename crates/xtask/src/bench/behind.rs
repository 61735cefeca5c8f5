//! The rivals named in the sentence below a table, shortened for the front page.

const AHEAD: &str = "Ahead of sluicegate here: ";
const DEFAULTS: &str = "Without fields, these are ahead of *";
const DOUBT: &str = "within the spread";

/// The rivals that are ahead by more than the spread, each with the two figures that are furthest apart, as far as
/// the sentence tells.
pub(super) fn ahead(text: &str) -> Vec<String> {
    let mut ahead = Vec::new();
    for line in text.lines() {
        let Some(at) = line.find(AHEAD) else { continue };
        let rest = &line[at + AHEAD.len()..];
        let (like, defaults) = rest.split_once(DEFAULTS).unwrap_or((rest, ""));
        ahead.extend(rivals(like, ""));
        ahead.extend(rivals(defaults, ", ours as it comes"));
    }
    ahead
}

/// Parses `**a** (1: 2 against 3; 4 against 5, within the spread); **b** everywhere (most in 6: 7 against 8).`
fn rivals(list: &str, remark: &str) -> Vec<String> {
    let mut rivals = Vec::new();
    for rival in list.split("**").collect::<Vec<_>>()[1..].chunks(2) {
        let [name, details] = rival else { continue };
        if let Some(figures) = worst(details) {
            rivals.push(format!("{name} ({figures}{remark})"));
        }
    }
    rivals
}

/// `None` if all are within the spread.
fn worst(details: &str) -> Option<String> {
    let certain = details.split("; ").filter(|case| !case.contains(DOUBT));
    let figures = certain.filter_map(figures);
    let apart = |(ahead, behind, _): &(f64, f64, String)| (ahead / behind).ln().abs();
    figures.max_by(|a, b| apart(a).total_cmp(&apart(b))).map(|(.., text)| text)
}

/// Parses `in 8 of 15 (most in 1 × `u64`: 32.4 against 59.0)`.
fn figures(case: &str) -> Option<(f64, f64, String)> {
    let (before, after) = case.split_once(" against ")?;
    let ahead = before.rsplit([' ', '(']).next()?;
    let behind = after.split([')', ',', ';', ' ']).next()?.trim_end_matches('.');
    Some((ahead.parse().ok()?, behind.parse().ok()?, format!("{ahead} against {behind}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rival_is_named_with_the_figures_that_are_furthest_apart() {
        let text = "\
| a table |

Ahead of sluicegate here: **governor, direct** (1 thread: 10.6 against 17.6; 2 threads: 5 against 50); \
**governor** in 8 of 15 (most in 1 × `IpAddr` of *sluicegate `Store`*: 32.4 against 59.0).
";
        assert_eq!(
            ahead(text),
            ["governor, direct (5 against 50)", "governor (32.4 against 59.0)"]
        );
    }

    #[test]
    fn a_rival_within_the_spread_is_left_out() {
        let text = "Ahead of sluicegate here: **a** (1: 2 against 3, within the spread); \
                    **b** (1: 2 against 9, within the spread; 2: 4 against 5).";
        assert_eq!(ahead(text), ["b (4 against 5)"]);
    }

    #[test]
    fn a_comparison_with_the_defaults_says_so() {
        let text = "Ahead of sluicegate here: **a** (2 against 3). Without fields, these are ahead of \
                    *sluicegate, as it comes*: **c** (96.5 against 891).";
        assert_eq!(ahead(text), ["a (2 against 3)", "c (96.5 against 891, ours as it comes)"]);
        assert_eq!(ahead("No rival is ahead of sluicegate here."), [""; 0]);
    }
}
