//! The API for adapters to frameworks, and for stores.
//!
//! Services do not need this module. It follows semantic versioning like the others, but changes of it are
//! expected more often.

#[doc(inline)]
pub use sluicegate_core::adapter::*;

use http::Request;
use sluicegate_core::key::{Key, KeyBuf, Missing};

pub use crate::headers::{HttpExtensions, HttpHead};
pub use crate::http_limit::HttpLimit;
pub use crate::reply::HttpReply;
pub use crate::sleep::TokioTimer;
pub use crate::upgrade::Upgrade;
pub use crate::view::{
    Framework, FrameworkAnswer, FrameworkBody, HttpView, MatchedRoute, Peer, Plain,
};

/// The key that `key` reads from `request`: the same key that a rule by it uses.
///
/// With it, code can [block](crate::store::Blocks::block_key) a client of a layer. The request is one that the client
/// has sent, or one made up with what the key reads.
///
/// ```
/// use std::time::Duration;
/// use http::Request;
/// use sluicegate::adapter::key_of;
/// use sluicegate::store::Blocks;
/// use sluicegate::{Header, Limit, Memory, RateLimitLayer};
///
/// let store = Blocks::new(Memory::new());
/// let layer = RateLimitLayer::new(Limit::per_minute(60).by(Header("x-api-key")))
///     .store(store.clone());
///
/// // Somewhere else: no request with this API key passes the layer for an hour.
/// let request = Request::builder().header("x-api-key", "stolen").body(())?;
/// let key = key_of(&Header("x-api-key"), &request)?;
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
    K: for<'a> Key<HttpView<'a, B>>,
{
    KeyBuf::from_view(key, &HttpView::new(request))
}
