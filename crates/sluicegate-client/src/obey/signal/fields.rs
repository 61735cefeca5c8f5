use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::time;

/// The fields that a signal is read from. One look at every name costs less than a search for each of them.
#[derive(Default)]
pub(super) struct Fields<'a> {
    /// The first line of the field.
    pub(super) age: Option<&'a HeaderValue>,
    pub(super) date: Line<'a>,
    pub(super) retry_after: Line<'a>,
    pub(super) retry_after_ms: Line<'a>,
    pub(super) draft: Line<'a>,
    pub(super) policy: Line<'a>,
    pub(super) has_grpc: bool,
    pub(super) has_legacy: bool,
}

impl<'a> Fields<'a> {
    pub(super) fn of(headers: &'a HeaderMap) -> Self {
        let mut fields = Self::default();
        for (name, value) in headers {
            // The first letter rules out most names.
            let name = name.as_str();
            match name.as_bytes()[0] {
                b'r' => match name {
                    "ratelimit" => fields.draft.add(value),
                    "ratelimit-policy" => fields.policy.add(value),
                    "retry-after" => fields.retry_after.add(value),
                    "retry-after-ms" => fields.retry_after_ms.add(value),
                    _ => fields.has_legacy |= name.starts_with("ratelimit-"),
                },
                b'x' => fields.has_legacy |= name.starts_with("x-rate"),
                b'd' if name == "date" => fields.date.add(value),
                b'a' => match name {
                    "age" => fields.age = fields.age.or(Some(value)),
                    _ => fields.has_legacy |= name.starts_with("anthropic-ratelimit-"),
                },
                b'g' => fields.has_grpc |= name == "grpc-status",
                _ => {}
            }
        }
        fields
    }
}

/// The lines of a field that has one value: appearing twice, it is malformed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Line<'a> {
    #[default]
    Missing,
    Once(&'a HeaderValue),
    Again,
}

impl<'a> Line<'a> {
    pub(super) fn of(headers: &'a HeaderMap, name: &HeaderName) -> Self {
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
pub(super) fn date(line: Line<'_>) -> Option<Duration> {
    line.text().and_then(time::http_date)
}

/// How long a cache has kept the response, if it has. A malformed age counts as no age.
pub(super) fn age(age: &HeaderValue) -> Option<Duration> {
    time::digits(age.as_bytes()).filter(|age| *age > 0).map(Duration::from_secs)
}
