//! Passes calls on to the master, so that clients can call any of the servers.
//!
//! A call that is passed on names the address of its client in a field, and the server that gets it never passes it on
//! again. A client can write this field, too. It gains nothing: its call is refused where it would have been passed on.
//! The address only tells one connection of a client of Doorman from the next, and clients choose that number themselves
//! if they like; the name of a client is in its message in any case. So no secret has to be shared among the servers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri, Version};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use sluicegate_lease::Role;
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::server::TcpConnectInfo;
use tower_service::Service;

use super::contact::Contact;
use super::election::Among;
use super::lines::{Lines, Place};
use super::pulse::Pulse;
use crate::run::Tls;

/// The address of the client of a call that another server has passed on.
const CLIENT: HeaderName = HeaderName::from_static("x-sluicegate-passed-on-for");

/// The servers among which one is the master. Clones are the same.
#[derive(Clone)]
pub(crate) struct Masters(Arc<Inner>);

struct Inner {
    roles: watch::Receiver<Role>,
    contact: Contact,
    lines: Lines,
    pulse: Arc<Pulse>,
    is_stopping: watch::Sender<bool>,
}

/// As long as the mastership of the command lasts. One with a longer lease may not be given up in time, and then ends with it.
const RESIGNING: Duration = Duration::from_secs(2);

impl Masters {
    pub(super) fn new(Among { roles, is_stopping }: Among, pulse: Arc<Pulse>) -> Self {
        let (contact, lines) = (Contact::new(), Lines::default());
        Self(Arc::new(Inner { roles, contact, lines, pulse, is_stopping }))
    }

    /// Hears of each role of this server.
    pub(super) fn set_role(&self, role: &Role) {
        self.0.contact.set_role(role);
    }

    /// The address of the master, if another server is known to be it.
    pub(crate) fn other(&self) -> Option<Box<str>> {
        match &*self.0.roles.borrow() {
            Role::Other { master } => master.clone(),
            Role::Master { .. } => None,
        }
    }

    /// Shows this certificate to the master, where that has TLS.
    pub(crate) fn use_tls(&self, tls: &Tls) {
        // Set before the first call, and the same for all.
        let _ = self.0.lines.tls.set(tls.clone());
    }

    /// Ends the streams that are passed on and gives up the mastership, because this server stops.
    pub(crate) fn stop(&self) {
        self.0.is_stopping.send_replace(true);
    }

    /// Waits until the mastership is given up, for as long as that is of use.
    pub(crate) async fn resigned(&self) {
        // Each task that hears of the stop has ended then.
        let _ = timeout(RESIGNING, self.0.is_stopping.closed()).await;
    }

    /// Whether this server is the master, as far as it knows.
    pub(crate) fn is_master(&self) -> bool {
        matches!(&*self.0.roles.borrow(), Role::Master { .. })
    }

    /// Ready when `master` is not the master any more; for a stream, also when this server stops.
    async fn until_another(self, master: Box<str>, is_stream: bool) {
        let (mut roles, mut stopping) = (self.0.roles.clone(), self.0.is_stopping.subscribe());
        let is_another =
            |role: &Role| !matches!(role, Role::Other { master: Some(now) } if *now == master);
        // An error: nobody tells any more.
        tokio::select! {
            _ = roles.wait_for(is_another) => {}
            _ = stopping.wait_for(|stopping| *stopping), if is_stream => {}
        }
    }

    /// Passes a call on. While the master cannot be reached, it waits for the next one: an Envoy whose stream fails tries
    /// again only after 5 seconds.
    async fn answer<S>(
        self,
        master: Box<str>,
        (call, is_stream): (Request<Body>, bool),
        mut service: S,
    ) -> Result<Response<Body>, Infallible>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    {
        let mut passed = (self.place_at(&master).await, master);
        if let (Err(away), master) = &passed {
            passed = match timeout(NEXT, self.next(master)).await {
                Ok(Some(next)) => (self.place_at(&next).await, next),
                Ok(None) => return service.call(call).await,
                Err(_) => return Ok(away.clone().into_http()),
            };
        }
        let answer = match passed {
            (Ok(place), master) => self.pass_on(master, (call, is_stream), place).await,
            (Err(away), _) => Err(away),
        };
        Ok(answer.unwrap_or_else(Status::into_http))
    }

    /// A place on a connection to this master.
    async fn place_at(&self, master: &str) -> Result<Place, Status> {
        let place = self.0.lines.to(master).await;
        match &place {
            Ok(_) => self.0.contact.reached(master),
            Err(away) => self.0.contact.failed(master, &away.message()),
        }
        place
    }

    /// The next master, once it is another one. None if it is this server.
    async fn next(&self, master: &str) -> Option<Box<str>> {
        let is_next = |role: &Role| match role {
            Role::Master { .. } => true,
            Role::Other { master: next } => next.as_deref().is_some_and(|next| next != master),
        };
        let mut roles = self.0.roles.clone();
        // An error: nobody tells any more.
        let _ = roles.wait_for(is_next).await;
        self.other()
    }

    async fn pass_on(
        self,
        master: Box<str>,
        (call, is_stream): (Request<Body>, bool),
        place: Place,
    ) -> Result<Response<Body>, Status> {
        let life = Life { pulse: Arc::clone(&self.0.pulse), pauses: self.0.pulse.pauses() };
        let mut until_another = Box::pin(self.clone().until_another(master.clone(), is_stream));
        let call = call.map(|body| Body::new(PassedCall { body, life: life.clone() }));
        let (answer, place) = tokio::select! {
            answer = send(&master, call, place) => answer?,
            () = &mut until_another => return Err(Status::unavailable(ENDED)),
        };
        let is_over = false;
        Ok(answer.map(|body| {
            Body::new(PassedAnswer { body, life, until_another, is_over, _place: place })
        }))
    }
}

