//! The tree as a list of limits, each with the way to it.

use std::collections::HashMap;
use std::rc::Rc;

use super::rate::RateLimit;
use super::tree::{Descriptor, Domain, Value};
use crate::document::Wildcard;

/// A limit, and the entries of a descriptor that meets it.
#[derive(Debug)]
pub(super) struct Way<'d> {
    pub(super) steps: Vec<Step<'d>>,
    pub(super) limit: &'d RateLimit,
    pub(super) shadow: bool,
}

/// One entry on the way.
#[derive(Debug, Clone)]
pub(crate) struct Step<'d> {
    pub(crate) entry: &'d Descriptor,
    /// The values of entries beside it that the service looks up first.
    pub(crate) but: Rc<[&'d Value]>,
}

/// All limits of a domain, in the order of the file.
pub(super) fn ways(domain: &Domain) -> Vec<Way<'_>> {
    let mut ways = Vec::new();
    walk(&domain.descriptors, &mut Vec::new(), &mut ways);
    ways
}

fn walk<'d>(level: &'d [Descriptor], steps: &mut Vec<Step<'d>>, ways: &mut Vec<Way<'d>>) {
    let beside = Beside::new(level);
    for (at, entry) in level.iter().enumerate() {
        steps.push(Step { entry, but: beside.looked_up_before(entry, at) });
        if let Some(limit) = &entry.limit {
            ways.push(Way { steps: steps.clone(), limit, shadow: entry.shadow });
        }
        walk(&entry.descriptors, steps, ways);
        steps.pop();
    }
}

/// The values of each key of a level, with the indices of their entries.
struct Beside<'d>(HashMap<&'d str, Vec<(usize, &'d Value)>>);

impl<'d> Beside<'d> {
    fn new(level: &'d [Descriptor]) -> Self {
        let mut values: HashMap<&str, Vec<_>> = HashMap::new();
        for (at, entry) in level.iter().enumerate() {
            values.entry(&entry.key).or_default().push((at, &entry.value));
        }
        Self(values)
    }

    /// The service looks up the exact value first, then wildcards in the order of the file, then the key alone. It
    /// does not backtrack: after a match, only the entries below it count.
    fn looked_up_before(&self, own: &Descriptor, at: usize) -> Rc<[&'d Value]> {
        if let Value::Exactly(_) = own.value {
            return Rc::new([]);
        }
        let beside = self.0.get(own.key.as_str()).map_or(&[][..], Vec::as_slice);
        let before = beside.iter().filter(|(other_at, other)| match (&own.value, other) {
            (Value::Exactly(_), _) | (_, Value::Any) => false,
            (Value::Like(pattern), Value::Exactly(value)) => Wildcard::matches(pattern, value),
            (Value::Like(own), Value::Like(other)) => *other_at < at && can_meet(own, other),
            (Value::Any, _) => true,
        });
        before.map(|(_, other)| *other).collect()
    }
}

/// Whether a text may match both patterns, judged by their prefixes and suffixes. Usually patterns are distinct
/// prefixes.
fn can_meet(one: &str, other: &str) -> bool {
    let ends = |pattern| str::split_once(pattern, '*').zip(str::rsplit_once(pattern, '*'));
    let (Some(((a, _), (_, z))), Some(((b, _), (_, y)))) = (ends(one), ends(other)) else {
        return true;
    };
    (a.starts_with(b) || b.starts_with(a)) && (z.ends_with(y) || y.ends_with(z))
}
