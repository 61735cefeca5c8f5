//! Who may use the admin port.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

/// What a client of the admin port presents as `Authorization: Bearer ..`.
#[derive(Clone)]
pub struct Token(Arc<[u8]>);

/// The shortest token, in bytes.
const SHORTEST: usize = 16;

impl Token {
    /// A token of at least 16 bytes.
    pub fn new(token: &str) -> Option<Self> {
        (token.len() >= SHORTEST).then(|| Self(token.as_bytes().into()))
    }

    /// Compares in a time that does not depend on where the first difference is.
    fn is(&self, other: &[u8]) -> bool {
        let differences = self.0.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
        self.0.len() == other.len() && differences == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The routes behind the token, if there is one.
pub(crate) fn guarded(routes: Router, token: Option<Token>) -> Router {
    match token {
        Some(token) => routes.layer(from_fn_with_state(token, check)),
        None => routes,
    }
}

async fn check(State(token): State<Token>, request: Request, next: Next) -> Response {
    let presented = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let presented = presented.and_then(|value| value.strip_prefix(b"Bearer "));
    if presented.is_some_and(|presented| token.is(presented)) {
        return next.run(request).await;
    }
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    (StatusCode::UNAUTHORIZED, challenge, "the admin port needs its token\n").into_response()
}
