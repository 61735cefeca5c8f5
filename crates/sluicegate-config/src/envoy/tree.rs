//! The file as written: a domain with nested descriptors.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::diagnostics::Diagnostics;
use super::fields::{Fields, Text, short};
use super::service::Unit;
use super::yaml::{Node, location};
use crate::source::{DocumentPath, SourceLocation};

/// A file, which has one domain.
#[derive(Debug, Default)]
pub(super) struct Domain {
    pub(super) name: String,
    pub(super) descriptors: Vec<Descriptor>,
    /// The location of the descriptors, if the list is empty or contains a rate limit. In a file that was cut off it
    /// may be neither.
    pub(super) descriptors_at: Option<SourceLocation>,
}

/// One entry of a descriptor, with its limit and the entries below it.
#[derive(Debug)]
pub(super) struct Descriptor {
    /// The path, such as `descriptors[0].descriptors[2]`.
    pub(super) path: String,
    /// The location of the key.
    pub(super) location: SourceLocation,
    pub(super) key: String,
    pub(super) value: Value,
    pub(super) limit: Option<RateLimit>,
    pub(super) shadow: bool,
    /// The location of `quota_mode: true`. A request is refused only if all its quotas are spent.
    pub(super) quota: Option<SourceLocation>,
    /// Whether all values that match a wildcard share one budget.
    pub(super) shared: bool,
    /// Whether statistics go by each value at the last entry of a descriptor.
    pub(super) detailed: bool,
    /// Whether statistics go by each value of this entry.
    pub(super) by_value: bool,
    pub(super) descriptors: Vec<Self>,
}

/// The values that an entry matches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Value {
    /// Every value that no entry beside it matches.
    Any,
    /// This value.
    Exactly(String),
    /// Values that match the pattern. `*` matches any text, also none.
    Like(String),
}

impl Value {
    /// The value, or the pattern.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Any => None,
            Self::Exactly(text) | Self::Like(text) => Some(text),
        }
    }

    fn new(text: &str) -> Self {
        match text {
            "" => Self::Any,
            text if text.contains('*') => Self::Like(text.to_owned()),
            text => Self::Exactly(text.to_owned()),
        }
    }
}

/// The most values with `*` beside each other for one key. Each is compared with all values of its key: here once, in
/// the service for each request.
pub(super) const WILDCARDS: usize = 256;

/// Reads the only document of the file.
pub(super) fn domain(node: &Node<'_>, found: &mut Diagnostics) -> Option<Domain> {
    let mut fields = Fields::of(node, &DocumentPath::Root, "the file", found)?;
    let name = fields.text("domain", found).map_or("", |(_, name)| name).to_owned();
    if name.is_empty() {
        fields.lacks("`domain` is missing: the name of what the limits are for", found);
    }
    let list = fields.location_of("descriptors");
    let descriptors = descriptors(&mut fields, &DocumentPath::Root, found);
    fields.idle("name", found);
    IGNORED.iter().for_each(|name| fields.misplaced(name, found));
    let descriptors_at = list.filter(|_| descriptors.is_empty() || limits(&descriptors));
    fields.finish("`domain` or `descriptors`", found);
    Some(Domain { name, descriptors, descriptors_at })
}

/// Whether one of the descriptors has a rate limit.
fn limits(descriptors: &[Descriptor]) -> bool {
    descriptors.iter().any(|one| one.limit.is_some() || limits(&one.descriptors))
}

fn descriptors(
    fields: &mut Fields<'_, '_>,
    path: &DocumentPath<'_>,
    found: &mut Diagnostics,
) -> Vec<Descriptor> {
    let list = path.name("descriptors");
    let mut descriptors: Vec<Descriptor> = Vec::new();
    let mut lines = HashMap::new();
    let mut wildcards: HashMap<String, usize> = HashMap::new();
    for (at, node) in fields.list("descriptors", found).iter().enumerate() {
        let Some(descriptor) = descriptor(node, &list.index(at), found) else { continue };
        if let Value::Like(_) = descriptor.value {
            let count = wildcards.entry(descriptor.key.clone()).or_default();
            *count += 1;
            if *count == WILDCARDS + 1 {
                let what = format!(
                    "there are more values with `*` for this key: expected {WILDCARDS} at most"
                );
                found.problem(&descriptor.path, descriptor.location, what);
            }
            if *count > WILDCARDS {
                continue;
            }
        }
        match lines.entry((descriptor.key.clone(), descriptor.value.clone())) {
            Entry::Vacant(entry) => {
                entry.insert(descriptor.location.line);
                descriptors.push(descriptor);
            }
            Entry::Occupied(line) => {
                let line = line.get();
                let what = format!("its key and value are those of the descriptor in line {line}");
                found.problem(&descriptor.path, descriptor.location, what);
            }
        }
    }
    descriptors
}

