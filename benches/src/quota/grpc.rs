//! gRPC services of tonic.

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::RateLimitService;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use limitador::RateLimiter;
use limitador::limit::{Context, Limit, Namespace};
use tonic::{Request, Response, Status};

/// Answers OK, whatever is asked.
#[derive(Debug)]
pub(super) struct Bare;

#[tonic::async_trait]
impl RateLimitService for Bare {
    async fn should_rate_limit(
        &self,
        _: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        Ok(answer(false))
    }
}

/// Answers by the crate `limitador`, with its counters in memory, as its own server asks it.
pub(super) struct Limitador(RateLimiter);

/// No window ends while something is measured.
const WINDOW: u64 = 24 * 3_600;

impl Limitador {
    pub(super) fn new() -> Self {
        let limiter = RateLimiter::new(1 << 18);
        let variable = "descriptors[0].user".try_into().expect("the name of a variable");
        let no_conditions: [_; 0] = [];
        limiter.add_limit(Limit::new("edge", 4_000_000_000, WINDOW, no_conditions, [variable]));
        Self(limiter)
    }
}

#[tonic::async_trait]
impl RateLimitService for Limitador {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        let RateLimitRequest { domain, descriptors, .. } = request.into_inner();
        let mut context = Context::default();
        let entries = descriptors.into_iter().map(|descriptor| {
            descriptor.entries.into_iter().map(|entry| (entry.key, entry.value)).collect()
        });
        context.list_binding("descriptors".to_owned(), entries.collect());
        let namespace: Namespace = domain.into();
        let checked = self.0.check_rate_limited_and_update(&namespace, &context, 1);
        checked.map(|checked| answer(checked.limited)).map_err(|_| Status::unavailable("no answer"))
    }
}

fn answer(is_over: bool) -> Response<RateLimitResponse> {
    let code = if is_over { Code::OverLimit } else { Code::Ok };
    Response::new(RateLimitResponse { overall_code: code.into(), ..RateLimitResponse::default() })
}