async fn send(
    master: &str,
    call: Request<Body>,
    (mut sender, place): Place,
) -> Result<(Response<Incoming>, Arc<()>), Status> {
    let lost = |error: hyper::Error| Status::unavailable(format!("{LOST}: {error}"));
    sender.ready().await.map_err(lost)?;
    let answer = sender.send_request(addressed(master, call)?).await.map_err(lost)?;
    Ok((answer, place))
}

/// How long a call waits for the next master: longer than an election takes.
const NEXT: Duration = Duration::from_secs(3);

const ENDED: &str = "the server that divided the capacity does not do so any more";
const PAUSED: &str = "the server that passes the call on stood still";
const LOST: &str = "the connection to the server that divides the capacity was lost";

/// The same call, to the master.
fn addressed(master: &str, call: Request<Body>) -> Result<Request<Body>, Status> {
    let (head, body) = call.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let uri = format!("{master}{path}").parse::<Uri>();
    let mut passed = Request::new(body);
    *passed.uri_mut() = uri.map_err(|error| Status::internal(error.to_string()))?;
    *passed.method_mut() = head.method;
    *passed.version_mut() = Version::HTTP_2;
    let peer = head.extensions.get::<TcpConnectInfo>().and_then(TcpConnectInfo::remote_addr);
    let peer = peer.map_or_else(String::new, |peer| peer.to_string());
    let peer = HeaderValue::try_from(peer).map_err(|error| Status::internal(error.to_string()))?;
    *passed.headers_mut() = head.headers;
    passed.headers_mut().remove(HOST);
    passed.headers_mut().insert(CLIENT, peer);
    Ok(passed)
}

/// Answers calls while this server is the master, and passes them on while another one is.
#[derive(Clone)]
pub(crate) struct Passing<S> {
    service: S,
    /// None for a server that is the only one.
    masters: Option<Masters>,
    /// Whether its calls are streams that last.
    is_stream: bool,
}

impl<S> Passing<S> {
    pub(super) fn new(service: S, masters: Option<Masters>, is_stream: bool) -> Self {
        Self { service, masters, is_stream }
    }
}

impl<S: NamedService> NamedService for Passing<S> {
    const NAME: &'static str = S::NAME;
}

type Answering<E> = Pin<Box<dyn Future<Output = Result<Response<Body>, E>> + Send>>;

impl<S> Service<Request<Body>> for Passing<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering<Infallible>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, mut call: Request<Body>) -> Self::Future {
        let Some(masters) = &self.masters else { return Box::pin(self.service.call(call)) };
        if let Some(client) = call.headers_mut().remove(CLIENT) {
            if !masters.is_master() {
                // The server that has passed it on will hear of the next master, and so will this one.
                return Box::pin(async { Ok(Status::unavailable(ENDED).into_http()) });
            }
            let client = client.to_str().ok().and_then(|client| client.parse::<SocketAddr>().ok());
            if client.is_some() {
                let client = TcpConnectInfo { local_addr: None, remote_addr: client };
                call.extensions_mut().insert(client);
            }
        } else if let Some(master) = masters.other() {
            return Box::pin(masters.clone().answer(
                master,
                (call, self.is_stream),
                self.service.clone(),
            ));
        }
        Box::pin(self.service.call(call))
    }
}

/// Whether this process has been running since a call came.
#[derive(Clone)]
struct Life {
    pulse: Arc<Pulse>,
    pauses: u64,
}

impl Life {
    fn check(&self) -> Result<(), Status> {
        if self.pulse.pauses() == self.pauses { Ok(()) } else { Err(Status::unavailable(PAUSED)) }
    }
}

/// The body of a call. What has waited in a process that stood still does not reach the master.
struct PassedCall {
    body: Body,
    life: Life,
}

impl http_body::Body for PassedCall {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(match self.life.check() {
            Ok(()) => frame,
            Err(paused) => Some(Err(paused)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

/// The body of an answer. It ends when the server that writes it is not the master any more.
struct PassedAnswer {
    body: Incoming,
    life: Life,
    until_another: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_over: bool,
    /// On its connection.
    _place: Arc<()>,
}

impl PassedAnswer {
    /// The next frame, or why there is none.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, Status>> {
        // First, so that nothing of a master that is none any more leaves.
        if self.until_another.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(Status::unavailable(ENDED)));
        }
        let next = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let lost = |error: hyper::Error| Status::unavailable(format!("{LOST}: {error}"));
        Poll::Ready(self.life.check().and_then(|()| next.transpose().map_err(lost)))
    }
}

impl http_body::Body for PassedAnswer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let status = match ready!(self.poll_next(cx)) {
            Ok(next) => return Poll::Ready(next.map(Ok)),
            Err(status) => status,
        };
        self.is_over = true;
        let mut trailers = HeaderMap::new();
        // Texts of an error are encoded, so that they fit into a field.
        let _ = status.add_header(&mut trailers);
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_waited_in_a_process_that_stood_still_is_not_passed_on() {
        for (pause, is_passed) in [(999, true), (1_000, false)] {
            let pulse = Pulse::new();
            let life = Life { pulse: Arc::clone(&pulse), pauses: pulse.pauses() };
            let body = Body::new(Full::new(Bytes::from_static(b"a report")));
            let mut passed = PassedCall { body, life };
            tokio::time::advance(Duration::from_millis(pause)).await;
            let frame = passed.frame().await.expect("a frame");
            assert_eq!(frame.is_ok(), is_passed, "{pause} ms");
        }
    }
}
