//! actix-web: an app with one route, called as a worker calls it.

use std::net::SocketAddr;
use std::time::Duration;

use actix_extensible_rate_limit::backend::memory::InMemoryBackend;
use actix_extensible_rate_limit::backend::{
    SimpleInputFunctionBuilder, SimpleInputFuture, SimpleOutput,
};
use actix_extensible_rate_limit::{RateLimiter, RateLimiterBuilder};
use actix_governor::governor::clock::QuantaInstant;
use actix_governor::governor::middleware::NoOpMiddleware;
use actix_governor::{Governor, GovernorConfig, GovernorConfigBuilder, PeerIpKeyExtractor};
use actix_http::Request;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Service, ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::test::init_service;
use actix_web::{Error, web};
use sluicegate_actix::rule::By;
use sluicegate_actix::{Fields, Ip, Memory, RateLimit};

use super::{App, Budget, now};

/// Notes for readers of the tables.
pub const NOTES: &str = "\
actix-extensible-rate-limit counts in fixed windows and is asked without the sweep of its map, which comes
every ten minutes. actix-governor says with every refusal when to come back, whatever it is told.";

/// The index of the baseline in [`served`].
pub const IDENTITY: usize = 1;

/// The index of the baseline in [`refused`].
pub const HANDLER: usize = 0;

/// Services that admit every request.
pub fn served(peers: u32) -> Vec<App> {
    let row = Row { budget: Budget::Plenty, peers };
    let identity = hello().wrap_fn(|request, inner| inner.call(request));
    let mut apps = vec![
        row.app("actix-web, no middleware", hello()),
        row.app("actix-web, one that does nothing", identity),
    ];
    apps.extend(row.limited());
    apps
}

/// Services that refuse every request after the first of each address, and a handler that answers 429 by itself.
pub fn refused(peers: u32) -> Vec<App> {
    let row = Row { budget: Budget::Spent, peers };
    let refuse = web::to(async || ("Too Many Requests", StatusCode::TOO_MANY_REQUESTS));
    let handler = actix_web::App::new().route("/", refuse);
    let mut apps = vec![row.app("actix-web, a handler that answers 429", handler)];
    apps.extend(row.limited());
    apps
}

/// An app with one handler that says hello, and nothing else.
pub fn hello() -> actix_web::App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<BoxBody>,
        Error = Error,
        InitError = (),
        // actix-governor asks for it.
        Service: Service<ServiceRequest, Future: Unpin>,
    >,
> {
    actix_web::App::new().route("/", web::to(async || "hello"))
}

/// sluicegate with its defaults. The counts are those of `store`, so that a benchmark decides who shares
/// them.
pub fn sluicegate(budget: Budget, store: Memory) -> RateLimit<By<Ip>> {
    RateLimit::new(budget.limit().by(Ip::peer())).store(store)
}

/// actix-governor with its defaults. The counts are those of the configuration.
pub fn actix_governor(
    budget: Budget,
) -> GovernorConfig<PeerIpKeyExtractor, NoOpMiddleware<QuantaInstant>> {
    governor(budget).finish().expect("neither the period nor the burst is zero")
}

fn governor(
    budget: Budget,
) -> GovernorConfigBuilder<PeerIpKeyExtractor, NoOpMiddleware<QuantaInstant>> {
    GovernorConfigBuilder::default().const_period(budget.period()).const_burst_size(budget.burst())
}

/// The parameters that the apps of a table share.
#[derive(Clone, Copy)]
struct Row {
    budget: Budget,
    peers: u32,
}

impl Row {
    fn limited(self) -> [App; 8] {
        let Self { budget, .. } = self;
        let sluicegate = || sluicegate(budget, Memory::default());
        let bare = sluicegate().fields(Fields::NONE).extensions(false);
        let x_rate_limit = sluicegate().fields(Fields::X_RATE_LIMIT).extensions(false);
        let headers = governor(budget).use_headers().finish();
        let headers = Governor::new(&headers.expect("neither the period nor the burst is zero"));
        [
            self.app("sluicegate, no fields, no extensions", hello().wrap(bare)),
            self.app("actix-governor", hello().wrap(Governor::new(&actix_governor(budget)))),
            self.app("actix-extensible-rate-limit", hello().wrap(extensible(budget).build())),
            self.app(
                "sluicegate, draft fields, no extensions",
                hello().wrap(sluicegate().extensions(false)),
            ),
            self.app("sluicegate, `X-RateLimit`, no extensions", hello().wrap(x_rate_limit)),
            self.app("sluicegate, as it comes", hello().wrap(sluicegate())),
            self.app("actix-governor, `X-RateLimit`", hello().wrap(headers)),
            self.app(
                "actix-extensible-rate-limit, `X-RateLimit`",
                hello().wrap(extensible(budget).add_headers().build()),
            ),
        ]
    }

    fn app<T, B>(self, name: &'static str, app: actix_web::App<T>) -> App
    where
        T: ServiceFactory<
                ServiceRequest,
                Config = (),
                Response = ServiceResponse<B>,
                Error = Error,
                InitError = (),
            > + 'static,
        B: MessageBody + 'static,
    {
        let service = now(init_service(app));
        App::new(name, self.budget, self.peers, move |peer: SocketAddr| {
            let mut request = Request::new();
            request.head_mut().peer_addr = Some(peer);
            match now(service.call(request)) {
                Ok(response) => response.status().as_u16(),
                Err(error) => error.as_response_error().status_code().as_u16(),
            }
        })
    }
}

/// It knows fixed windows only. Its sweep of the map, every ten minutes, is left out.
fn extensible(
    budget: Budget,
) -> RateLimiterBuilder<
    InMemoryBackend,
    SimpleOutput,
    impl Fn(&ServiceRequest) -> SimpleInputFuture + 'static,
> {
    let backend = InMemoryBackend::builder().with_gc_interval(None).build();
    let window = Duration::from_secs(3_600);
    let input = SimpleInputFunctionBuilder::new(window, budget.burst().into()).peer_ip_key();
    RateLimiter::builder(backend, input.build())
}
