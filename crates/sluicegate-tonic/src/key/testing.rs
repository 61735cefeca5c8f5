//! Keys of calls that tests make.

use http::Request;
use sluicegate::adapter::HttpView;

use super::{Key, KeyBuf, Missing};
use crate::Tonic;

type View<'a> = HttpView<'a, (), Tonic>;

/// What `see` finds in a call of this path.
pub(crate) fn called<T>(path: &str, see: impl FnOnce(&View<'_>) -> T) -> T {
    let mut request = Request::new(());
    // An empty path is one that a client can send without `http` in between.
    if let Ok(uri) = path.parse() {
        *request.uri_mut() = uri;
    }
    see(&HttpView::new(&request))
}

pub(crate) fn key_at(key: &impl for<'a> Key<View<'a>>, path: &str) -> Result<KeyBuf, Missing> {
    called(path, |view| KeyBuf::from_view(key, view))
}

fn written(
    key: &impl for<'a> Key<View<'a>>,
    metadata: &[(&'static str, &str)],
) -> Result<KeyBuf, Missing> {
    let mut request = Request::new(());
    for (name, value) in metadata {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    KeyBuf::from_view(key, &HttpView::new(&request))
}

pub(crate) fn key(key: &impl for<'a> Key<View<'a>>, metadata: &[(&'static str, &str)]) -> KeyBuf {
    written(key, metadata).unwrap()
}

pub(crate) fn missing(
    key: &impl for<'a> Key<View<'a>>,
    metadata: &[(&'static str, &str)],
) -> Missing {
    written(key, metadata).unwrap_err()
}
