//! Who may use the admin port.

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::post;

use super::page::PUBLIC;

/// What a client of the admin port presents as `Authorization: Bearer ..`.
#[derive(Clone)]
pub struct Token(Arc<[u8]>);

/// Schemes are compared without regard to case (RFC 9110, section 11.1).
const SCHEME: &[u8] = b"Bearer ";

/// The shortest token, in bytes.
const SHORTEST: usize = 16;

impl Token {
    /// A token of at least 16 bytes, without control characters, and without white space around it, because no client can
    /// send those. A line break at its end, as files of secrets have, is not part of it.
    pub fn new(token: &str) -> Option<Self> {
        let token = token.strip_suffix('\n').unwrap_or(token);
        let token = token.strip_suffix('\r').unwrap_or(token);
        let is_sent = token.trim() == token && !token.contains(char::is_control);
        (is_sent && token.len() >= SHORTEST).then(|| Self(token.as_bytes().into()))
    }

    fn is(&self, other: &[u8]) -> bool {
        same(&self.0, other)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The routes behind the token. Without one, they answer only requests for an address or for `localhost`.
pub fn guarded(routes: Router, token: Option<Token>) -> Router {
    let Some(token) = token else {
        return routes.layer(from_fn_with_state(None, check));
    };
    // Without random numbers there is no cookie, and the token has to come with each request.
    let session = Session::new().ok();
    let routes = match &session {
        Some(session) => routes.merge(session.routes()),
        None => routes,
    };
    routes.layer(from_fn_with_state(Some((token, session, Arc::default())), check))
}

/// Says that a request was let in by its cookie.
const SESSION: HeaderName = HeaderName::from_static("sluicegate-session");

/// Where browsers sign in and out.
const SESSIONS: &str = "/session";

type Guard = Option<(Token, Option<Session>, Arc<Refusals>)>;

/// How often a refusal is logged.
const LOGGED: Duration = Duration::from_secs(10);

/// Refusals that are counted, and not logged one by one.
#[derive(Default)]
struct Refusals(Mutex<(Option<Instant>, u64)>);

impl Refusals {
    /// How many others there were since one was logged, if this one is to be logged.
    fn note(&self, now: Instant) -> Option<u64> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (logged, others) = &mut *held;
        if logged.is_some_and(|logged| now.saturating_duration_since(logged) < LOGGED) {
            *others += 1;
            return None;
        }
        *logged = Some(now);
        Some(std::mem::take(others))
    }
}

async fn check(State(held): State<Guard>, request: Request<Body>, next: Next) -> Response {
    if !is_own(&request) {
        return (StatusCode::FORBIDDEN, OTHER_SITE).into_response();
    }
    let Some((token, session, refusals)) = held else {
        if names_this_host(&request) {
            return next.run(request).await;
        }
        return (StatusCode::FORBIDDEN, OTHER_NAME).into_response();
    };
    let is_public = PUBLIC.contains(&request.uri().path());
    let presented = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let presented = presented.and_then(|value| {
        let (scheme, token) = value.split_at_checked(SCHEME.len())?;
        scheme.eq_ignore_ascii_case(SCHEME).then_some(token)
    });
    // Otherwise a copy of a cookie would get cookies of its own, which stay when the operator signs out.
    let begins_session = request.method() == Method::POST && request.uri().path() == SESSIONS;
    let in_session = presented.is_none()
        && !begins_session
        && session.is_some_and(|session| session.is_in(&request));
    if in_session || is_public || presented.is_some_and(|presented| token.is(presented)) {
        let mut response = next.run(request).await;
        if in_session {
            // Scripts cannot read the cookie, and the page has to know whether there is something to leave.
            response.headers_mut().insert(SESSION, HeaderValue::from_static("1"));
        }
        return response;
    }
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    let had_token = presented.is_some();
    if let Some(others) = refusals.note(Instant::now()) {
        tracing::warn!(
            ?peer,
            had_token,
            others,
            "the admin port refused a request without its token"
        );
    }
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    (StatusCode::UNAUTHORIZED, challenge, "the admin port needs its token\n").into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_a_file_has_no_line_break_and_no_white_space() {
        let token = Token::new("0123456789abcdef\n").expect("a token");
        assert!(token.is(b"0123456789abcdef") && !token.is(b"0123456789abcdef\n"));
        assert!(Token::new("0123456789abcdef\r\n").expect("a token").is(b"0123456789abcdef"));
        for token in
            ["0123456789abcde\n", "0123456789abcdef\n\n", " 0123456789abcdef", "0123456789abcdef "]
        {
            assert!(Token::new(token).is_none(), "{token:?}");
        }
    }

    #[test]
    fn refusals_of_the_admin_port_are_logged_a_bounded_number_of_times() {
        let (refusals, start) = (Refusals::default(), Instant::now());
        assert_eq!(refusals.note(start), Some(0));
        for _ in 0..1_000 {
            assert_eq!(refusals.note(start + LOGGED / 2), None);
        }
        assert_eq!(refusals.note(start + LOGGED), Some(1_000));
        assert_eq!(refusals.note(start + LOGGED * 3), Some(0));
    }
}

/// Compares in a time that does not depend on where the first difference is.
pub(super) fn same(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differences == 0
}

// How a browser shows the token: once, for a cookie.
//
// A person cannot type an `Authorization` field, so the page sends the token in one to `POST /session`. The answer is
// a cookie that scripts cannot read (`HttpOnly`) and that is sent with requests of this page alone
// (`SameSite=Strict`). It holds a random number, and neither the token nor anything made of it. It ends with the
// process, when the browser is closed, or when the operator signs out: a copy of it opens nothing after that.

/// What the cookies of browsers are called and hold.
#[derive(Clone)]
pub(super) struct Session(Arc<Cookies>);

struct Cookies {
    /// Different for each server, because the servers of one host share the cookies of a browser, whatever their port.
    name: String,
    /// The oldest first.
    values: Mutex<VecDeque<String>>,
}

/// The most browsers. Another one signs out the one that came first.
const MOST: usize = 64;

impl Session {
    /// No browser has a cookie yet.
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        let name = format!("sluicegate-admin-{}", random::<8>()?);
        Ok(Self(Arc::new(Cookies { name, values: Mutex::default() })))
    }

