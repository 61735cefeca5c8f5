use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::dev::{Payload, Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::error::InternalError;
use actix_web::http::header::CONTENT_ENCODING;
use actix_web::{Error, HttpMessage, HttpResponse, web};
use sluicegate_core::adapter::TooLarge;
use sluicegate_core::cost::llm::{Estimate, EstimatedTokens};
use sluicegate_core::response::Dialect;

/// The default bound of a body, in bytes. A million tokens of text are about 4 MB; raise it for images.
const MOST: usize = 2 * 1024 * 1024;

/// A middleware that reads the body of a request, and leaves [`EstimatedTokens`] in its extensions for
/// [`tokens`](crate::cost::llm::tokens).
///
/// It goes around the [`RateLimit`](crate::RateLimit), so it is wrapped later. A request with an estimate already is passed
/// on as it is. The body is kept until it has been read, up to [`at_most`](Self::at_most) bytes, and passed on as it was.
/// A larger one is answered with `413 Content Too Large`, in the form of [`dialect`](Self::dialect) if there is one.
///
/// ```
/// use actix_web::App;
/// use sluicegate_actix::cost::llm::{Count, Estimate, tokens};
/// use sluicegate_actix::service::{EstimateMiddleware, UsageMiddleware};
/// use sluicegate_actix::{Header, Limit, RateLimit};
///
/// let budget = Limit::per_minute(200_000)
///     .by(Header("x-api-key"))
///     .cost(tokens(Count::All))
///     .settle_tokens(Count::All);
/// let app = App::new()
///     .wrap(UsageMiddleware::new())
///     .wrap(RateLimit::new(budget))
///     .wrap(EstimateMiddleware::new(Estimate::new().output(1_000)));
/// # let _ = app;
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct EstimateMiddleware {
    estimate: Estimate,
    too_large: TooLarge,
}

impl EstimateMiddleware {
    /// Estimates by `estimate`, and reads bodies of at most 2 MiB.
    pub const fn new(estimate: Estimate) -> Self {
        Self { estimate, too_large: TooLarge::new(MOST) }
    }

    /// Reads bodies of at most `bytes`.
    pub const fn at_most(self, bytes: usize) -> Self {
        Self { too_large: self.too_large.at_most(bytes), ..self }
    }

    /// Answers larger bodies with an error in the form of the API of `dialect`, as clients of language models expect.
    /// Otherwise, the answer is a problem document (RFC 9457).
    pub fn dialect<'d>(self, dialect: impl Into<Option<&'d Dialect>>) -> Self {
        match dialect.into() {
            Some(dialect) => Self { too_large: self.too_large.dialect(dialect), ..self },
            None => self,
        }
    }

    /// Reads the body, leaves the estimate, and puts the body back.
    async fn estimate(self, request: &mut ServiceRequest) -> Result<(), Error> {
        if request.extensions().contains::<EstimatedTokens>() {
            return Ok(());
        }
        let payload = request.extract::<web::Payload>().await?;
        let body = payload.to_bytes_limited(self.too_large.most()).await;
        let body = body.map_err(|error| {
            let mut refused = HttpResponse::PayloadTooLarge();
            let refused = refused.content_type(self.too_large.content_type());
            InternalError::from_response(error, refused.body(self.too_large.body()))
        })??;
        let mut reader = self.estimate.reader();
        let codings = request.headers().get_all(CONTENT_ENCODING);
        codings.for_each(|coding| reader.encoding(coding.as_bytes()));
        reader.read(&body);
        request.extensions_mut().insert(reader.finish());
        request.set_payload(Payload::from(body));
        Ok(())
    }
}

impl<I, B> Transform<I, ServiceRequest> for EstimateMiddleware
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
{
    type Response = ServiceResponse<B>;
    type Error = Error;
    type Transform = EstimateService<I>;
    type InitError = ();
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, inner: I) -> Self::Future {
        ready(Ok(EstimateService { inner: Rc::new(inner), middleware: *self }))
    }
}

/// A service behind an [`EstimateMiddleware`].
#[derive(Debug)]
pub struct EstimateService<I> {
    inner: Rc<I>,
    middleware: EstimateMiddleware,
}

impl<I, B> Service<ServiceRequest> for EstimateService<I>
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
{
    type Response = ServiceResponse<B>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<ServiceResponse<B>, Error>>>>;

    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&self, mut request: ServiceRequest) -> Self::Future {
        let (inner, middleware) = (Rc::clone(&self.inner), self.middleware);
        Box::pin(async move {
            middleware.estimate(&mut request).await?;
            inner.call(request).await
        })
    }
}
