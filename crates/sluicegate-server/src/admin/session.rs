//! How a browser shows the token: once, for a cookie.
//!
//! A person cannot type an `Authorization` field, so the page sends the token in one to `POST /session`. The answer is
//! a cookie that scripts cannot read (`HttpOnly`) and that is sent with requests of this page alone
//! (`SameSite=Strict`). It holds a random number, and neither the token nor anything made of it. It ends with the
//! process, when the browser is closed, or when the operator signs out: a copy of it opens nothing after that.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::post;

use super::secret::same;

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
    pub(super) fn is_in(&self, request: &Request) -> bool {
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
        Router::new().route("/session", post(begun).delete(ended))
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
