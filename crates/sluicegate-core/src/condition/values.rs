use std::borrow::Cow;

use super::{ChosenBy, Condition};
use crate::key::{
    Claim, Claims, Cookie, Header, Host, Missing, Query, View, any_cookie, any_query, host_of,
    is_host, is_token, no_header_name, trimmed,
};

/// A value that can be present in a request, or equal to a text, in one place or in several.
///
/// A key needs one value and refuses two. A condition looks at each, because it is unknown which of them a handler
/// reads.
pub trait Values<V: View> {
    /// Whether one of the values passes the test.
    fn any(&self, view: &V, test: impl Fn(&[u8]) -> bool) -> Result<bool, Missing>;

    /// Whether a value passes the test and none fails it, so that it passes whichever of them a handler reads.
    fn only(&self, view: &V, test: impl Fn(&[u8]) -> bool) -> Result<bool, Missing> {
        Ok(self.any(view, &test)? && !self.any(view, |value| !test(value))?)
    }

    /// Who writes the values: the client, unless an implementation says otherwise.
    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Client
    }
}

/// Every line, without the spaces and tabs around it. The header `host` is also the host as the key [`Host`] writes it, and
/// the target of a request of HTTP/2, which has no such header.
impl<V: View, N: AsRef<str>> Values<V> for Header<N> {
    fn any(&self, view: &V, test: impl Fn(&[u8]) -> bool) -> Result<bool, Missing> {
        let name = self.0.as_ref();
        if is_host(name) {
            let mut written = view.header_lines(name).chain(view.host().map(str::as_bytes));
            return Ok(Host.any(view, &test)? || written.any(|host| test(trimmed(host))));
        }
        let mut lines = view.header_lines(name);
        if lines.any(|line| test(trimmed(line))) {
            return Ok(true);
        }
        if is_token(name.as_bytes()) { Ok(false) } else { Err(no_header_name(name)) }
    }

    fn only(&self, view: &V, test: impl Fn(&[u8]) -> bool) -> Result<bool, Missing> {
        // The one host is written in several forms, and one of them is enough.
        let is_host = is_host(self.0.as_ref());
        Ok(self.any(view, &test)? && (is_host || !self.any(view, |value| !test(value))?))
    }
}

/// Every value, percent-decoded.
impl<V: View, N: AsRef<str>> Values<V> for Query<N> {
    fn any(&self, view: &V, test: impl Fn(&[u8]) -> bool) -> Result<bool, Missing> {
        any_query(view, self.0.as_ref(), test)
    }
}

/// Every value, percent-decoded.
impl<V: View, N: AsRef<str>> Values<V> for Cookie<N> {
    fn any(&self, view: &V, test: impl Fn(&[u8]) -> bool) -> Result<bool, Missing> {
        any_cookie(view, self.0.as_ref(), test)
    }
}

/// As in the key: in lower case, without user, port and final dot. None if nothing is left.
impl<V: View> Values<V> for Host {
    fn any(&self, view: &V, test: impl Fn(&[u8]) -> bool) -> Result<bool, Missing> {
        let name = host_of(view)?.unwrap_or_default().to_ascii_lowercase();
        Ok(!name.is_empty() && test(name.as_bytes()))
    }
}

impl<V: View, N: AsRef<str>> Values<V> for Claim<N> {
    fn any(&self, view: &V, test: impl Fn(&[u8]) -> bool) -> Result<bool, Missing> {
        let name = self.0.as_ref();
        let tested = |claims: &Claims| claims.get(name).is_some_and(|value| test(value.as_bytes()));
        // A request without claims is one of a stranger, for whom nothing was said.
        Ok(view.extension(tested).unwrap_or(false))
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Server
    }
}

macro_rules! conditions {
    ($($(#[$equals:meta])* $source:ident;)*) => {$(
        impl<N: AsRef<str>> $source<N> {
            $(#[$equals])*
            pub fn equals(self, value: impl Into<Cow<'static, str>>) -> Equals<Self> {
                Equals { source: self, value: value.into() }
            }

            /// Holds if it is present. An empty value counts as missing, as for the key.
            pub fn is_present(self) -> Present<Self> {
                Present { source: self }
            }
        }
    )*};
}

conditions! {
    /// Holds if a line of the header is `value`, byte for byte, without the spaces and tabs around it. If the header
    /// is sent twice, one of the lines has to be equal, and under [`Not`](crate::condition::Not) all of them.
    ///
    /// ```
    /// use sluicegate::{Header, Ip, Limit};
    ///
    /// let rule = Limit::per_minute(10).by(Ip::peer()).when(Header("x-beta").equals("1"));
    /// ```
    Header;
    /// Holds if the parameter is `value`, after its name and value are percent-decoded. If the parameter is there
    /// twice, one of the values has to be equal, and under [`Not`](crate::condition::Not) all of them. A parameter
    /// without a value, as in `?debug`, equals the empty text.
    Query;
    /// Holds if the cookie is `value`, after its name and value are percent-decoded. If the cookie is sent twice, one
    /// of the values has to be equal, and under [`Not`](crate::condition::Not) all of them.
    Cookie;
    /// Holds if the claim is `value`.
    ///
    /// ```
    /// use sluicegate::{Claim, Limit};
    ///
    /// let rule = Limit::per_minute(10).by(Claim("customer")).when(Claim("plan").equals("free"));
    /// ```
    Claim;
}

/// Holds if a value in the request equals a text: see [`Header::equals`].
#[derive(Debug, Clone)]
pub struct Equals<S> {
    source: S,
    value: Cow<'static, str>,
}

impl<V: View, S: Values<V>> Condition<V> for Equals<S> {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        self.source.any(view, |value| value == self.value.as_bytes())
    }

    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        self.source.only(view, |value| value == self.value.as_bytes())
    }

    fn chosen_by(&self) -> ChosenBy {
        self.source.chosen_by()
    }
}

/// Holds if a value is present in the request: see [`Header::is_present`].
#[derive(Debug, Clone)]
pub struct Present<S> {
    source: S,
}

impl<V: View, S: Values<V>> Condition<V> for Present<S> {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        self.source.any(view, |value| !value.is_empty())
    }

    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        self.source.only(view, |value| !value.is_empty())
    }

    fn chosen_by(&self) -> ChosenBy {
        self.source.chosen_by()
    }
}
