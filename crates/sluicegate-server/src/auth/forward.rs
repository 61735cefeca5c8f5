//! Questions of proxies, without what axum needs for routes.
//!
//! A proxy waits for the answer with every request, so this is the path that has to be quick. Questions that are not
//! plain are left to the routes.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{Method, Request, Version};
use axum::response::Response;

use super::asked::Form;
use super::authorizer::Authorizer;
use super::routes::{NGINX, PLAIN, answer};
use crate::api::slow::in_time;
use crate::service::Service;

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
