use std::time::Duration;

use ::http::{Extensions, HeaderMap, Method, Request, Response, StatusCode, Uri};

use super::context::Context;
use super::grpc;

/// A request that the layers can send on.
pub trait OutgoingRequest {
    /// The method.
    fn method(&self) -> &Method;

    /// Where it goes.
    fn target(&self) -> Target<'_>;

    /// The header.
    fn headers(&self) -> &HeaderMap;

    /// The header, to add a field.
    fn headers_mut(&mut self) -> &mut HeaderMap;

    /// What the program has attached to the request; `None` where the client does not let layers see it, as reqwest.
    fn extensions(&self) -> Option<&Extensions>;

    /// What the program has attached to the request, to add to it.
    fn extensions_mut(&mut self) -> Option<&mut Extensions>;

    /// How long the caller waits for the response, if it says so.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Tells the client below that the caller waits for `left` from now on, if the request states a time. Layers that send a
    /// request again call this, because the stated time began with the first attempt.
    fn shorten_timeout(&mut self, left: Duration) {
        grpc::shorten(self.headers_mut(), left);
    }
}

impl Context {
    /// The context of a request: its own, else that of the [`scope`](Self::scope) that this code runs in.
    pub fn of(request: &impl OutgoingRequest) -> Option<Self> {
        let own = request.extensions().and_then(|extensions| extensions.get::<Self>());
        own.cloned().or_else(Self::current)
    }
}

/// A request that can be sent a second time.
pub trait ReplayRequest: OutgoingRequest + Sized {
    /// A copy; `None` if the body can be read only once.
    fn try_clone(&self) -> Option<Self>;
}

/// The head of a response.
pub trait OutgoingResponse {
    /// The status.
    fn status(&self) -> StatusCode;

    /// The header.
    fn headers(&self) -> &HeaderMap;

    /// Where the response comes from, if the client has followed redirects; `None` where the client does not say.
    fn source(&self) -> Option<Target<'_>> {
        None
    }
}

/// Where a request goes: the parts of its URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    /// `https`; empty where the request does not say.
    pub scheme: &'a str,
    /// `user@host:port`; empty where the request does not say, as in a channel to one server.
    pub authority: &'a str,
    /// `/users/7`, not decoded.
    pub path: &'a str,
    /// What follows the `?`, not decoded.
    pub query: Option<&'a str>,
}

impl<'a> From<&'a Uri> for Target<'a> {
    fn from(uri: &'a Uri) -> Self {
        Self {
            scheme: uri.scheme_str().unwrap_or(""),
            authority: uri.authority().map_or("", |authority| authority.as_str()),
            path: uri.path(),
            query: uri.query(),
        }
    }
}

impl<'a> Target<'a> {
    /// Host and port, without the user, and without the port that the scheme implies.
    pub(super) fn host_and_port(&self) -> (&'a str, Option<&'a str>) {
        // From the end, in one pass: a search for each of the three takes longer than that on so short a text.
        let (mut begin, mut colon, mut is_in_brackets) = (0, None, false);
        for (at, byte) in self.authority.bytes().enumerate().rev() {
            match byte {
                b'@' => {
                    begin = at + 1;
                    break;
                }
                b']' => is_in_brackets = true,
                b':' if !is_in_brackets => colon = Some(at),
                _ => {}
            }
        }
        let (host, port) = match colon {
            Some(colon) => (&self.authority[begin..colon], Some(&self.authority[colon + 1..])),
            None => (&self.authority[begin..], None),
        };
        let implied = match self.scheme {
            "http" | "ws" => "80",
            "https" | "wss" => "443",
            _ => "",
        };
        (host, port.filter(|port| *port != implied))
    }
}

impl<B> OutgoingRequest for Request<B> {
    fn method(&self) -> &Method {
        self.method()
    }

    fn target(&self) -> Target<'_> {
        self.uri().into()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }

    fn headers_mut(&mut self) -> &mut HeaderMap {
        self.headers_mut()
    }

    fn extensions(&self) -> Option<&Extensions> {
        Some(self.extensions())
    }

    fn extensions_mut(&mut self) -> Option<&mut Extensions> {
        Some(self.extensions_mut())
    }

    fn timeout(&self) -> Option<Duration> {
        let own = match self.extensions().get::<Context>() {
            Some(context) => context.left(),
            None => Context::current().and_then(|context| context.left()),
        };
        own.into_iter().chain(grpc::stated(self.headers())).min()
    }
}

impl<B: Clone> ReplayRequest for Request<B> {
    fn try_clone(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl<B> OutgoingResponse for Response<B> {
    fn status(&self) -> StatusCode {
        self.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_that_the_scheme_implies_is_left_out() {
        let parts = |text: &str| {
            let uri: Uri = text.parse().unwrap();
            let (host, port) = Target::from(&uri).host_and_port();
            (host.to_owned(), port.map(str::to_owned))
        };
        assert_eq!(parts("https://a.example:443/"), parts("https://a.example/"));
        assert_eq!(parts("http://u:p@a.example/"), parts("http://a.example:80/"));
        assert_ne!(parts("https://a.example:80/"), parts("https://a.example/"));
        assert_eq!(parts("http://[::1]:3000/"), ("[::1]".to_owned(), Some("3000".to_owned())));
        assert_eq!(parts("http://u:p@[::1]:3000/"), parts("http://[::1]:3000/"));
        assert_eq!(parts("http://u:p@[::1]/"), ("[::1]".to_owned(), None));
        assert_eq!(parts("/path"), (String::new(), None));
    }
}