fn descriptor(
    node: &Node<'_>,
    path: &DocumentPath<'_>,
    found: &mut Diagnostics,
) -> Option<Descriptor> {
    let mut fields = Fields::of(node, path, "a descriptor", found)?;
    let key = fields.text("key", found).filter(|(_, key)| !key.is_empty());
    if key.is_none() {
        fields.lacks("`key` is missing: the name of the descriptor's entry", found);
    }
    let value = fields.text("value", found).map_or("", |(_, value)| value);
    if let Some((location, _)) = key.filter(|(_, key)| value.is_empty() && key.ends_with('*')) {
        let what = "a key that ends with `*` and has no value stands for any key and value in the service, and would match \
                    nothing here: expected a `value` with `*`";
        found.problem(&path.name("key"), location, what);
    }
    let value = Value::new(value);
    let limit = fields.take("rate_limit");
    let limit = limit.and_then(|node| rate_limit(node, &path.name("rate_limit"), found));
    let shadow = fields.flag("shadow_mode", found).is_some();
    let quota = fields.flag("quota_mode", found);
    let shared = shared(&mut fields, path, &value, found);
    let [detailed, by_value] = ["detailed_metric", "value_to_metric"]
        .map(|name| statistics(&mut fields, name, path, found));
    not_followed(&mut fields, path, found);
    let descriptors = descriptors(&mut fields, path, found);
    fields.finish(FIELDS, found);
    let (location, key) = key?;
    let (path, key) = (path.to_string(), key.to_owned());
    Some(Descriptor {
        path,
        location,
        key,
        value,
        limit,
        shadow,
        quota,
        shared,
        detailed,
        by_value,
        descriptors,
    })
}

const FIELDS: &str = "`key`, `value`, `rate_limit`, `descriptors`, `shadow_mode`, `quota_mode`, \
                      `share_threshold`, `detailed_metric`, `value_to_metric`, `name` or `metadata`";

/// Fields of a rate limit. The service accepts them everywhere but ignores them elsewhere.
const IGNORED: [&str; 4] = ["unit", "requests_per_unit", "unlimited", "replaces"];

fn shared(
    fields: &mut Fields<'_, '_>,
    path: &DocumentPath<'_>,
    value: &Value,
    found: &mut Diagnostics,
) -> bool {
    let Some(location) = fields.flag("share_threshold", found) else { return false };
    let wildcard = matches!(value, Value::Like(_));
    if !wildcard {
        let what = "this is for a `value` with `*`, so that all that it matches share one budget";
        found.problem(&path.name("share_threshold"), location, what);
    }
    wildcard
}

/// Whether statistics go by what clients send.
fn statistics(
    fields: &mut Fields<'_, '_>,
    name: &str,
    path: &DocumentPath<'_>,
    found: &mut Diagnostics,
) -> bool {
    let Some(location) = fields.flag(name, found) else { return false };
    let what = "this changes `--envoy-statistics` alone: other metrics go by the name of the limit";
    found.warning(&path.name(name), location, what);
    true
}

/// Reads fields that have no effect here, or that the service ignores.
fn not_followed(fields: &mut Fields<'_, '_>, path: &DocumentPath<'_>, found: &mut Diagnostics) {
    if let Some(node) = fields.take("metadata") {
        let what = "this changes nothing here: it is for Envoy's filters";
        found.warning(&path.name("metadata"), super::yaml::location(node), what);
    }
    for name in ["name", "domain"] {
        fields.idle(name, found);
    }
    IGNORED.iter().for_each(|name| fields.misplaced(name, found));
}

/// The rate limit of a descriptor.
#[derive(Debug)]
pub(super) struct RateLimit {
    pub(super) location: SourceLocation,
    pub(super) rate: Rate,
    /// The name by which other limits replace it.
    pub(super) name: Option<String>,
    /// The names of the limits that it replaces.
    pub(super) replaces: Vec<String>,
}

/// The rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rate {
    Unlimited,
    Per(u32, Unit),
}

const EXPECTED: &str = "expected second, minute, hour, day, week, month or year";

