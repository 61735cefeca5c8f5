use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::de::DeserializeOwned;
use sluicegate_llm::Usage;
use utoipa::OpenApi;

use super::decide::{Context, DecisionBody, Done, Outcome};
use super::request::{Batch, MOST_IN_BATCH, Settlement, TakeRequest};
use super::tickets::ReportedCost;
use crate::api::no_store;
use crate::api::read::Object;
use crate::service::Service;

/// The largest body, in bytes.
pub(in crate::api) const LARGEST: usize = 256 * 1024;

#[derive(OpenApi)]
#[openapi(
    info(title = "sluicegate", description = "Decides about requests by the rules of the server."),
    paths(take, peek, settle, batch, reset)
)]
struct Api;

/// The description of the API, in OpenAPI 3.1.
pub fn openapi() -> utoipa::openapi::OpenApi {
    Api::openapi()
}

/// `POST /v1/take`, `/v1/peek`, `/v1/settle`, `/v1/batch`, and `GET /v1/openapi.json`. `POST /v1/reset` is there if
/// the service [allows it](crate::ServiceBuilder::allow_resets).
pub fn routes(service: &Service) -> Router {
    routes_in(Context::new(service))
}

/// The routes, which share open tickets with everything else in this context.
pub(crate) fn routes_in(context: Context) -> Router {
    let description = Arc::new(openapi());
    let routes = Router::new()
        .route("/v1/take", post(take))
        .route("/v1/peek", post(peek))
        .route("/v1/settle", post(settle))
        .route("/v1/batch", post(batch))
        .route("/v1/openapi.json", get(async move || Json(Arc::unwrap_or_clone(description))));
    let routes =
        if context.service.resets() { routes.route("/v1/reset", post(reset)) } else { routes };
    routes.layer(DefaultBodyLimit::max(LARGEST)).with_state(context)
}

/// Charges a request, if every limit admits it.
#[utoipa::path(post, path = "/v1/take", request_body = TakeRequest, responses(
    (status = 200, description = "The request may go ahead.", body = DecisionBody),
    (status = 400, description = "The request lacks something that the rules need.", body = DecisionBody),
    (status = 422, description = "A limit can never admit it.", body = DecisionBody),
    (status = 429, description = "A limit refuses it.", body = DecisionBody),
    (status = 503, description = "The store could not decide.", body = DecisionBody),
))]
async fn take(State(context): State<Context>, JsonBody(asked): JsonBody<TakeRequest>) -> Response {
    context.take(asked).await.respond()
}

/// Answers a call of `take` with this body, which is declared as JSON.
pub(in crate::api) async fn take_sent(context: &Context, body: &[u8]) -> Response {
    let asked = match serde_json::from_slice(body) {
        Ok(Object(asked)) => Ok(asked),
        // axum looks again, and more slowly, so that it can say where in the body it is wrong.
        Err(_) => Json::from_bytes(body).map(|Json(Object(asked))| asked),
    };
    match asked {
        Ok(asked) => context.take(asked).await.respond(),
        Err(error) => bad_body(&error),
    }
}

/// What `take` would answer, without charging anything.
#[utoipa::path(post, path = "/v1/peek", request_body = TakeRequest, responses(
    (status = 200, description = "The request could go ahead.", body = DecisionBody),
    (status = 429, description = "A limit would refuse it.", body = DecisionBody),
))]
async fn peek(State(context): State<Context>, JsonBody(asked): JsonBody<TakeRequest>) -> Response {
    context.peek(asked).await.respond()
}

/// Decides about several requests, one after the other. The answer is 200; each request has a status of its own.
#[utoipa::path(post, path = "/v1/batch", request_body = Batch, responses(
    (status = 200, description = "The decisions, in order.", body = [DecisionBody]),
))]
async fn batch(State(context): State<Context>, JsonBody(batch): JsonBody<Batch>) -> Response {
    if batch.requests.len() > MOST_IN_BATCH {
        let what = format!("there are more than {MOST_IN_BATCH} requests in the batch");
        return Outcome::failed(400, what).respond();
    }
    let mut decided = Vec::with_capacity(batch.requests.len());
    for Object(asked) in batch.requests {
        decided.push(context.take(asked).await.decided);
        // Others wait for one of them, and not for a hundred.
        tokio::task::yield_now().await;
    }
    (no_store(), Json(decided)).into_response()
}

/// Settles a reserved request: changes what it was charged into what it cost.
#[utoipa::path(post, path = "/v1/settle", request_body = Settlement, responses(
    (status = 200, description = "It is settled.", body = Done),
    (status = 400, description = "There is neither `spent` nor `tokens`, or both.", body = DecisionBody),
    (status = 404, description = "The ticket is not known, or was open for longer than ten minutes.", body = Done),
))]
async fn settle(
    State(context): State<Context>,
    JsonBody(settlement): JsonBody<Settlement>,
) -> Response {
    let is_clear = settlement.spent.is_some() != settlement.tokens.is_some();
    if !is_clear {
        let error = "expected either `spent` or `tokens`";
        return Outcome::failed(400, error).respond();
    }
    let ticket = context.tickets.take(&settlement.ticket);
    let done = ticket.is_some();
    match (ticket, settlement.spent, settlement.tokens) {
        (Some(ticket), Some(spent), _) => ticket.settle(&ReportedCost::Spent(spent)),
        (Some(ticket), None, Some(used)) => ticket.settle(&ReportedCost::from(Usage::from(used))),
        _ => {}
    }
    let status = if done { StatusCode::OK } else { StatusCode::NOT_FOUND };
    (status, no_store(), Json(Done { done })).into_response()
}

/// Forgets what was spent on the keys of a request.
#[utoipa::path(post, path = "/v1/reset", request_body = TakeRequest, responses(
    (status = 200, description = "It is forgotten.", body = Done),
    (status = 404, description = "The server does not allow it.", body = Done),
))]
async fn reset(State(context): State<Context>, JsonBody(asked): JsonBody<TakeRequest>) -> Response {
    match context.reset(asked).await {
        Ok(()) => (no_store(), Json(Done { done: true })).into_response(),
        Err(outcome) => outcome.respond(),
    }
}

/// The JSON object in the body of a request. A body that is none is answered with 400, 413 or 415.
pub(super) struct JsonBody<T>(pub(super) T);

impl<S, T> FromRequest<S> for JsonBody<T>
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

fn bad_body(error: &JsonRejection) -> Response {
    let status = match error.status() {
        StatusCode::UNPROCESSABLE_ENTITY => 400,
        status => status.as_u16(),
    };
    Outcome::failed(status, error.body_text()).respond()
}
