//! One connection of a client: TLS, then HTTP/1 or HTTP/2, then perhaps a tunnel.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::ServerError;
use crate::health::Health;
use crate::run::{
    Activity, Causes, Certificate, Interim, LINGER, Listener, TimedStream, Upload, causes, close,
    close_unread, shake_hands, stops,
};
use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use metrics::counter;
use sluicegate::adapter::{Peer, Refused, grpc};
use sluicegate_config::proxy::Listen;
use sluicegate_config::{Live, Policies};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::proxy::answer::{AnswerBody, ResponseInFlight};
use crate::proxy::check::{Terms, check};
use crate::proxy::forward::{Admitted, From};
use crate::proxy::forwarded::Client;
use crate::proxy::problem::for_grpc;

use crate::proxy::problem::{Problem, problem};
use crate::proxy::record::Recorder;
use crate::proxy::stack::Stack;
use crate::proxy::stalls::Stalls;
use crate::proxy::tunnel::Tunnel;
use crate::status::{Latency, RequestOutcome, Timing};

/// The most requests under way on one connection of HTTP/2.
const STREAMS: u32 = 250;

/// How many bytes of a body wait in a stream of HTTP/2. A connection has as much for each of its streams: a proxy in front may send
/// the requests of many clients on it, and bodies that wait for the application must not hold up the others. Requests that are
/// refused keep no body, so the bodies that wait are bounded by the requests that the application and the throttle have.
const WINDOW: u32 = 64 * 1024;

/// How often a client of HTTP/2 that sends nothing is asked whether it is there.
const PING: Duration = Duration::from_secs(30);

/// How long it may take to say so, if it has no more time to read a piece of a response. The question waits behind the responses
/// that it has not read yet, so a slow client needs more time than one of gRPC.
const PONG: Duration = Duration::from_secs(60);

/// The proxied port.
#[derive(Clone)]
pub(crate) struct Port(Arc<Shared>);

struct Shared {
    builder: Builder<TokioExecutor>,
    stack: Stack,
    listen: Listen,
    certificate: Option<Certificate>,
    recorder: Recorder,
    latency: Latency,
    live: Live,
    health: Arc<Health>,
}

impl Port {
    pub(crate) fn new(
        stack: Stack,
        listen: Listen,
        certificate: Option<Certificate>,
        live: Live,
        latency: Latency,
        health: &Arc<Health>,
    ) -> Self {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_headers(listen.fields)
            .max_buf_size(listen.head);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PING)
            .keep_alive_timeout(PONG.max(listen.write_timeout))
            .max_concurrent_streams(STREAMS)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(STREAMS * WINDOW)
            .max_send_buf_size(WINDOW as usize)
            .max_header_list_size(u32::try_from(listen.head).unwrap_or(u32::MAX));
        let recorder = Recorder::new();
        let health = Arc::clone(health);
        Self(Arc::new(Shared {
            builder,
            stack,
            listen,
            certificate,
            recorder,
            latency,
            live,
            health,
        }))
    }

    async fn speak<S>(
        &self,
        stream: S,
        peer: SocketAddr,
        is_secure: bool,
        stopping: watch::Receiver<bool>,
    ) where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let Shared { builder, listen, .. } = &*self.0;
        // Shared by the stream, which times heads and writes, the service, which counts requests, and this function,
        // which ends the connection when it is idle.
        let activity = Activity::new();
        let client = Client { address: peer.ip(), is_secure };
        let interim = Interim::default();
        let tunnel: Arc<Mutex<Option<Tunnel>>> = Arc::default();
        let from = From {
            client,
            activity: Arc::clone(&activity),
            tunnel: Arc::clone(&tunnel),
            interim: interim.clone(),
            timing: Timing::default(),
        };
        let stalls = Stalls::new();
        let service =
            Entry { shared: Arc::clone(&self.0), peer, from, stalls: Arc::clone(&stalls) };
        let stream = TimedStream::new(
            stream,
            Arc::clone(&activity),
            listen.head_timeout,
            listen.write_timeout,
            Some(interim),
        );
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        // Boxed, so that a tunnel does not keep the place of all this.
        let mut connection = Box::pin(connection);
        let serving = async {
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = activity.idle(listen.idle_timeout) => {
                    // In HTTP/2, a request that is on its way is answered. A client that is gone says nothing to that.
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        ended = connection.as_mut() => ended,
                        () = activity.idle(listen.head_timeout) => Ok(()),
                    }
                }
                () = stops(stopping, &activity) => {
                    connection.as_mut().graceful_shutdown();
                    connection.as_mut().await
                }
            }
        };
        let ended = tokio::select! {
            ended = serving => ended,
            // Beside the connection and not in a task: it ends with it, and needs no handle.
            never = stalls.drop_stalled(listen.write_timeout) => match never {},
        };
        // A tunnel may run for hours, and needs none of the connection's buffers.
        drop(connection);
        if let Err(error) = ended {
            if is_malformed(&*error) {
                counter!("sluicegate_proxy_malformed_total").increment(1);
                tracing::info!(target: "sluicegate_proxy::access", %peer, error = %Causes(&*error), "no valid request");
            }
            tracing::debug!(%peer, %error, "connection ended");
        }
        let tunnel = tunnel.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(tunnel) = tunnel else { return };
        drop(activity);
        if let Err(error) = tunnel.run().await {
            tracing::debug!(%peer, %error, "upgraded connection ended");
        }
    }
}

