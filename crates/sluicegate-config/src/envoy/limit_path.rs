//! The tree as a list of limits, each with the way to it.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::tree::{Descriptor, Domain, RateLimit, Value};
use crate::document::Wildcard;

/// A limit, and the entries of a descriptor that meets it.
#[derive(Debug)]
pub(super) struct LimitPath<'d> {
    pub(super) steps: Vec<Step<'d>>,
    pub(super) limit: &'d RateLimit,
    pub(super) shadow: bool,
}

/// One entry on the way.
#[derive(Debug, Clone)]
pub(super) struct Step<'d> {
    pub(super) entry: &'d Descriptor,
    /// The values of entries beside it that the service looks up first.
    pub(super) but: Rc<[&'d Value]>,
}

/// All limits of a domain, in the order of the file.
pub(super) fn ways(domain: &Domain) -> Vec<LimitPath<'_>> {
    let mut ways = Vec::new();
    walk(&domain.descriptors, &mut Vec::new(), &mut ways);
    ways
}

fn walk<'d>(level: &'d [Descriptor], steps: &mut Vec<Step<'d>>, ways: &mut Vec<LimitPath<'d>>) {
    let beside = Siblings::new(level);
    for (at, entry) in level.iter().enumerate() {
        steps.push(Step { entry, but: beside.looked_up_before(entry, at) });
        if let Some(limit) = &entry.limit {
            ways.push(LimitPath { steps: steps.clone(), limit, shadow: entry.shadow });
        }
        walk(&entry.descriptors, steps, ways);
        steps.pop();
    }
}

/// The values of each key of a level, with the indices of their entries.
struct Siblings<'d>(HashMap<&'d str, Vec<(usize, &'d Value)>>);

impl<'d> Siblings<'d> {
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
        // Nothing is looked up before an exact value.
        if let Value::Exactly(_) = own.value {
            return Rc::new([]);
        }
        let beside = self.0.get(own.key.as_str()).map_or(&[][..], Vec::as_slice);
        // A rule of ours is found by its own condition, and Envoy's service by the order of its lookups. So a rule
        // excludes the values that the service would have found before it. Most files have none, and the list stays
        // empty.
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

/// The longest name of a limit, in bytes.
const LONGEST: usize = 31;

/// The names of the limits of a domain. No two limits have one name.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// Whether no limit had this name so far.
    pub(super) fn insert(&mut self, name: String) -> bool {
        self.0.insert(name)
    }

    /// Names the limit at the end of a way, as in the statistics of the service: `key_value.key`. If that is too long, not
    /// valid in a header field or the name of another limit, the name is its beginning and a digest. Two of those may have
    /// one digest too, because it is short. Then the next one that is free is taken.
    pub(super) fn give(&mut self, spelled: &str, digest: u32) -> String {
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        let fits = spelled.len() <= LONGEST && spelled.bytes().all(plain);
        let kept = |char: &char| char.is_ascii_alphanumeric() || "._-/".contains(*char);
        let beginning: String = spelled.chars().filter(kept).take(LONGEST - 9).collect();
        let mut name = if fits { spelled.to_owned() } else { format!("{beginning}~{digest:08x}") };
        let mut next = if fits { digest } else { digest.wrapping_add(1) };
        while !self.insert(name.clone()) {
            name = format!("{beginning}~{next:08x}");
            next = next.wrapping_add(1);
        }
        name
    }
}

/// A digest of a way, the same in every domain.
pub(super) fn digest(steps: &[Step<'_>]) -> u32 {
    fnv(&identity("", steps))
}

/// A way as the statistics of the service spell it.
pub(super) fn spelled(steps: &[Step<'_>]) -> String {
    let entries = steps.iter().map(|step| match step.entry.value.text() {
        None => step.entry.key.clone(),
        Some(value) => format!("{}_{value}", step.entry.key),
    });
    entries.collect::<Vec<_>>().join(".")
}

/// Identifies a limit in a store: its domain and the way to it, quoted.
pub(super) fn identity(domain: &str, steps: &[Step<'_>]) -> String {
    let mut identity = format!("{domain:?}");
    for step in steps {
        identity.push_str(&match step.entry.value.text() {
            None => format!(" {:?}", step.entry.key),
            Some(value) => format!(" {:?}={value:?}", step.entry.key),
        });
    }
    identity
}

/// FNV-1a: the same in every process and every version.
fn fnv(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
