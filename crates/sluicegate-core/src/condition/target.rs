use std::borrow::Cow;

use super::path::{PathMatches, check_length, literal};
use super::{Condition, PatternError};
use crate::key::{Method, Missing, Route, View, is_token};

impl Method {
    /// Holds for requests of this method, in the same case: methods are upper case, except for a method of your own.
    ///
    /// `GET` also holds for `HEAD`: axum and other frameworks answer a HEAD request by running the handler for
    /// GET, so HEAD must be no way around a limit on GET. `Not(Method.is("GET"))` holds for HEAD as well, for
    /// the same reason: an exception for GET is for GET alone.
    ///
    /// ```
    /// use sluicegate::{Ip, Limit};
    /// use sluicegate::key::Method;
    ///
    /// let rule = Limit::per_minute(10).by(Ip::peer()).when(Method.is("POST"));
    /// ```
    ///
    /// # Panics
    ///
    /// If no request can have the method. For methods from configuration there is [`try_is_any`](Self::try_is_any).
    #[track_caller]
    pub fn is(self, method: impl Into<Cow<'static, str>>) -> MethodIs {
        self.is_any([method])
    }

    /// Holds for requests of one of these methods, in the same case. `GET` also holds for `HEAD`, as in
    /// [`is`](Self::is).
    ///
    /// # Panics
    ///
    /// If no request can have one of the methods, or there is none. For methods from configuration there is
    /// [`try_is_any`](Self::try_is_any).
    #[track_caller]
    pub fn is_any<M: Into<Cow<'static, str>>>(
        self,
        methods: impl IntoIterator<Item = M>,
    ) -> MethodIs {
        self.try_is_any(methods).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`is_any`](Self::is_any), for methods from configuration.
    ///
    /// # Errors
    ///
    /// Names a method that no request can have: one that is not a token (RFC 9110, 9.1), or a well-known one in another
    /// case. Also an error if there is no method.
    pub fn try_is_any<M: Into<Cow<'static, str>>>(
        self,
        methods: impl IntoIterator<Item = M>,
    ) -> Result<MethodIs, PatternError> {
        let methods: Vec<_> = methods.into_iter().map(Into::into).collect();
        if methods.is_empty() {
            return Err(PatternError::of_method("", "is empty: expected one such as `POST`"));
        }
        match methods.iter().find_map(|method| Some((method, problem_of(method)?))) {
            Some((method, problem)) => Err(PatternError::of_method(method, problem)),
            None => Ok(MethodIs { methods }),
        }
    }
}

/// Well-known methods, which are often written in lower case by mistake.
const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/// Why no request has this method.
fn problem_of(method: &str) -> Option<&'static str> {
    if method.is_empty() {
        return Some("is empty: expected one such as `POST`");
    }
    // A token may hold it, but who writes it means any method.
    if method.contains('*') {
        return Some(
            "has a `*`, which stands for no other method: a rule for all methods names none",
        );
    }
    if !is_token(method.as_bytes()) {
        return Some(
            "has a character that no method can have: expected letters of ASCII, such as `POST`",
        );
    }
    let known = METHODS.iter().find(|known| known.eq_ignore_ascii_case(method));
    known.filter(|known| **known != method).map(|_| {
        "is written in upper case: methods are case-sensitive, and no client sends it like this"
    })
}

/// Holds for requests of some methods; see [`Method::is`].
#[derive(Debug, Clone)]
pub struct MethodIs {
    methods: Vec<Cow<'static, str>>,
}

impl MethodIs {
    fn has(&self, method: &str) -> bool {
        self.methods.iter().any(|own| own == method)
    }
}

impl<V: View> Condition<V> for MethodIs {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        let method = view.method();
        Ok(self.has(method) || method == "HEAD" && self.has("GET"))
    }

    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        Ok(self.has(view.method()))
    }
}

impl Route {
    /// Holds for requests that matched this route, written as the framework writes it:
    /// `/users/{id}`.
    ///
    /// Prefer this condition if the framework routes: it names what will answer the request, however the client
    /// spelled the path. If no route is known, because the limit runs before the router or nothing matched, the
    /// pattern is compared with the path, as [`Path.matches`](crate::key::Path::matches) does. What stands in braces besides a name is
    /// not evaluated then: `{id:[0-9]+}` is any segment, and `{tail:.*}` any number of them.
    ///
    /// In actix-web, a limit around an app or a scope runs before the routing inside of it, and cannot see guards.
    /// There the condition holds for every request that the route *may* answer, and `Not(Route.is(..))` for every
    /// request that another route may answer. Around a resource it is exact.
    ///
    /// ```
    /// use sluicegate::{Ip, Limit, Route};
    ///
    /// let rule = Limit::per_minute(5).by(Ip::peer()).when(Route.is("/login"));
    /// ```
    pub fn is(self, pattern: impl Into<Cow<'static, str>>) -> RouteIs {
        let pattern = pattern.into();
        literal::warn("route", &pattern);
        RouteIs { path: PathMatches::of_route(&pattern), pattern }
    }
}

/// Holds for requests that matched a route; see [`Route::is`].
#[derive(Debug, Clone)]
pub struct RouteIs {
    pattern: Cow<'static, str>,
    /// The route as a pattern of paths, if it is one.
    path: Option<PathMatches>,
}

impl<V: View> Condition<V> for RouteIs {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        match view.is_route(&self.pattern) {
            Some(true) => Ok(true),
            Some(false) => match &self.path {
                Some(path) if view.route().is_none() => path.holds(view),
                _ => Ok(false),
            },
            None => check_length(view).map(|()| true),
        }
    }

    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        Ok(view.is_route(&self.pattern) == Some(true))
    }
}
