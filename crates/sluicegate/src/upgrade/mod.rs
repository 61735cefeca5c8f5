//! Connections that are upgraded. hyper drops the body of such a response at once, and only what the user's task
//! holds, the upgraded connection, lives as long as the connection does.
//!
//! So where a request may hold something and can be upgraded, the handler gets an `OnUpgrade` of ours.
//! hyper alone can make one, so a handshake is played to hyper's own server, on a [`Stage`] in memory: it
//! resolves to the stage, which passes everything on to the real connection from then on, and keeps what is
//! held until it is dropped. No task runs for it and nothing is copied.

mod stage;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use http::header::{CONNECTION, UPGRADE};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::upgrade::OnUpgrade;
use sluicegate_core::adapter::BodyGuard;

use self::stage::Stage;
use crate::http_limit::Guard;

/// How often the handshake is polled at most. Nothing in it waits, so once is enough to begin it and once to
/// end it; hyper may yield in between.
const POLLS: usize = 16;

/// A request whose connection can be upgraded, and then keeps something until it has closed.
pub struct Upgrade(Box<Handshake>);

struct Handshake {
    connection: http1::UpgradeableConnection<Stage, Script>,
    shared: Arc<Shared>,
    is_connect: bool,
}

/// What the stage and the script share with the layer.
#[derive(Default)]
struct Shared {
    /// Whether the response upgrades the connection.
    is_accepted: AtomicBool,
    /// The `OnUpgrade` that hyper has made, for the handler.
    made: Mutex<Option<OnUpgrade>>,
    held: Mutex<Option<Guard>>,
}

impl Upgrade {
    /// Gives the handler an `OnUpgrade` of ours, if the connection can be upgraded.
    pub fn of<B>(request: &mut Request<B>) -> Option<Self> {
        let real = request.extensions_mut().remove::<OnUpgrade>()?;
        let shared = Arc::new(Shared::default());
        let stage = Stage::new(real.clone(), Arc::clone(&shared));
        let script = Script(Arc::clone(&shared));
        let connection = http1::Builder::new().serve_connection(stage, script).with_upgrades();
        let is_connect = request.method() == Method::CONNECT;
        let mut handshake = Box::new(Handshake { connection, shared, is_connect });
        let made = handshake.begin();
        let is_made = made.is_some();
        request.extensions_mut().insert(made.unwrap_or(real));
        is_made.then(|| Self(handshake))
    }

    /// Whether a response of `status` upgrades the connection.
    pub fn is_accepted(&self, status: StatusCode) -> bool {
        status == StatusCode::SWITCHING_PROTOCOLS || self.0.is_connect && status.is_success()
    }

    /// Upgrades the connection, which keeps `kept` until it is closed. If the handler has dropped its `OnUpgrade`, or
    /// drops it later, `kept` is dropped.
    pub fn keep(self, kept: impl Send + Sync + 'static) {
        self.accept(Some(Box::new(DropGuard(kept))));
    }

    /// Upgrades the connection, which keeps `held` until it is closed. If the handler has dropped its `OnUpgrade`, or
    /// drops it later, `held` is released.
    pub(crate) fn accept(mut self, held: Option<Guard>) {
        *lock(&self.0.shared.held) = held;
        self.0.shared.is_accepted.store(true, Ordering::Release);
        self.0.finish();
    }
}

/// Anything that lets go of something when it is dropped.
struct DropGuard<T>(T);

impl<T: Send + Sync> BodyGuard for DropGuard<T> {}

impl Handshake {
    fn begin(&mut self) -> Option<OnUpgrade> {
        for _ in 0..POLLS {
            if self.poll().is_ready() {
                return None;
            }
            if let Some(made) = lock(&self.shared.made).take() {
                return Some(made);
            }
        }
        None
    }

    fn finish(&mut self) {
        for _ in 0..POLLS {
            if self.poll().is_ready() {
                return;
            }
        }
    }

    fn poll(&mut self) -> Poll<()> {
        let mut cx = Context::from_waker(Waker::noop());
        Pin::new(&mut self.connection).poll(&mut cx).map(|_| ())
    }
}

impl fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgrade")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What answers the request that the stage plays.
struct Script(Arc<Shared>);

impl hyper::service::Service<Request<Incoming>> for Script {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Answer;

    fn call(&self, request: Request<Incoming>) -> Answer {
        *lock(&self.0.made) = Some(hyper::upgrade::on(request));
        Answer(Arc::clone(&self.0))
    }
}

/// Ready when the handler has answered.
struct Answer(Arc<Shared>);

impl Future for Answer {
    type Output = Result<Response<String>, Infallible>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        // Polled by hand, so there is no task to wake.
        if !self.0.is_accepted.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        let response = Response::builder()
            .status(StatusCode::SWITCHING_PROTOCOLS)
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, stage::PROTOCOL)
            .body(String::new());
        Poll::Ready(Ok(response.expect("a response of constants")))
    }
}
