//! Passes a request on to the application.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use crate::ServerError;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HOST, MAX_FORWARDS, TRANSFER_ENCODING};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body;
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::ext::on_informational;
use hyper_util::client::legacy::Error as PoolError;
use metrics::counter;
use sluicegate::response;
use sluicegate_config::proxy::{Listen, Upstream};
use sluicegate_llm::{EstimatedTokens, UsageLayer};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_service::Service;

use crate::proxy::check::Bad;
use crate::proxy::connector::{Connector, TlsFailure, is_timeout};
use crate::proxy::forwarded::{self, Client};
use crate::proxy::hop;
use crate::proxy::pools::Pools;
use crate::proxy::problem::{full, problem};
use crate::proxy::request_body::{ClientError, RequestBody};
use crate::proxy::response_body::{ResponseBody, settle_length};
use crate::run::{Activity, Causes, HoldingBody, Interim};
use crate::status::{Latency, RequestOutcome, Timing};

use crate::proxy::tunnel::{Tunnel, is_agreed, wanted_upgrade, write_upgrade};

/// The application. Clones share its connections.
#[derive(Clone)]
pub(crate) struct Forward(Arc<Inner>);

/// Marks a response to a request that the limits let through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Admitted;

struct Inner {
    pools: Pools,
    scheme: Scheme,
    authority: Authority,
    places: Arc<Semaphore>,
    upstream: Upstream,
    listen: Listen,
    latency: Latency,
}

/// The connection of a request, in its extensions.
#[derive(Clone)]
pub(crate) struct From {
    pub(crate) client: Client,
    pub(crate) activity: Arc<Activity>,
    /// What runs once the connection has been upgraded.
    pub(crate) tunnel: Arc<Mutex<Option<Tunnel>>>,
    pub(crate) interim: Interim,
    /// Since the request came.
    pub(crate) timing: Timing,
}

type Answer = Response<ResponseBody>;

impl Forward {
    /// The application that `upstream` names, over connections of `connector`. Requests that get this far end a decision.
    ///
    /// # Errors
    ///
    /// If its authority is not valid.
    pub(crate) fn new(
        connector: Connector,
        upstream: Upstream,
        listen: Listen,
        latency: Latency,
    ) -> Result<Self, ServerError> {
        let authority = Authority::try_from(upstream.authority.as_str())
            .map_err(|_| ServerError::new("upstream.url: not a host"))?;
        let scheme = if upstream.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP };
        let pools = Pools::new(connector, &upstream);
        let places = Arc::new(Semaphore::new(upstream.requests));
        Ok(Self(Arc::new(Inner { pools, scheme, authority, places, upstream, listen, latency })))
    }
}

impl Service<Request<RequestBody>> for Forward {
    type Response = Answer;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            // At once or not at all: a queue here would be a second one behind that of the throttle, without its order and
            // its bounds.
            let Ok(place) = Arc::clone(&inner.places).try_acquire_owned() else {
                counter!("sluicegate_proxy_full_total").increment(1);
                return Ok(full().map(Either::Right));
            };
            if let Some(from) = request.extensions().get::<From>() {
                inner.latency.end(from.timing, RequestOutcome::Served);
            }
            let answer = inner.forward(request, place).await;
            let failed = |(status, why)| problem(status, why).map(Either::Right);
            let mut answer = answer.unwrap_or_else(failed);
            answer.extensions_mut().insert(Admitted);
            Ok(answer)
        })
    }
}

