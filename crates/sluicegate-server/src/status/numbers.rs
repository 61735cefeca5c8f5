//! Reads counters of decisions from the text of the metrics.
//!
//! The recorder of metrics counts every decision already. To read its text once a second costs requests nothing, while
//! counters of our own would cost each of them another atomic addition.

use std::collections::BTreeMap;

/// The verdicts, as the metrics name them. The first ones let a request go ahead.
pub(super) const VERDICTS: [&str; 8] =
    ["admitted", "waited", "degraded", "shadowed", "uncounted", "redirected", "refused", "banned"];

/// How many of [`VERDICTS`] let a request go ahead.
pub(super) const SERVED: usize = 5;

/// Decisions by verdict.
pub(super) type ByVerdict = [u64; VERDICTS.len()];

/// What the dashboard reads of the metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    /// Decisions by policy.
    pub(super) policies: BTreeMap<String, ByVerdict>,
    /// Errors of the store, by kind.
    pub(super) store_errors: BTreeMap<String, u64>,
}

impl Numbers {
    /// Reads Prometheus' text format. Lines about anything else are passed over.
    pub(super) fn read(text: &str) -> Self {
        let mut numbers = Self::default();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("sluicegate_decisions_total{") {
                numbers.decisions(rest);
            } else if let Some(rest) = line.strip_prefix("sluicegate_store_errors_total{")
                && let Some((mut labels, value)) = sample(rest)
                && let Some(kind) = labels.remove("kind")
            {
                numbers.store_errors.insert(kind, value);
            }
        }
        numbers
    }

    fn decisions(&mut self, rest: &str) {
        let Some((mut labels, value)) = sample(rest) else { return };
        let (Some(policy), Some(verdict)) = (labels.remove("policy"), labels.get("verdict")) else {
            return;
        };
        if let Some(at) = VERDICTS.iter().position(|known| known == verdict) {
            self.policies.entry(policy).or_default()[at] = value;
        }
    }
}

/// The labels and the value of a line, from behind its `{`.
fn sample(mut rest: &str) -> Option<(BTreeMap<String, String>, u64)> {
    let mut labels = BTreeMap::new();
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(value) = rest.strip_prefix('}') {
            return Some((labels, value.trim().parse().ok()?));
        }
        let (name, quoted) = rest.split_once("=\"")?;
        let (value, after) = unquoted(quoted)?;
        labels.insert(name.to_owned(), value);
        rest = after;
    }
}

/// The text up to the next quote, and what follows the quote.
fn unquoted(quoted: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((text, &quoted[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => text.push('\n'),
                other => text.push(other),
            },
            char => text.push(char),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_and_errors_are_read_whatever_the_name_of_a_policy() {
        let numbers = Numbers::read(
            "# TYPE sluicegate_decisions_total counter\n\
             sluicegate_decisions_total{policy=\"a \\\"b\\\" \\\\ {,}\",verdict=\"admitted\"} 12\n\
             sluicegate_decisions_total{verdict=\"refused\",policy=\"a \\\"b\\\" \\\\ {,}\"} 3\n\
             sluicegate_decisions_total{policy=\"x\",verdict=\"new\"} 3\n\
             sluicegate_store_errors_total{kind=\"too_slow\"} 7\n\
             process_things{} 1\n",
        );
        let decisions = numbers.policies.get("a \"b\" \\ {,}").expect("the policy");
        assert_eq!((decisions[0], decisions[6]), (12, 3));
        assert_eq!(numbers.policies.len(), 1);
        assert_eq!(numbers.store_errors.get("too_slow"), Some(&7));
    }

    #[test]
    fn lines_that_are_cut_off_are_passed_over() {
        let line = "sluicegate_decisions_total{policy=\"a\\\"b\",verdict=\"admitted\"} 12";
        for end in 0..line.len() - 2 {
            assert_eq!(Numbers::read(&line[..end]), Numbers::default(), "{end}");
        }
    }
}
