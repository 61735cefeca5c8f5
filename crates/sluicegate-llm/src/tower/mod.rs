//! What the layers make in tower and axum.

mod estimate;
mod read_body;
mod usage;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use sluicegate::adapter::{Dialect as _, Refusal};
use sluicegate::response::{Body, Respond};

pub use self::estimate::{EstimateFuture, EstimateService};
pub use self::read_body::ReadBody;
pub use self::usage::{UsageFuture, UsageService};
use crate::Dialect;

/// An error in the form of OpenAI's or Anthropic's API.
impl<B, ResBody> Respond<B, ResBody> for Dialect {
    fn respond(&self, refusal: &Refusal, _: &Request<B>) -> Response<Body<ResBody>> {
        let status = StatusCode::from_u16(refusal.status());
        let mut response = Response::new(Body::from_bytes(self.error_body(refusal)));
        *response.status_mut() = status.unwrap_or(StatusCode::TOO_MANY_REQUESTS);
        let content_type = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response
    }
}
