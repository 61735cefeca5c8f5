use std::collections::BTreeMap;

use crate::Format;
use crate::document::{Condition, Key, Proxies};

/// The meaning of descriptor keys: which part of a request each key is.
///
/// The file of the service does not contain this. In Envoy, it is in the `rate_limits` actions of routes. Here, code
/// says it once for each key.
///
/// | key | default meaning |
/// |---|---|
/// | `remote_address` | [`Key::Ip`]: an IPv6 address is cut to its first 64 bits |
/// | `masked_remote_address` | whether the client's address is in the network of the value, such as `10.0.0.0/8` |
/// | `method`, `:method` | [`Key::Method`]: `GET` is also `HEAD` |
/// | `path`, `:path` | [`Key::Path`], without the query, in [every spelling](super::read_yaml) |
/// | `host`, `authority`, `:authority` | [`Key::Host`], without port |
/// | `generic_key` | every request has each value in the file, unless [`when`](Self::when) sets a condition |
///
/// These names are known in any letter case, such as `PATH` in Istio's example. Names set by code are
/// case-sensitive. A key without a meaning is an error when the file is read, because only Envoy's routes know which
/// header it is, if any.
///
/// ```
/// use sluicegate_config::envoy::Descriptors;
/// use sluicegate_config::document::{Condition, Key};
///
/// let mut on_uploads = Condition::default();
/// on_uploads.path = Some("/uploads/*".into());
///
/// let descriptors = Descriptors::default()
///     // request_headers: { header_name: x-user, descriptor_key: user }
///     .with("user", Key::Header("x-user".into()))
///     // source_cluster: {}
///     .with("source_cluster", Key::Const("proxy".into()))
///     // generic_key: { descriptor_value: uploads }, on the route /uploads
///     .when("generic_key", "uploads", on_uploads);
/// # let _ = descriptors;
/// ```
#[derive(Debug, Clone)]
pub struct Descriptors {
    keys: BTreeMap<String, Meaning>,
    values: BTreeMap<(String, String), Condition>,
    pub(super) token_buckets: bool,
    pub(super) proxies: Option<Proxies>,
}

/// The meaning of a key.
#[derive(Debug, Clone)]
pub(super) enum Meaning {
    /// This part of the request.
    Key(Key),
    /// Every request has each value in the file, unless the value has a condition.
    Named,
    /// Whether the client's address is in the network of the value.
    Network,
}

/// The keys with a default meaning, in lower case.
fn known() -> [(&'static str, Meaning); 10] {
    [
        ("remote_address", Meaning::Key(Key::Ip)),
        ("masked_remote_address", Meaning::Network),
        ("method", Meaning::Key(Key::Method)),
        (":method", Meaning::Key(Key::Method)),
        ("path", Meaning::Key(Key::Path)),
        (":path", Meaning::Key(Key::Path)),
        ("host", Meaning::Key(Key::Host)),
        ("authority", Meaning::Key(Key::Host)),
        (":authority", Meaning::Key(Key::Host)),
        ("generic_key", Meaning::Named),
    ]
}

/// Whether a key has a default meaning.
pub(super) fn is_known(name: &str) -> bool {
    known().iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
}

/// Replaces names that Envoy treats as headers but requests do not have as headers.
fn without_pseudo_header(key: Key) -> Key {
    match &key {
        Key::Header(name) => match name.to_ascii_lowercase().as_str() {
            ":path" => Key::Path,
            ":method" => Key::Method,
            ":authority" | "host" => Key::Host,
            _ => key,
        },
        _ => key,
    }
}

impl Default for Descriptors {
    fn default() -> Self {
        Self {
            keys: known().map(|(key, meaning)| (key.to_owned(), meaning)).into(),
            values: BTreeMap::new(),
            token_buckets: false,
            proxies: None,
        }
    }
}

impl Descriptors {
    /// Sets the part `of` a request that `key` means, like the action of Envoy that reads it.
    ///
    /// A request without that part has no descriptor with that key, as in Envoy, and is not charged by the limits
    /// below it. Use [`Key::Const`] for a value that is the same for every request, such as `source_cluster`.
    ///
    /// The headers `:path`, `:method`, `:authority` and `host` are treated as [`Key::Path`], [`Key::Method`] and
    /// [`Key::Host`].
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, of: Key) -> Self {
        self.keys.insert(key.into(), Meaning::Key(without_pseudo_header(of)));
        self
    }

    /// Gives `key` this `value` in requests that meet the `condition`, like an action of Envoy on some routes, or
    /// like `header_value_match`.
    #[must_use]
    pub fn when(
        mut self,
        key: impl Into<String>,
        value: impl Into<String>,
        condition: Condition,
    ) -> Self {
        let key = key.into();
        self.keys.insert(key.clone(), Meaning::Named);
        self.values.insert((key, value.into()), condition);
        self
    }

    /// Uses token buckets, which do not admit twice the limit around the border of two windows. By default the limits
    /// are fixed windows aligned to the Unix epoch, as in the service.
    #[must_use]
    pub fn token_buckets(mut self) -> Self {
        self.token_buckets = true;
        self
    }

    /// Sets the proxies in front of the service, so that `remote_address` is the client's address and not that of
    /// the nearest proxy.
    #[must_use]
    pub fn behind(mut self, proxies: Proxies) -> Self {
        self.proxies = Some(proxies);
        self
    }

    pub(super) fn meaning(&self, key: &str) -> Option<&Meaning> {
        // `path` and `Path` may be two keys with different meanings.
        let known = || is_known(key).then(|| self.keys.get(&key.to_ascii_lowercase())).flatten();
        self.keys.get(key).or_else(known)
    }

    /// The condition of a value, if code set one.
    pub(super) fn condition(&self, key: &str, value: &str) -> Option<&Condition> {
        self.values.get(&(key.to_owned(), value.to_owned()))
    }

    /// Whether code set a condition for one of its values.
    pub(super) fn has_conditions(&self, key: &str) -> bool {
        let first = self.values.range((key.to_owned(), String::new())..).next();
        first.is_some_and(|((known, _), _)| known == key)
    }
}

/// Reads files of Envoy's rate limit service with these descriptors.
impl From<Descriptors> for Format {
    fn from(descriptors: Descriptors) -> Self {
        Self::new(
            move |text| super::read_yaml_with_warnings(text, &descriptors),
            "no descriptor has a `rate_limit`: say `descriptors: []` if there are to be no limits",
        )
    }
}
