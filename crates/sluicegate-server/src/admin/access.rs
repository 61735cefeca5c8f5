//! Who may use the admin port.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

use super::origin;
use super::page::PUBLIC;
use super::secret::same;
use super::session::Session;

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

type Held = Option<(Token, Option<Session>, Arc<Refusals>)>;

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

async fn check(State(held): State<Held>, request: Request, next: Next) -> Response {
    if !origin::is_own(&request) {
        return (StatusCode::FORBIDDEN, origin::OTHER_SITE).into_response();
    }
    let Some((token, session, refusals)) = held else {
        if origin::names_this_host(&request) {
            return next.run(request).await;
        }
        return (StatusCode::FORBIDDEN, origin::OTHER_NAME).into_response();
    };
    let is_public = PUBLIC.contains(&request.uri().path());
    let presented = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let presented = presented.and_then(|value| {
        let (scheme, token) = value.split_at_checked(SCHEME.len())?;
        scheme.eq_ignore_ascii_case(SCHEME).then_some(token)
    });
    let in_session = presented.is_none() && session.is_some_and(|session| session.is_in(&request));
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