impl Port {
    /// Opens the port for at most `most` connections at a time.
    pub(crate) async fn listen(
        self,
        address: SocketAddr,
        most: usize,
    ) -> Result<Listener, ServerError> {
        let times = (self.0.listen.head_timeout, LINGER);
        let serve = move |stream, peer, stopping| self.clone().serve(stream, peer, stopping);
        Listener::bind("proxied", address, most, times, serve).await
    }

    async fn serve(self, stream: TcpStream, peer: SocketAddr, stopping: watch::Receiver<bool>) {
        // Pieces are passed on as they come: waiting for more to send only delays them.
        let _ = stream.set_nodelay(true);
        let Some(certificate) = &self.0.certificate else {
            return self.speak(stream, peer, false, stopping).await;
        };
        let time = self.0.listen.head_timeout;
        if let Some(stream) = shake_hands(certificate, stream, peer, time).await {
            self.speak(stream, peer, true, stopping).await;
        }
    }
}

/// Whether a client sent something that is not HTTP.
fn is_malformed(error: &(dyn Error + 'static)) -> bool {
    causes(error)
        .any(|error| error.downcast_ref().is_some_and(|error: &hyper::Error| error.is_parse()))
}

/// What became of a request that did not get to the application, which has counted the others.
fn outcome_of<B>(response: &Response<B>) -> Option<RequestOutcome> {
    let extensions = response.extensions();
    if extensions.get::<Admitted>().is_some() {
        return None;
    }
    let is_undecided = match extensions.get::<Refused>() {
        Some(refused) => refused.is_undecided,
        None => extensions.get::<Problem>().is_some() || response.status().is_server_error(),
    };
    Some(if is_undecided { RequestOutcome::Failed } else { RequestOutcome::Refused })
}

/// Whether the proxy itself finds fault with a request. A refusal by a limit is none.
fn is_clients_fault<B>(response: &Response<B>) -> bool {
    response.status().is_client_error() && response.extensions().get::<Problem>().is_some()
}

/// The service of one connection.
struct Entry {
    shared: Arc<Shared>,
    peer: SocketAddr,
    from: From,
    stalls: Arc<Stalls<ResponseInFlight>>,
}

impl Entry {
    /// What requests of this client are checked by.
    fn terms<'a>(&self, policies: &'a Policies) -> Terms<'a> {
        let listen = &self.shared.listen;
        let trusted = policies.trusted();
        Terms {
            client_header: policies.client_header(),
            is_trusted: trusted.is_some_and(|trusted| trusted.contains(self.peer.ip())),
            fields: listen.fields,
            underscores: listen.underscores,
        }
    }
}