pub(super) fn rate_limit(
    node: &Node<'_>,
    path: &DocumentPath<'_>,
    found: &mut Diagnostics,
) -> Option<RateLimit> {
    let mut fields = Fields::of(node, path, "a rate limit", found)?;
    let name = fields.text("name", found).map(|(_, name)| name.to_owned());
    let name = name.filter(|name| !name.is_empty());
    let replaces = replaces(&mut fields, path, name.as_deref(), found);
    let unlimited = fields.flag("unlimited", found).is_some();
    let unit = fields.text("unit", found);
    let count = fields.text("requests_per_unit", found);
    let rate = match (unlimited, unit) {
        (true, None) => Some(Rate::Unlimited),
        // Envoy Gateway adds an unknown unit, which the service ignores.
        (true, Some((_, unit))) if Unit::named(unit).is_none() => Some(Rate::Unlimited),
        (true, Some((location, _))) => {
            found.problem(&path.name("unit"), location, "an `unlimited` limit has no unit");
            None
        }
        (false, unit) => {
            let unit = unit_of_time(unit, &fields, path, found);
            let count = requests(count, &fields, path, found);
            count.zip(unit).map(|(count, unit)| Rate::Per(count, unit))
        }
    };
    let location = fields.location();
    fields.finish("`unit`, `requests_per_unit`, `unlimited`, `name` or `replaces`", found);
    Some(RateLimit { location, rate: rate?, name, replaces })
}

fn unit_of_time(
    unit: Text<'_>,
    fields: &Fields<'_, '_>,
    path: &DocumentPath<'_>,
    found: &mut Diagnostics,
) -> Option<Unit> {
    let Some((location, unit)) = unit else {
        fields.lacks(format!("`unit` is missing: {EXPECTED}"), found);
        return None;
    };
    let known = Unit::named(unit);
    if known.is_none() {
        let what = format!("{} is not a unit of time: {EXPECTED}", short(unit));
        found.problem(&path.name("unit"), location, what);
    }
    known
}

fn requests(
    count: Text<'_>,
    fields: &Fields<'_, '_>,
    path: &DocumentPath<'_>,
    found: &mut Diagnostics,
) -> Option<u32> {
    let Some((location, text)) = count else {
        let what = "`requests_per_unit` is missing, and the service would refuse everything: \
                    expected a number, or 0 to refuse everything";
        fields.lacks(what, found);
        return None;
    };
    let count = whole(text);
    if count.is_none() {
        let what = format!("expected a whole number below 2^32, not {}", short(text));
        found.problem(&path.name("requests_per_unit"), location, what);
    }
    count
}

/// Parses a whole number of YAML 1.1, like the service: `1_000`, `0x3e8`, `0b11`, and `010`, which is eight.
fn whole(text: &str) -> Option<u32> {
    let text = text.strip_prefix('+').unwrap_or(text);
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let digits = text.replace('_', "").to_ascii_lowercase();
    let prefixes = [("0x", 16), ("0b", 2), ("0o", 8), ("0", 8)];
    let based = prefixes.iter().find_map(|(prefix, base)| {
        let rest = digits.strip_prefix(prefix).filter(|rest| !rest.is_empty())?;
        Some((rest, *base))
    });
    let (digits, base) = based.unwrap_or((&digits, 10));
    let plain = digits.starts_with(|first: char| first.is_ascii_alphanumeric());
    u32::from_str_radix(digits, base).ok().filter(|_| plain)
}

fn replaces(
    fields: &mut Fields<'_, '_>,
    path: &DocumentPath<'_>,
    own: Option<&str>,
    found: &mut Diagnostics,
) -> Vec<String> {
    let list = path.name("replaces");
    let mut names = Vec::new();
    for (at, node) in fields.list("replaces", found).iter().enumerate() {
        let path = list.index(at);
        let Some(mut entry) = Fields::of(node, &path, "what is replaced", found) else { continue };
        match entry.text("name", found).filter(|(_, name)| !name.is_empty()) {
            None => {
                found.problem(&path, location(node), "`name` is missing: that of another limit");
            }
            Some((location, name)) if Some(name) == own => {
                found.problem(&path.name("name"), location, "a limit cannot replace itself");
            }
            Some((_, name)) => names.push(name.to_owned()),
        }
        entry.finish("`name`", found);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn numbers_are_those_of_yaml_1_1() {
        for (text, number) in [
            ("5", 5),
            ("1_000", 1_000),
            ("+7", 7),
            ("0x1F", 31),
            ("0b101", 5),
            ("0o17", 15),
            ("010", 8),
            ("0", 0),
            ("4294967295", u32::MAX),
        ] {
            assert_eq!(whole(text), Some(number), "{text}");
        }
        for text in [
            "",
            "-1",
            "+-1",
            "0x",
            "0x+1",
            "08",
            "1.5",
            "1e3",
            "4294967296",
            "ten",
            "_1",
            "99999999999999999999999",
        ] {
            assert_eq!(whole(text), None, "{text}");
        }
    }
}
