//! Who may use the admin port.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
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
    /// A token of at least 16 bytes.
    pub fn new(token: &str) -> Option<Self> {
        (token.len() >= SHORTEST).then(|| Self(token.as_bytes().into()))
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
    routes.layer(from_fn_with_state(Some((token, session)), check))
}

/// Says that a request was let in by its cookie.
const SESSION: HeaderName = HeaderName::from_static("sluicegate-session");

type Held = Option<(Token, Option<Session>)>;

async fn check(State(held): State<Held>, request: Request, next: Next) -> Response {
    if !origin::is_own(&request) {
        return (StatusCode::FORBIDDEN, origin::OTHER_SITE).into_response();
    }
    let Some((token, session)) = held else {
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
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    (StatusCode::UNAUTHORIZED, challenge, "the admin port needs its token\n").into_response()
}
