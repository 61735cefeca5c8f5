use std::time::Duration;

use http::header::AsHeaderName;
use http::{HeaderMap, HeaderValue, header};

use super::time;

/// The lines of a field that has one value: appearing twice, it is malformed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Line<'a> {
    #[default]
    Missing,
    Once(&'a HeaderValue),
    Again,
}

impl<'a> Line<'a> {
    pub(super) fn of(headers: &'a HeaderMap, name: impl AsHeaderName) -> Self {
        let mut line = Self::Missing;
        headers.get_all(name).into_iter().for_each(|value| line.add(value));
        line
    }

    pub(super) fn add(&mut self, value: &'a HeaderValue) {
        *self = match self {
            Self::Missing => Self::Once(value),
            Self::Once(_) | Self::Again => Self::Again,
        };
    }

    /// The only line.
    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Once(value) => Some(value.as_bytes().trim_ascii()),
            Self::Missing | Self::Again => None,
        }
    }

    /// The only line, if it is text.
    pub(super) fn text(self) -> Option<&'a str> {
        match self {
            Self::Once(value) => value.to_str().ok().map(str::trim_ascii),
            Self::Missing | Self::Again => None,
        }
    }
}

/// The time of the response by the server's clock, if it tells.
pub(super) fn date(headers: &HeaderMap) -> Option<Duration> {
    Line::of(headers, header::DATE).text().and_then(time::http_date)
}

/// How long a cache has kept the response, if it has. A malformed age counts as no age.
pub(super) fn age(headers: &HeaderMap) -> Option<Duration> {
    time::digits(headers.get(header::AGE)?.as_bytes())
        .filter(|age| *age > 0)
        .map(Duration::from_secs)
}
