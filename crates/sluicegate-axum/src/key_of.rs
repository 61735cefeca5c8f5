use http::Request;
use sluicegate::adapter::HttpView;
use sluicegate::key::{Key, KeyBuf, Missing};

use crate::framework::Axum;

/// The key that `key` reads from `request`: the same key that a rule by it uses.
///
/// With it, code can [block](crate::store::Blocks::block_key) a client of a layer. The request is one that the client
/// has sent, or one made up with what the key reads.
///
/// ```
/// use std::time::Duration;
/// use axum::extract::Request;
/// use sluicegate_axum::adapter::{Peer, key_of};
/// use sluicegate_axum::store::Blocks;
/// use sluicegate_axum::{Ip, Limit, Memory, RateLimitLayer};
///
/// let store = Blocks::new(Memory::new());
/// let layer = RateLimitLayer::new(Limit::per_minute(60).by(Ip::peer())).store(store.clone());
///
/// // Somewhere else: no request from this address passes the layer for an hour.
/// let mut request = Request::new(axum::body::Body::empty());
/// request.extensions_mut().insert(Peer("203.0.113.7".parse()?));
/// let key = key_of(&Ip::peer(), &request)?;
/// store.block_key(key, Duration::from_secs(3_600)).now()?;
/// # let _ = layer;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Returns what the request lacks.
pub fn key_of<B, K>(key: &K, request: &Request<B>) -> Result<KeyBuf, Missing>
where
    K: for<'a> Key<HttpView<'a, B, Axum>>,
{
    KeyBuf::from_view(key, &HttpView::new(request))
}