    /// Whether a request has the cookie of a browser.
    pub(super) fn is_in(&self, request: &Request<Body>) -> bool {
        let values = self.values();
        self.presented(request.headers())
            .any(|value| values.iter().any(|known| same(value.as_bytes(), known.as_bytes())))
    }

    /// `POST /session` gives a cookie to those who have shown the token; `DELETE /session` takes it back.
    pub(super) fn routes(&self) -> Router {
        let (begin, end) = (self.clone(), self.clone());
        let begun = async move || match begin.begin() {
            Ok(value) => begin.answer(&value, ""),
            Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        };
        let ended = async move |headers: HeaderMap| {
            end.end(&headers);
            end.answer("", "; Max-Age=0")
        };
        Router::new().route(SESSIONS, post(begun).delete(ended))
    }

    fn begin(&self) -> Result<String, getrandom::Error> {
        let value = random::<32>()?;
        let mut values = self.values();
        if values.len() >= MOST {
            values.pop_front();
        }
        values.push_back(value.clone());
        Ok(value)
    }

    fn end(&self, headers: &HeaderMap) {
        let mut values = self.values();
        for presented in self.presented(headers) {
            values.retain(|known| !same(presented.as_bytes(), known.as_bytes()));
        }
    }

    fn answer(&self, value: &str, more: &str) -> Response {
        let cookie = format!("{}={value}; Path=/; HttpOnly; SameSite=Strict{more}", self.0.name);
        let fields = AppendHeaders([(header::SET_COOKIE, cookie)]);
        (StatusCode::NO_CONTENT, fields).into_response()
    }

    fn presented<'a>(&'a self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        cookies(headers).filter(|(name, _)| *name == self.0.name).map(|(_, value)| value)
    }

    fn values(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Random bytes in hexadecimal digits.
fn random<const BYTES: usize>() -> Result<String, getrandom::Error> {
    let mut random = [0_u8; BYTES];
    getrandom::fill(&mut random)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let fields = headers.get_all(header::COOKIE).into_iter();
    let pairs = fields.filter_map(|field| field.to_str().ok()).flat_map(|field| field.split(';'));
    pairs.filter_map(|pair| pair.trim().split_once('='))
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session(..)")
    }
}

