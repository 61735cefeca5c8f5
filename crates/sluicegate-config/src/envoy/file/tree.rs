//! The file as written: a domain with nested descriptors.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::fields::Fields;
use super::found::Found;
use super::rate::{RateLimit, rate_limit};
use super::yaml::Node;
use crate::SourceLocation;
use crate::reader::DocumentPath;

/// A file, which has one domain.
#[derive(Debug, Default)]
pub(crate) struct Domain {
    pub(crate) name: String,
    pub(crate) descriptors: Vec<Descriptor>,
    /// The location of the descriptors, if the list is empty or contains a rate limit. In a file that was cut off it
    /// may be neither.
    pub(crate) said: Option<SourceLocation>,
}

/// One entry of a descriptor, with its limit and the entries below it.
#[derive(Debug)]
pub(crate) struct Descriptor {
    /// The path, such as `descriptors[0].descriptors[2]`.
    pub(crate) path: String,
    /// The location of the key.
    pub(crate) location: SourceLocation,
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) limit: Option<RateLimit>,
    pub(crate) shadow: bool,
    /// The location of `quota_mode: true`. A request is refused only if all its quotas are spent.
    pub(crate) quota: Option<SourceLocation>,
    /// Whether all values that match a wildcard share one budget.
    pub(crate) shared: bool,
    pub(crate) descriptors: Vec<Self>,
}

/// The values that an entry matches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    /// Every value that no entry beside it matches.
    Any,
    /// This value.
    Exactly(String),
    /// Values that match the pattern. `*` matches any text, also none.
    Like(String),
}

impl Value {
    /// The value, or the pattern.
    pub(crate) fn text(&self) -> Option<&str> {
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
const WILDCARDS: usize = 256;

/// Reads the only document of the file.
pub(super) fn domain(node: &Node<'_>, found: &mut Found) -> Option<Domain> {
    let mut fields = Fields::of(node, &DocumentPath::Root, "the file", found)?;
    let name = fields.text("domain", found).map_or("", |(_, name)| name).to_owned();
    if name.is_empty() {
        fields.lacks("`domain` is missing: the name of what the limits are for", found);
    }
    let list = fields.location_of("descriptors");
    let descriptors = descriptors(&mut fields, &DocumentPath::Root, found);
    fields.idle("name", found);
    IGNORED.iter().for_each(|name| fields.misplaced(name, found));
    let said = list.filter(|_| descriptors.is_empty() || limits(&descriptors));
    fields.finish("`domain` or `descriptors`", found);
    Some(Domain { name, descriptors, said })
}

/// Whether one of the descriptors has a rate limit.
fn limits(descriptors: &[Descriptor]) -> bool {
    descriptors.iter().any(|one| one.limit.is_some() || limits(&one.descriptors))
}

fn descriptors(
    fields: &mut Fields<'_, '_>,
    path: &DocumentPath<'_>,
    found: &mut Found,
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

fn descriptor(node: &Node<'_>, path: &DocumentPath<'_>, found: &mut Found) -> Option<Descriptor> {
    let mut fields = Fields::of(node, path, "a descriptor", found)?;
    let key = fields.text("key", found).filter(|(_, key)| !key.is_empty());
    if key.is_none() {
        fields.lacks("`key` is missing: the name of the descriptor's entry", found);
    }
    let value = Value::new(fields.text("value", found).map_or("", |(_, value)| value));
    let limit = fields.take("rate_limit");
    let limit = limit.and_then(|node| rate_limit(node, &path.name("rate_limit"), found));
    let shadow = fields.flag("shadow_mode", found).is_some();
    let quota = fields.flag("quota_mode", found);
    let shared = shared(&mut fields, path, &value, found);
    not_followed(&mut fields, path, found);
    let descriptors = descriptors(&mut fields, path, found);
    fields.finish(FIELDS, found);
    let (location, key) = key?;
    let (path, key) = (path.to_string(), key.to_owned());
    Some(Descriptor { path, location, key, value, limit, shadow, quota, shared, descriptors })
}

const FIELDS: &str = "`key`, `value`, `rate_limit`, `descriptors`, `shadow_mode`, `quota_mode`, \
                      `share_threshold`, `detailed_metric`, `value_to_metric`, `name` or `metadata`";

/// Fields of a rate limit. The service accepts them everywhere but ignores them elsewhere.
const IGNORED: [&str; 4] = ["unit", "requests_per_unit", "unlimited", "replaces"];

fn shared(
    fields: &mut Fields<'_, '_>,
    path: &DocumentPath<'_>,
    value: &Value,
    found: &mut Found,
) -> bool {
    let Some(location) = fields.flag("share_threshold", found) else { return false };
    let wildcard = matches!(value, Value::Like(_));
    if !wildcard {
        let what = "this is for a `value` with `*`, so that all that it matches share one budget";
        found.problem(&path.name("share_threshold"), location, what);
    }
    wildcard
}

/// Reads fields that have no effect here, or that the service ignores.
fn not_followed(fields: &mut Fields<'_, '_>, path: &DocumentPath<'_>, found: &mut Found) {
    for name in ["detailed_metric", "value_to_metric"] {
        if let Some(location) = fields.flag(name, found) {
            let what = "this changes nothing here: metrics go by the name of the limit";
            found.warning(&path.name(name), location, what);
        }
    }
    if let Some(node) = fields.take("metadata") {
        let what = "this changes nothing here: it is for Envoy's filters";
        found.warning(&path.name("metadata"), super::yaml::location(node), what);
    }
    for name in ["name", "domain"] {
        fields.idle(name, found);
    }
    IGNORED.iter().for_each(|name| fields.misplaced(name, found));
}