impl hyper::service::Service<Request<Incoming>> for Entry {
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        // Before anything may refuse the request: whether its connection can go on depends on its body, read or not.
        let (mut request, rest) = Upload::watch(request);
        let activity = Arc::clone(&self.from.activity);
        let in_flight = activity.begin();
        let mut record = self.shared.recorder.begin(&request, self.peer);
        let content_type = request.headers().get(CONTENT_TYPE);
        let grpc = content_type.and_then(|sent| grpc::response_type(sent.as_bytes()));
        let is_http_2 = request.version() == Version::HTTP_2;
        // By the policies of this moment. The limits load them again, and may find newer ones: each part is consistent
        // in itself.
        let checked = check(&mut request, self.terms(&self.shared.live.policies()));
        let stack = checked.map(|()| self.shared.stack.clone());
        // In HTTP/1, the connection itself is watched.
        let stalls = is_http_2.then(|| Arc::clone(&self.stalls));
        let interim = self.from.interim.clone();
        request.extensions_mut().insert(Peer(self.peer.ip()));
        let (latency, health) = (self.shared.latency.clone(), Arc::clone(&self.shared.health));
        let timing = latency.begin();
        request.extensions_mut().insert(From { timing, ..self.from.clone() });
        Box::pin(async move {
            let is_checked = stack.is_ok();
            let mut response = match stack {
                Ok(stack) if is_http_2 => stack.call(request).await?,
                Ok(stack) => interim.before(stack.call(request)).await?,
                Err((status, why)) => {
                    problem(status, why).map(|body| body.map_err(|no| match no {}).boxed_unsync())
                }
            };
            if let Some(outcome) = outcome_of(&response) {
                latency.end(timing, outcome);
            }
            if is_checked && !is_clients_fault(&response) {
                rest.settle(response.headers_mut(), &activity).await;
            } else if !is_http_2 {
                // Where such a request ends is not certain either.
                close_unread(response.headers_mut(), &activity);
            }
            // A client that is not told sends its next request on a connection that the proxy is about to close. The
            // connection of a tunnel speaks another protocol from here on, and HTTP/2 has a message for this.
            let is_tunnel = response.status() == StatusCode::SWITCHING_PROTOCOLS;
            if !is_http_2 && !is_tunnel && health.is_stopping() {
                close(response.headers_mut());
            }
            record.answered(response.status());
            let response = match grpc {
                None => response,
                Some(content_type) => for_grpc(response, content_type),
            };
            Ok(response.map(|body| AnswerBody::new(body, record, in_flight, stalls.as_ref())))
        })
    }
}

#[cfg(test)]
mod outcome_tests {
    use http::StatusCode;

    use super::*;

    fn outcome(
        status: StatusCode,
        mark: Option<impl Clone + Send + Sync + 'static>,
    ) -> Option<RequestOutcome> {
        let mut response = Response::new(());
        *response.status_mut() = status;
        if let Some(mark) = mark {
            response.extensions_mut().insert(mark);
        }
        outcome_of(&response)
    }

    #[test]
    fn what_no_limit_decided_has_failed() {
        const STATUS: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
        const UNMARKED: Option<()> = None;
        let refused = |is_undecided| {
            let mut refused = Refused::default();
            refused.is_undecided = is_undecided;
            outcome(STATUS, Some(refused))
        };
        assert_eq!(refused(false), Some(RequestOutcome::Refused));
        assert_eq!(refused(true), Some(RequestOutcome::Failed));
        // A client that leaves out its key is refused, and one that sends what is no request is not decided about.
        assert_eq!(outcome(StatusCode::BAD_REQUEST, UNMARKED), Some(RequestOutcome::Refused));
        let own = outcome(StatusCode::BAD_REQUEST, Some(Problem("no request")));
        assert_eq!(own, Some(RequestOutcome::Failed));
        assert_eq!(outcome(STATUS, UNMARKED), Some(RequestOutcome::Failed));
        assert_eq!(outcome(STATUS, Some(Admitted)), None);
    }
}