// What pages of other sites may do to the admin port through the browser of an operator: nothing.
//
// - A page can have its own name resolve to this host (DNS rebinding), and then read answers as its own. Without a
//   token, a request has to name this host by an address or as `localhost`. With a token, such a page has no cookie.
// - A page can send requests that change something, without reading the answer (CSRF). Those have to come from the
//   dashboard itself, or from a client that is no browser.

/// Why a request is refused.
pub(super) const OTHER_NAME: &str = "the admin port has no token, so it answers only to an address such as 127.0.0.1 or to `localhost`: \
    use one of them, or set a token\n";

/// Why a request is refused.
pub(super) const OTHER_SITE: &str = "a page of another site may not change anything here\n";

/// Whether the request names this host in a way that other sites cannot make point here.
pub(super) fn names_this_host<B>(request: &Request<B>) -> bool {
    // A browser always sends it; a load balancer that asks for health may not.
    let Some(authority) = authority(request) else {
        return !request.headers().contains_key(header::HOST);
    };
    let host = authority.host();
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_address = match address {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<IpAddr>().is_ok(),
    };
    is_address || host.eq_ignore_ascii_case("localhost")
}

/// Whether the request changes nothing, or comes from the dashboard or from a client that is no browser.
pub(crate) fn is_own<B>(request: &Request<B>) -> bool {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return true;
    }
    let field = |name: &str| request.headers().get(name).map(HeaderValue::as_bytes);
    let site = field("sec-fetch-site").unwrap_or(b"same-origin");
    let Some(origin) = field("origin") else { return site == b"same-origin" || site == b"none" };
    let Some(own) = authority(request) else { return false };
    // TLS may end in front of the port.
    let host = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    site == b"same-origin" && host == Some(own.as_str().as_bytes())
}

fn authority<B>(request: &Request<B>) -> Option<Authority> {
    let of_uri = request.uri().authority().cloned();
    of_uri.or_else(|| request.headers().get(header::HOST)?.to_str().ok()?.parse().ok())
}

#[cfg(test)]
mod origin_tests {
    use super::*;

    fn request(method: &str, fields: &[(&str, &str)]) -> Request<Body> {
        let request = Request::builder().method(method).uri("/session");
        let request =
            fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(Body::empty()).expect("a request")
    }

    #[test]
    fn a_name_that_somebody_else_can_point_here_is_not_this_host() {
        for (host, is_own) in [
            ("127.0.0.1:6070", true),
            ("127.0.0.1", true),
            ("[::1]:6070", true),
            ("localhost:6070", true),
            ("LOCALHOST", true),
            ("10.0.0.7:6070", true),
            ("attacker.example:6070", false),
            ("127.0.0.1.attacker.example", false),
            ("localhost.attacker.example", false),
            ("attacker.example@127.0.0.1.nip.io", false),
            ("[attacker]:6070", false),
            ("", false),
            ("a b", false),
        ] {
            assert_eq!(names_this_host(&request("GET", &[("host", host)])), is_own, "{host}");
        }
        assert!(names_this_host(&request("GET", &[])));
    }

    #[test]
    fn only_the_page_itself_and_clients_that_are_no_browsers_change_anything() {
        let host = ("host", "127.0.0.1:6070");
        for (fields, is_own_page) in [
            (&[][..], true),
            (&[("origin", "http://127.0.0.1:6070"), ("sec-fetch-site", "same-origin")], true),
            (&[("origin", "http://127.0.0.1:6070")], true),
            (&[("origin", "https://127.0.0.1:6070")], true),
            (&[("origin", "https://127.0.0.1")], false),
            (&[("origin", "ftp://127.0.0.1:6070")], false),
            (&[("origin", "http://127.0.0.1:8000"), ("sec-fetch-site", "same-site")], false),
            (&[("origin", "http://127.0.0.1:8000")], false),
            (&[("origin", "http://attacker.example")], false),
            (&[("origin", "null")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "same-site")], false),
        ] {
            let fields = [&[host], fields].concat();
            assert_eq!(is_own(&request("POST", &fields)), is_own_page, "{fields:?}");
            assert!(is_own(&request("GET", &fields)));
        }
    }
}
