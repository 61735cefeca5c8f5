use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::response::Response;
use serde::de::DeserializeOwned;

use super::decide::Outcome;
use crate::api::object::Object;

/// The JSON object in the body of a request. A body that is none is answered with 400, 413 or 415.
pub(super) struct Sent<T>(pub(super) T);

impl<S, T> FromRequest<S> for Sent<T>
where
    S: Send + Sync,
    Object<T>: DeserializeOwned,
{
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        match Json::from_request(request, state).await {
            Ok(Json(Object(body))) => Ok(Self(body)),
            Err(error) => Err(bad_body(&error)),
        }
    }
}

impl<T> Sent<T>
where
    Object<T>: DeserializeOwned,
{
    /// Reads a body that is declared as JSON.
    pub(super) fn read(body: &[u8]) -> Result<Self, Box<Response>> {
        match Json::from_bytes(body) {
            Ok(Json(Object(body))) => Ok(Self(body)),
            Err(error) => Err(bad_body(&error).into()),
        }
    }
}

fn bad_body(error: &JsonRejection) -> Response {
    let status = match error.status() {
        StatusCode::UNPROCESSABLE_ENTITY => 400,
        status => status.as_u16(),
    };
    Outcome::failed(status, error.body_text()).respond()
}
