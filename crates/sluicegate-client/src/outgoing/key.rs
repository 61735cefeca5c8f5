use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use sluicegate::key::{Key, KeyBuf, Missing};

use super::target::Target;
use super::view::OutgoingView;

/// The origin that a request goes to: scheme, host in lower case, and port (RFC 6454).
///
/// Requests that name no host, as those to a channel of tonic, are all of one origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin;

impl Origin {
    /// Scheme, host and port of the origin of `target`.
    pub(crate) fn parts(target: Target<'_>) -> (&str, Cow<'_, str>, &str) {
        let (host, port) = target.host_and_port();
        let host = match host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => Cow::Owned(host.to_ascii_lowercase()),
            false => Cow::Borrowed(host),
        };
        (target.scheme, host, port.unwrap_or(""))
    }
}

impl Key<OutgoingView<'_>> for Origin {
    fn write(&self, view: &OutgoingView<'_>, key: &mut KeyBuf) -> Result<(), Missing> {
        let (scheme, host, port) = Self::parts(view.target());
        [scheme, &*host, port].iter().for_each(|part| key.push(part.as_bytes()));
        Ok(())
    }
}

/// Any key of outgoing requests, erased.
#[derive(Clone)]
pub struct AnyKey(Arc<dyn Write + Send + Sync>);

impl AnyKey {
    /// The key that `key` reads.
    pub fn new<K>(key: K) -> Self
    where
        K: for<'a> Key<OutgoingView<'a>> + Send + Sync + 'static,
    {
        Self(Arc::new(key))
    }
}

impl Key<OutgoingView<'_>> for AnyKey {
    fn write(&self, view: &OutgoingView<'_>, key: &mut KeyBuf) -> Result<(), Missing> {
        self.0.write_key(view, key)
    }
}

impl fmt::Debug for AnyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyKey")
    }
}

/// A key that reads requests of any lifetime, as an object.
trait Write {
    fn write_key(&self, view: &OutgoingView<'_>, key: &mut KeyBuf) -> Result<(), Missing>;
}

impl<K> Write for K
where
    K: for<'a> Key<OutgoingView<'a>>,
{
    fn write_key(&self, view: &OutgoingView<'_>, key: &mut KeyBuf) -> Result<(), Missing> {
        self.write(view, key)
    }
}

#[cfg(test)]
mod tests {
    use ::http::Request;
    use sluicegate::Header;
    use sluicegate::key::{Const, from_fn};

    use super::*;

    fn key<K>(key: K, uri: &str) -> KeyBuf
    where
        K: for<'a> Key<OutgoingView<'a>> + Send + Sync + 'static,
    {
        let request = Request::get(uri).header("x-tenant", "a").body(()).unwrap();
        KeyBuf::from_view(&AnyKey::new(key), &OutgoingView::new(&request)).unwrap()
    }

    #[test]
    fn every_spelling_of_an_origin_is_one_key() {
        let origin = key(Origin, "https://api.example/a?b=c");
        assert_eq!(key(Origin, "https://API.example:443/"), origin);
        for other in ["http://api.example/", "https://api.example:8443/", "https://example/", "/a"]
        {
            assert_ne!(key(Origin, other), origin, "{other}");
        }
    }

    #[test]
    fn keys_of_the_workspace_read_outgoing_requests() {
        let tenant = from_fn(|view: &OutgoingView<'_>| Some(view.headers().len() as u64));
        let all = (Origin, Header("x-tenant"), Const("v1"), tenant);
        assert_eq!(key(all, "http://a/"), key(all, "http://a/b"));
        assert_ne!(key(all, "http://a/"), key(all, "http://b/"));
    }
}
