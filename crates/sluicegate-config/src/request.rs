use std::fmt;
use std::net::IpAddr;

use sluicegate_core::Claim;
use sluicegate_core::key::{Text, View};

/// A request, as a function of an [`Environment`](crate::Environment) sees it in every framework.
pub struct Request<'a>(&'a dyn ObjectView);

impl<'a> Request<'a> {
    pub(crate) fn of(view: &'a impl View) -> Self {
        Self(view)
    }

    /// The method, such as `GET`.
    pub fn method(&self) -> &str {
        self.0.method()
    }

    /// The path as the client sent it, such as `/users/7`.
    pub fn path(&self) -> &str {
        self.0.path()
    }

    /// The query without the `?`, not decoded.
    pub fn query(&self) -> Option<&str> {
        self.0.query()
    }

    /// The host that the request is for, as the client sent it.
    pub fn host(&self) -> Option<&str> {
        self.0.host()
    }

    /// The pattern of the matched route, such as `/users/{id}`.
    pub fn route(&self) -> Option<&str> {
        self.0.route()
    }

    /// The address of the peer.
    pub fn peer(&self) -> Option<IpAddr> {
        self.0.peer()
    }

    /// The value of the header `name`, if it occurs exactly once.
    pub fn header<'s>(&'s self, name: &'s str) -> Option<&'s [u8]> {
        self.0.header(name)
    }

    /// The claim `name` from the application's [`Claims`](sluicegate_core::key::Claims).
    pub fn claim(&self, name: &str) -> Option<String> {
        self.0.claim(name)
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method())
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

/// The part of [`View`] that a trait object can have: functions of an environment are not generic.
trait ObjectView {
    fn method(&self) -> &str;
    fn path(&self) -> &str;
    fn query(&self) -> Option<&str>;
    fn host(&self) -> Option<&str>;
    fn route(&self) -> Option<&str>;
    fn peer(&self) -> Option<IpAddr>;
    fn header<'s>(&'s self, name: &'s str) -> Option<&'s [u8]>;
    fn claim(&self, name: &str) -> Option<String>;
}

impl<V: View> ObjectView for V {
    fn method(&self) -> &str {
        View::method(self)
    }

    fn path(&self) -> &str {
        View::path(self)
    }

    fn query(&self) -> Option<&str> {
        View::query(self)
    }

    fn host(&self) -> Option<&str> {
        View::host(self)
    }

    fn route(&self) -> Option<&str> {
        View::route(self)
    }

    fn peer(&self) -> Option<IpAddr> {
        View::peer(self)
    }

    fn header<'s>(&'s self, name: &'s str) -> Option<&'s [u8]> {
        let mut lines = self.header_lines(name);
        lines.next().filter(|_| lines.next().is_none())
    }

    fn claim(&self, name: &str) -> Option<String> {
        Claim(name).read(self, str::to_owned).ok()
    }
}
