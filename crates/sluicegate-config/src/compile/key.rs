//! Keys of documents.

use std::sync::Arc;

use sluicegate_core::key::{
    Const, Cookie, Host, Key as CoreKey, KeyBuf, Method, Missing, Optional, Path as PathKey, Query,
    Text as CoreText, View,
};
use sluicegate_core::{Claim, First, Global, Header, Ip, Route};

use super::context::{Context, Name};
use crate::absent::GeoKey;
use crate::document;
use crate::source::DocumentPath;
/// A key. It uses the same extractors as code, so both write the same keys.
#[derive(Debug, Clone)]
pub(super) enum Key {
    Ip(Ip),
    Route,
    Method,
    Path,
    Host,
    Global,
    Header(Header<Name>),
    Cookie(Cookie<Name>),
    Query(Query<Name>),
    Claim(Claim<Name>),
    Const(Name),
    Geo(Arc<GeoKey>),
    First(First<Arc<[Self]>>),
    Optional(Arc<Optional<Self>>),
    All(Arc<[Self]>),
}

impl<V: View> CoreKey<V> for Key {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        match self {
            Self::Ip(ip) => ip.write(view, key),
            Self::Route => Route.write(view, key),
            Self::Method => Method.write(view, key),
            Self::Path => PathKey.write(view, key),
            Self::Host => Host.write(view, key),
            Self::Global => Global.write(view, key),
            Self::Header(header) => header.write(view, key),
            Self::Cookie(cookie) => cookie.write(view, key),
            Self::Query(query) => query.write(view, key),
            Self::Claim(claim) => claim.write(view, key),
            Self::Const(text) => Const(&**text).write(view, key),
            Self::Geo(geo) => geo.write(view, key),
            Self::First(first) => first.write(view, key),
            Self::Optional(inner) => inner.write(view, key),
            Self::All(keys) => keys.iter().try_for_each(|part| part.write(view, key)),
        }
    }
}

impl Key {
    pub(super) fn new(
        key: &document::Key,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        use document::Key as Spec;
        let named = |kind: &str, name: &str| context.name(kind, name, &path.name(kind));
        Some(match key {
            Spec::Ip => Self::Ip(context.ip.clone()),
            Spec::Route => Self::Route,
            Spec::Method => Self::Method,
            Spec::Path => Self::Path,
            Spec::Host => Self::Host,
            Spec::Global => Self::Global,
            Spec::Header(name) => {
                Self::Header(Header(context.request_header(name, &path.name("header"))?))
            }
            Spec::Cookie(name) => Self::Cookie(Cookie(named("cookie", name)?)),
            Spec::Query(name) => Self::Query(Query(named("query", name)?)),
            Spec::Claim(name) => Self::Claim(Claim(named("claim", name)?)),
            Spec::Const(text) => Self::Const(text.as_str().into()),
            Spec::First(keys) => Self::first(keys, &path.name("first"), context)?,
            Spec::Optional(inner) => {
                let inner = Self::new(inner, &path.name("optional"), context)?;
                Self::Optional(Arc::new(Optional(inner)))
            }
            Spec::All(keys) => Self::all(keys, path, context)?,
            Spec::Country => Self::Geo(Arc::new(context.country(path)?)),
            Spec::Region => Self::Geo(Arc::new(context.region(path)?)),
        })
    }

    fn first(
        keys: &[document::Key],
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        let keys = Self::list(keys, path, context)?;
        if !(2..=4).contains(&keys.len()) {
            return context.refuse(path, "`first` takes two to four keys");
        }
        Some(Self::First(First(keys.into())))
    }

    fn all(keys: &[document::Key], path: &DocumentPath<'_>, context: &Context<'_>) -> Option<Self> {
        if keys.is_empty() || keys.len() > 4 {
            context.report(path, "a list of keys has one to four keys");
        }
        Self::list(keys, path, context).map(|keys| Self::All(keys.into()))
    }

    /// All keys, or `None`. Every key is checked first.
    fn list(
        keys: &[document::Key],
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Vec<Self>> {
        let made = keys.iter().enumerate().map(|(i, key)| Self::new(key, &path.index(i), context));
        made.collect::<Vec<_>>().into_iter().collect()
    }
}

/// Text about a request that the server has verified.
#[derive(Debug, Clone)]
pub(super) enum Text {
    Claim(Claim<Name>),
    Const(Name),
}

impl Text {
    pub(super) fn new(
        key: &document::Key,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        match key {
            document::Key::Claim(name) => {
                let name = context.name("claim", name, &path.name("claim"))?;
                Some(Self::Claim(Claim(name)))
            }
            document::Key::Const(text) => Some(Self::Const(text.as_str().into())),
            _ => {
                context.refuse(
                    path,
                    "a tier must come from a value that the service has verified, because a client can choose \
                     all others: expected { claim = \"..\" } or { const = \"..\" }",
                )
            }
        }
    }
}

impl<V: View> CoreText<V> for Text {
    fn read<O>(&self, view: &V, read: impl FnOnce(&str) -> O) -> Result<O, Missing> {
        match self {
            Self::Claim(claim) => claim.read(view, read),
            Self::Const(text) => Ok(read(text)),
        }
    }
}
