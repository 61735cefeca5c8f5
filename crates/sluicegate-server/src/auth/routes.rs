use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use sluicegate_config::envoy::service::BadRequest;

use super::authorizer::{Authorizer, NOT_NAMED, peer};
use super::form::Form;
use crate::api::plain::in_time;
use crate::health::Why;
use crate::service::Service;

/// The field with the status that a client should get, where nginx allows only 401 and 403.
pub static STATUS: HeaderName = HeaderName::from_static("sluicegate-status");

/// Where proxies ask that need nothing special.
const PLAIN: &str = "/check";

/// Where nginx asks.
const NGINX: &str = "/check/nginx";

/// Where Envoy asks.
const ENVOY: &str = "/check/envoy";

/// Forward auth: a proxy passes the head of a request on, and lets the request through if the answer is 200.
///
/// - `/check`, for Traefik, Caddy and APISIX: any other answer is what the client gets.
/// - `/check/nginx`, for nginx's `auth_request`: a refusal is 403, and [`STATUS`] says what the client should get, which
///   is 400 if its request has no valid target.
/// - `/check/envoy/..`, for Envoy's HTTP `ext_authz`, with the path of the request behind it.
///
/// Nothing is read from the query of `/check`, because Caddy sends the client's. 400 means that the proxy did not say
/// what it asks about, and 403 without [`STATUS`] that it is not one of those named.
pub fn routes(authorizer: &Authorizer) -> Router {
    let told_by = |form: Form| {
        any(move |State(authorizer): State<Authorizer>, request: Request<Body>| async move {
            // The body is not read: it is no part of the question.
            let (question, _) = request.into_parts();
            let peer = peer(&question.extensions);
            answer(&authorizer, form, question, peer).await
        })
    };
    Router::new()
        .route(PLAIN, told_by(Form::Forwarded))
        .route(NGINX, told_by(Form::Original))
        .route("/check/envoy/", told_by(Form::Prefixed(ENVOY)))
        .route("/check/envoy/{*path}", told_by(Form::Prefixed(ENVOY)))
        .with_state(authorizer.clone())
}

/// Answers a question of `peer`.
async fn answer(
    authorizer: &Authorizer,
    form: Form,
    question: Parts,
    peer: Option<IpAddr>,
) -> Response {
    let decided = decide(authorizer, form, question, peer).await;
    match form {
        Form::Original => for_nginx(decided),
        _ => decided.unwrap_or_else(|fault| told(&fault)),
    }
}

fn for_nginx(decided: Result<Response, Fault>) -> Response {
    let mut response = match decided {
        Ok(response) => response,
        // nginx makes an error of it, as it should: this is not about the client.
        Err(fault) if !fault.1.is_client() => return told(&fault),
        // A client should not be able to cause an error of nginx.
        Err(fault) => told(&fault),
    };
    if response.status() != StatusCode::OK {
        let status = HeaderValue::from(response.status().as_u16());
        response.headers_mut().insert(&STATUS, status);
        *response.status_mut() = StatusCode::FORBIDDEN;
    }
    response
}

/// A question without a decision.
type Fault = (StatusCode, BadRequest);

fn told((status, bad): &Fault) -> Response {
    let mut response = (*status, format!("{bad}\n")).into_response();
    response.extensions_mut().insert(Why(bad.to_string()));
    response
}

async fn decide(
    authorizer: &Authorizer,
    form: Form,
    question: Parts,
    peer: Option<IpAddr>,
) -> Result<Response, Fault> {
    if !peer.is_some_and(|peer| authorizer.believes(peer)) {
        return Err((StatusCode::FORBIDDEN, BadRequest::new(NOT_NAMED)));
    }
    let asked = form.take(question).map_err(|bad| (StatusCode::BAD_REQUEST, bad))?;
    Ok(authorizer.decide(asked).await)
}

// Questions of proxies, without what axum needs for routes.
//
// A proxy waits for the answer with every request, so this is the path that has to be quick. Questions that are not
// plain are left to the routes.

/// Answers plain questions.
#[derive(Debug, Clone)]
pub(crate) struct Forward(Arc<Authorizer>);

impl Forward {
    /// Nothing, if the service has no rules to decide by.
    pub(crate) fn new(service: &Service) -> Option<Self> {
        service.authorizer().map(|authorizer| Self(Arc::new(authorizer.clone())))
    }

    /// How the proxy tells the request that it asks about, if this is a question in HTTP/1 with the usual method.
    pub(crate) fn takes<B>(&self, question: &Request<B>) -> Option<Form> {
        if question.method() != Method::GET || question.version() > Version::HTTP_11 {
            return None;
        }
        match question.uri().path() {
            PLAIN => Some(Form::Forwarded),
            NGINX => Some(Form::Original),
            _ => None,
        }
    }

    /// Answers a question of `peer` that it [takes](Self::takes).
    pub(crate) async fn answer(self, form: Form, question: Parts, peer: IpAddr) -> Response {
        in_time(answer(&self.0, form, question, Some(peer))).await
    }
}
