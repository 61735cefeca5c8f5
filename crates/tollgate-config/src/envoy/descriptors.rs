use std::collections::BTreeMap;

use crate::document::{Condition, Key, Proxies};

/// What the keys of descriptors are of a request.
///
/// The service's file does not say where descriptors come from: that is in the `rate_limits` of Envoy's
/// routes, action by action. Here, it is said in code, once for each key.
///
/// | key | is, unless said otherwise |
/// |---|---|
/// | `remote_address` | [`Key::Ip`]: an IPv6 address is cut to its first 64 bits |
/// | `method`, `:method` | [`Key::Method`] |
/// | `path`, `:path` | [`Key::Path`], without the query |
/// | `host`, `authority`, `:authority` | [`Key::Host`], without port |
/// | `generic_key` | each value that the file names, for every request: [`when`](Self::when) says for which |
///
/// ```
/// use tollgate_config::Descriptors;
/// use tollgate_config::document::{Condition, Key, Texts};
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
}

impl Default for Descriptors {
    fn default() -> Self {
        let known = [
            ("remote_address", Meaning::Key(Key::Ip)),
            ("method", Meaning::Key(Key::Method)),
            (":method", Meaning::Key(Key::Method)),
            ("path", Meaning::Key(Key::Path)),
            (":path", Meaning::Key(Key::Path)),
            ("host", Meaning::Key(Key::Host)),
            ("authority", Meaning::Key(Key::Host)),
            (":authority", Meaning::Key(Key::Host)),
            ("generic_key", Meaning::Named),
        ];
        Self {
            keys: known.map(|(key, meaning)| (key.to_owned(), meaning)).into(),
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
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, of: Key) -> Self {
        self.keys.insert(key.into(), Meaning::Key(of));
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
        self.keys.get(key)
    }

    /// The condition of a named value: `None` where nothing is said of it.
    pub(super) fn condition(&self, key: &str, value: &str) -> Option<&Condition> {
        self.values.get(&(key.to_owned(), value.to_owned()))
    }

    /// Whether something is said of one of its values.
    pub(super) fn has_conditions(&self, key: &str) -> bool {
        self.values.keys().any(|(known, _)| known == key)
    }

    pub(super) fn proxies(&self) -> Option<&Proxies> {
        self.proxies.as_ref()
    }

    pub(super) fn are_token_buckets(&self) -> bool {
        self.token_buckets
    }
}
