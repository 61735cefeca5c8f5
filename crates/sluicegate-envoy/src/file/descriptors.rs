use std::collections::BTreeMap;

use sluicegate_config::Format;
use sluicegate_config::document::{Condition, Key, Proxies};

/// What the keys of descriptors are of a request.
///
/// The service's file does not say where descriptors come from: that is in the `rate_limits` of Envoy's
/// routes, action by action. Here, it is said in code, once for each key.
///
/// | key | is, unless said otherwise |
/// |---|---|
/// | `remote_address` | [`Key::Ip`]: an IPv6 address is cut to its first 64 bits |
/// | `masked_remote_address` | whether the client's address is in the network that is the value, such as `10.0.0.0/8` |
/// | `method`, `:method` | [`Key::Method`] |
/// | `path`, `:path` | [`Key::Path`], without the query |
/// | `host`, `authority`, `:authority` | [`Key::Host`], without port |
/// | `generic_key` | each value that the file names, for every request: [`when`](Self::when) says for which |
///
/// These names are known in any letter case (`PATH` as Istio's example has it); names that the code says
/// are known as they are written. A key that nothing says is an error when the file is read: which header
/// it is, if it is one, only Envoy's routes know.
///
/// ```
/// use sluicegate_envoy::Descriptors;
/// use sluicegate_config::document::{Condition, Key, Texts};
///
/// let descriptors = Descriptors::default()
///     // request_headers: { header_name: x-user, descriptor_key: user }
///     .with("user", Key::Header("x-user".into()))
///     // source_cluster: {}
///     .with("source_cluster", Key::Const("proxy".into()))
///     // generic_key: { descriptor_value: uploads }, on the route /uploads
///     .when("generic_key", "uploads", Condition {
///         path: Some(Texts::One("/uploads/*".into())),
///         ..Condition::default()
///     });
/// # let _ = descriptors;
/// ```
#[derive(Debug, Clone)]
pub struct Descriptors {
    keys: BTreeMap<String, Meaning>,
    values: BTreeMap<(String, String), Condition>,
    token_buckets: bool,
    proxies: Option<Proxies>,
}

/// What a key is.
#[derive(Debug, Clone)]
pub(super) enum Meaning {
    /// This of the request.
    Key(Key),
    /// Every value that the file names, unless its condition says otherwise.
    Named,
    /// The client's network, which its values say.
    Network,
}

/// The keys that are known without being said, in small letters.
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

/// Whether a key of this name is known without being said.
pub(super) fn is_known(name: &str) -> bool {
    known().iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
}

/// What Envoy calls headers and no request has as one.
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
    /// Says that `key` is this `of` a request, as an action of Envoy's that reads it from there.
    ///
    /// A request that lacks it has no descriptor with that key, as in Envoy, and owes nothing to the
    /// limits below it. [`Key::Const`] is for what is the same for every request, such as
    /// `source_cluster`.
    ///
    /// The headers that Envoy calls `:path`, `:method`, `:authority` and `host` are [`Key::Path`],
    /// [`Key::Method`] and [`Key::Host`].
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, of: Key) -> Self {
        self.keys.insert(key.into(), Meaning::Key(without_pseudo_header(of)));
        self
    }

    /// Says that `key` has this `value` for requests that meet the `condition`, as an action of Envoy's
    /// on some routes, or one such as `header_value_match`.
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

    /// Makes token buckets of the limits: as many requests in a unit of time, but never twice as many
    /// around the border of two windows. Without this, they are fixed windows aligned to the Unix epoch,
    /// which is how the service counts.
    #[must_use]
    pub fn token_buckets(mut self) -> Self {
        self.token_buckets = true;
        self
    }

    /// Says which proxies stand in front of the service, so that `remote_address` is the client's address
    /// and not that of the nearest of them.
    #[must_use]
    pub fn behind(mut self, proxies: Proxies) -> Self {
        self.proxies = Some(proxies);
        self
    }

    pub(super) fn meaning(&self, key: &str) -> Option<&Meaning> {
        // `path` and `Path` may be two keys: what is said of one is not said of the other.
        let known = || is_known(key).then(|| self.keys.get(&key.to_ascii_lowercase())).flatten();
        self.keys.get(key).or_else(known)
    }

    /// The condition of a named value: `None` where nothing is said of it.
    pub(super) fn condition(&self, key: &str, value: &str) -> Option<&Condition> {
        self.values.get(&(key.to_owned(), value.to_owned()))
    }

    /// Whether something is said of one of its values.
    pub(super) fn has_conditions(&self, key: &str) -> bool {
        let first = self.values.range((key.to_owned(), String::new())..).next();
        first.is_some_and(|((known, _), _)| known == key)
    }

    pub(super) fn proxies(&self) -> Option<&Proxies> {
        self.proxies.as_ref()
    }

    pub(super) fn are_token_buckets(&self) -> bool {
        self.token_buckets
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