impl Inner {
    async fn forward(
        &self,
        mut request: Request<RequestBody>,
        place: OwnedSemaphorePermit,
    ) -> Result<Answer, Bad> {
        let wanted = match self.upstream.http2 {
            true => None,
            false => wanted_upgrade(&request, &self.listen.upgrades)?,
        };
        // Taken from the request of the client before the request for the application is made of it: each side has its
        // own half of an upgrade, and hyper gives it out once.
        let client = wanted.is_some().then(|| hyper::upgrade::on(&mut request));
        let from = request.extensions_mut().remove::<From>();
        let from = from.ok_or((
            StatusCode::INTERNAL_SERVER_ERROR,
            "the proxy has lost the address of the client",
        ))?;
        // Whether its tokens are counted, which are then read in the answer too.
        let counts_tokens = request.extensions().get::<EstimatedTokens>().is_some();
        if counts_tokens {
            // What is compressed cannot be read.
            let identity = HeaderValue::from_static("identity");
            request.headers_mut().insert(ACCEPT_ENCODING, identity);
        }
        let (outgoing, is_last) = self.outgoing(request, &from, wanted.as_ref());
        if is_last {
            return Ok(
                problem(StatusCode::OK, "the proxy is the last recipient").map(Either::Right)
            );
        }
        let under_way = self.pools.begin();
        let answered = under_way.send(outgoing);
        let mut response = match tokio::time::timeout(self.upstream.response_timeout, answered)
            .await
        {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(failed(&error)),
            Err(_) => {
                counter!("sluicegate_proxy_upstream_failures_total", "kind" => "response_timeout")
                    .increment(1);
                return Err((
                    StatusCode::GATEWAY_TIMEOUT,
                    "the application did not answer in time",
                ));
            }
        };
        // The client's side writes its own version.
        *response.version_mut() = Version::HTTP_11;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return self.upgraded(response, wanted.zip(client), &from, place).await;
        }
        settle_length(response.headers_mut())?;
        hop::strip_response(response.headers_mut());
        let response = match counts_tokens {
            true => UsageLayer::watch(response),
            false => response.map(response::Body::new),
        };
        Ok(response.map(|body| {
            let held = (!body.is_end_stream()).then_some((place, under_way));
            Either::Left(HoldingBody { body, held })
        }))
    }

    /// Builds the request for the application, and says whether the proxy has to answer it itself.
    fn outgoing(
        &self,
        request: Request<RequestBody>,
        from: &From,
        wanted: Option<&HeaderValue>,
    ) -> (Request<RequestBody>, bool) {
        let (mut parts, body) = request.into_parts();
        let version = parts.version;
        hop::strip_request(&mut parts.headers);
        forwarded::write(&mut parts.headers, from.client, version);
        if let Some(protocol) = wanted {
            write_upgrade(&mut parts.headers, protocol.clone());
        }
        if self.upstream.http2 {
            // The target has the host. A second one would have to be the same.
            parts.headers.remove(HOST);
        } else if !body.is_end_stream() && !parts.headers.contains_key(CONTENT_LENGTH) {
            parts.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        let is_last = parts.method == Method::OPTIONS && is_last(&mut parts.headers);
        let mut uri = http::uri::Parts::default();
        uri.scheme = Some(self.scheme.clone());
        uri.authority = Some(self.authority.clone());
        let path = parts.uri.path_and_query().cloned();
        uri.path_and_query = Some(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        // A scheme, an authority and a path are always a target.
        parts.uri = Uri::from_parts(uri).unwrap_or_default();
        parts.version = Version::HTTP_11;
        // What the server and the limits have left there is not for hyper's client, which looks for settings of its
        // own.
        parts.extensions.clear();
        let mut request = Request::from_parts(parts, body);
        // A client of HTTP/1.0 knows no interim responses.
        if version == Version::HTTP_11 {
            let interim = from.interim.clone();
            on_informational(&mut request, move |response| {
                let mut headers = response.headers().clone();
                hop::strip_interim(&mut headers);
                interim.pass(response.status(), &headers);
            });
        }
        (request, is_last)
    }

    /// The application has switched protocols.
    async fn upgraded(
        &self,
        mut response: Response<Incoming>,
        wanted: Option<(HeaderValue, hyper::upgrade::OnUpgrade)>,
        from: &From,
        place: OwnedSemaphorePermit,
    ) -> Result<Answer, Bad> {
        const UNASKED: Bad = (
            StatusCode::BAD_GATEWAY,
            "the application switched to a protocol that nobody asked for",
        );
        let Some((protocol, client)) = wanted else { return Err(UNASKED) };
        if !is_agreed(response.headers(), &protocol) {
            return Err(UNASKED);
        }
        let upstream = hyper::upgrade::on(&mut response).await;
        let upstream = upstream
            .map_err(|_| (StatusCode::BAD_GATEWAY, "the application closed the connection"))?;
        from.activity.upgrade();
        *from.tunnel.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Tunnel { client, upstream, place });
        hop::strip_response(response.headers_mut());
        write_upgrade(response.headers_mut(), protocol);
        Ok(response.map(|_| Either::Right(Default::default())))
    }
}

/// Whether the proxy is the last recipient of a request (RFC 9110, section 7.6.2). Otherwise one hop less is left.
fn is_last(headers: &mut HeaderMap) -> bool {
    let left = headers.get(MAX_FORWARDS).and_then(|left| left.to_str().ok()?.parse::<u64>().ok());
    if let Some(left) = left.filter(|left| *left > 0) {
        headers.insert(MAX_FORWARDS, HeaderValue::from(left - 1));
    }
    left == Some(0)
}

/// The answer where there is no response. It is never a 429: the client has done nothing wrong.
fn failed(error: &PoolError) -> Bad {
    match ClientError::among(error) {
        Some(ClientError::Slow) => {
            return (StatusCode::REQUEST_TIMEOUT, "the body of the request took too long");
        }
        // A request whose body has no room is answered before it gets here.
        Some(ClientError::NoRoom) => {
            return (StatusCode::SERVICE_UNAVAILABLE, "there is no room for the body");
        }
        Some(ClientError::Broken(_)) => {
            return (StatusCode::BAD_REQUEST, "the body of the request is broken");
        }
        None => {}
    }
    // An application may also end TLS after the handshake, for example because it wants a certificate of the proxy.
    let tls = TlsFailure::among(error);
    let kind = match (error.is_connect(), tls) {
        (true, _) if is_timeout(error) => "connect_timeout",
        (_, Some(_)) => "tls",
        (true, None) => "connect",
        (false, None) => "response",
    };
    counter!("sluicegate_proxy_upstream_failures_total", "kind" => kind).increment(1);
    tracing::warn!(error = %Causes(error), kind, "the request to the application failed");
    match (kind, tls) {
        ("connect_timeout", _) => {
            (StatusCode::GATEWAY_TIMEOUT, "the application did not accept a connection in time")
        }
        (_, Some(tls)) => (StatusCode::BAD_GATEWAY, tls.text()),
        ("connect", None) => {
            (StatusCode::BAD_GATEWAY, "the application does not accept connections")
        }
        _ => (StatusCode::BAD_GATEWAY, "the application sent no valid response"),
    }
}
