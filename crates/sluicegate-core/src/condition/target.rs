use std::borrow::Cow;

use super::Condition;
use super::path::{PathMatches, check_length};
use crate::key::{Method, Missing, Path, Route, View};

impl Method {
    /// Holds for requests of this method, in the same case: methods are upper case.
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
    pub fn is(self, method: impl Into<Cow<'static, str>>) -> MethodIs {
        self.is_any([method])
    }

    /// Holds for requests of one of these methods, in the same case. `GET` also holds for `HEAD`, as in
    /// [`is`](Self::is).
    pub fn is_any<M: Into<Cow<'static, str>>>(
        self,
        methods: impl IntoIterator<Item = M>,
    ) -> MethodIs {
        MethodIs { methods: methods.into_iter().map(Into::into).collect() }
    }
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
    /// pattern is compared with the path, as [`Path.matches`](Path::matches) does.
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
        RouteIs { path: Path.try_matches(&pattern).ok(), pattern }
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
