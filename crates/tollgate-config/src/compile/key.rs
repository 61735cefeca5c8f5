use tollgate_core::{Global, Host, Ip, KeyBuf, Method, Missing, Path as PathKey, Route, View};

use super::notes::Notes;
use crate::document;
use crate::path::Path;

/// The keys that a document can ask for.
#[derive(Debug)]
pub(super) enum Key {
    Ip(Ip),
    Route,
    Method,
    Path,
    Host,
    Global,
}

impl Key {
    pub(super) fn compile(key: &document::Key, path: &Path<'_>, notes: &Notes<'_>) -> Option<Self> {
        Some(match key {
            document::Key::Ip => Self::Ip(Ip::peer()),
            document::Key::Route => Self::Route,
            document::Key::Method => Self::Method,
            document::Key::Path => Self::Path,
            document::Key::Host => Self::Host,
            document::Key::Global => Self::Global,
            _ => {
                notes.wrong(path, "the key is not understood");
                return None;
            }
        })
    }
}

impl<V: View> tollgate_core::Key<V> for Key {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        match self {
            Self::Ip(ip) => ip.write(view, key),
            Self::Route => Route.write(view, key),
            Self::Method => Method.write(view, key),
            Self::Path => PathKey.write(view, key),
            Self::Host => Host.write(view, key),
            Self::Global => Global.write(view, key),
        }
    }
}
