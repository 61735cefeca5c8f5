//! The layers around and inside a rate limit that counts tokens, for tower and for actix-web.

use sluicegate_core::adapter::fields;

use crate::dialect::{Api, Dialect};
use crate::estimate::Estimate;

/// The default bound of a body, in bytes: that of axum's extractors. A million tokens of text are about 4 MB; raise it
/// for images.
const MOST: usize = 2 * 1024 * 1024;

/// A layer that reads the body of a request, and leaves [`EstimatedTokens`](crate::EstimatedTokens) in its extensions for
/// [`tokens`](crate::tokens).
///
/// It goes around the rate limit, so that the limit finds the estimate. A request with an estimate already is passed on as
/// it is.
///
/// The body is kept until it has been read, up to [`at_most`](Self::at_most) bytes, and passed on as it was. A larger one
/// is answered with `413 Content Too Large`, in the form of [`dialect`](Self::dialect) if there is one. How long a client
/// may take to send it is for the server's timeouts, and how many are kept at once for a bound around this layer, such as
/// tower's `GlobalConcurrencyLimitLayer`: each takes up to twice its length, and one in brotli or zstd up to five times
/// and 160 KiB more.
#[cfg_attr(feature = "tower", doc = "```")]
#[cfg_attr(not(feature = "tower"), doc = "```ignore")]
/// use sluicegate::{Header, Limit, RateLimitLayer};
/// use sluicegate_llm::{Count, Estimate, EstimateLayer, UsageLayer, tokens, used_tokens};
/// use tower::ServiceBuilder;
///
/// let budget = Limit::per_minute(200_000)
///     .by(Header("x-api-key"))
///     .cost(tokens(Count::All))
///     .settle_by(used_tokens(Count::All));
/// let layers = ServiceBuilder::new()
///     .layer(EstimateLayer::new(Estimate::new().output(1_000)))
///     .layer(RateLimitLayer::new(budget))
///     .layer(UsageLayer::new());
/// # let _ = layers;
/// ```
///
/// In actix-web, what is wrapped later is further out:
#[cfg_attr(feature = "actix", doc = "```")]
#[cfg_attr(not(feature = "actix"), doc = "```ignore")]
/// use actix_web::App;
/// use sluicegate_actix::{Header, Limit, RateLimit};
/// use sluicegate_llm::{Count, Estimate, EstimateLayer, UsageLayer, tokens, used_tokens};
///
/// let budget = Limit::per_minute(200_000)
///     .by(Header("x-api-key"))
///     .cost(tokens(Count::All))
///     .settle_by(used_tokens(Count::All));
/// let app = App::new()
///     .wrap(UsageLayer::new())
///     .wrap(RateLimit::new(budget))
///     .wrap(EstimateLayer::new(Estimate::new().output(1_000)));
/// # let _ = app;
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct EstimateLayer {
    pub(crate) estimate: Estimate,
    pub(crate) most: usize,
    api: Option<Api>,
}

impl EstimateLayer {
    /// Estimates by `estimate`, and reads bodies of at most 2 MiB.
    pub const fn new(estimate: Estimate) -> Self {
        Self { estimate, most: MOST, api: None }
    }

    /// Reads bodies of at most `bytes`.
    pub const fn at_most(self, bytes: usize) -> Self {
        Self { most: bytes, ..self }
    }

    /// Answers larger bodies with an error in the form of the API of `dialect`, as clients of language models expect.
    /// Otherwise, the answer is a problem document (RFC 9457).
    pub fn dialect<'d>(self, dialect: impl Into<Option<&'d Dialect>>) -> Self {
        Self { api: dialect.into().map(Dialect::api).or(self.api), ..self }
    }

    /// The body of the answer to a body that is too large, and its `Content-Type`.
    pub(crate) fn too_large(self) -> (String, &'static str) {
        let detail = format!("the body is larger than {} bytes", self.most);
        let Some(api) = self.api else {
            let body = format!(
                "{{\"type\":\"about:blank\",\"title\":\"Content too large\",\"status\":413,\
                 \"detail\":\"{detail}\"}}\n"
            );
            return (body, fields::PROBLEM_JSON);
        };
        let kind = match api {
            Api::OpenAi => "invalid_request_error",
            Api::Anthropic => "request_too_large",
        };
        let message = format!("Request too large: {detail}. Send less.");
        (api.error(kind, None, &message), "application/json")
    }
}

/// A layer that reads the usage in the answers of a language model as they pass, and reports it to the rate limit around it,
/// for [`used_tokens`](crate::used_tokens).
///
/// [`UsageReader`](crate::UsageReader) says what it finds, and when it is final. Nothing of the answer is kept or
/// delayed. A response that is compressed, or neither JSON nor a stream of events, cannot be read: what was reserved stays
/// charged, and the answer is [counted](sluicegate_core::observe::Counts::unread). A response with a
/// [`RunningCost`](sluicegate_core::cost::RunningCost) or a [`Cost`](sluicegate_core::Cost) of the handler is left alone.
///
/// The handler sees `Accept-Encoding: identity`, whatever the client sent. So a handler that passes requests on to a model
/// asks for an answer that can be read. A layer that compresses goes around this one.
#[cfg_attr(feature = "tower", doc = "```")]
#[cfg_attr(not(feature = "tower"), doc = "```ignore")]
/// use http::{Request, Response};
/// use http_body_util::{BodyExt, Full};
/// use sluicegate::response::LazyDecision;
/// use sluicegate::{Global, Limit, ManualClock, Memory, RateLimitLayer};
/// use sluicegate_llm::{Count, UsageLayer, tokens, used_tokens};
/// use tower::{Layer, ServiceExt};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
///
/// let model = tower::service_fn(|_: Request<()>| async {
///     let answer = r#"{"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21}}"#;
///     let body = Full::new(bytes::Bytes::from(answer));
///     Response::builder().header("content-type", "application/json").body(body)
/// });
/// let budget = Limit::per_minute(1_000)
///     .by(Global)
///     .cost(tokens(Count::All).or(400))
///     .settle_by(used_tokens(Count::All));
/// let service = RateLimitLayer::new(budget)
///     .store(Memory::builder().clock(ManualClock::new()).build())
///     .extensions(true)
///     .layer(UsageLayer::new().layer(model));
///
/// let left = |response: &Response<_>| response.extensions().get::<LazyDecision>().cloned();
/// let remaining = |response: &Response<_>| left(response)?.decision().remaining();
/// let first = service.clone().oneshot(Request::new(())).await?;
/// // 400 are reserved, and 21 used.
/// assert_eq!(remaining(&first), Some(600));
/// first.into_body().collect().await?;
/// let second = service.oneshot(Request::new(())).await?;
/// assert_eq!(remaining(&second), Some(1_000 - 21 - 400));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[must_use]
pub struct UsageLayer;

impl UsageLayer {
    /// The layer.
    pub const fn new() -> Self {
        Self
    }
}
