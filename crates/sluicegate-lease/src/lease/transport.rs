use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::message::{Release, Request, Response, millis};
use crate::pool::AskError;
use crate::server::Server;
use crate::template::Templates;

/// Carries requests of a [`LeaseClient`](super::LeaseClient) to a server.
///
/// A request that takes too long is dropped, and another one is sent.
pub trait Transport: Send + 'static {
    /// Sends a request and waits for the answer.
    fn ask(
        &mut self,
        request: Request,
    ) -> impl Future<Output = Result<Response, TransportError>> + Send + 'static;

    /// Tells the server what the client has stopped to use.
    fn release(
        &mut self,
        release: Release,
    ) -> impl Future<Output = Result<(), TransportError>> + Send + 'static;
}

/// Why a request was not answered.
#[derive(Debug)]
#[non_exhaustive]
pub enum TransportError {
    /// The server is not the master, and the transport knows now who is: the next request goes there, at once.
    Redirected,
    /// The answer did not come in time.
    Late,
    /// The server cannot be reached, does not know the master, or refuses the request.
    Failed(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redirected => f.write_str("another server is the master"),
            Self::Late => f.write_str("the request for capacity was not answered in time"),
            Self::Failed(_) => f.write_str("the request for capacity was not answered"),
        }
    }
}

impl Error for TransportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Redirected | Self::Late => None,
            Self::Failed(error) => Some(&**error),
        }
    }
}

/// A request on its way.
pub(crate) type Flight = Pin<Box<dyn Future<Output = Result<Response, TransportError>> + Send>>;

/// Waits until the request is answered; without a request, for ever. It goes on where it was dropped.
pub(crate) async fn arrival(flight: &mut Option<Flight>) -> Result<Response, TransportError> {
    let Some(answer) = flight else { return std::future::pending().await };
    let answer = answer.await;
    *flight = None;
    answer
}

/// Counts milliseconds from its start, by the runtime's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn millis(self, at: Instant) -> u64 {
        millis(at.saturating_duration_since(self.0))
    }

    /// `None` if that is too far away for the clock.
    pub(crate) fn instant(self, millis: u64) -> Option<Instant> {
        self.0.checked_add(Duration::from_millis(millis))
    }
}

/// A server in the same process, for tests and for programs that divide something among their own parts.
///
/// The server is the master for as long as it lives. Clones are the same server.
///
/// ```
/// use sluicegate_lease::{Amount, InProcess, LeaseClient, Template, Templates};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = InProcess::new(Templates::new([Template::new("*", Amount::units(100))])?);
/// let client = LeaseClient::over(server);
/// let mut lease = client.resource("db").wants(Amount::units(30)).lease()?;
/// lease.changed().await;
/// assert_eq!(lease.capacity(), Amount::units(30));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct InProcess {
    server: Arc<Mutex<Server>>,
    clock: Clock,
}

impl InProcess {
    /// Makes a server that divides these resources.
    pub fn new(templates: Templates) -> Self {
        let mut server = Server::root("in-process", templates);
        server.lead(0, 1, Some(Vec::new()), 0);
        Self { server: Arc::new(Mutex::new(server)), clock: Clock::start() }
    }

    /// Looks at the server or changes it, such as its templates.
    pub fn with<T>(&self, use_it: impl FnOnce(&mut Server) -> T) -> T {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody keeps a list of the clients of a server that is never replaced.
        drop(server.pool().take_changes());
        use_it(&mut server)
    }

    fn now(&self) -> u64 {
        self.clock.millis(Instant::now())
    }
}

impl Transport for InProcess {
    fn ask(
        &mut self,
        request: Request,
    ) -> impl Future<Output = Result<Response, TransportError>> + Send + 'static {
        let now = self.now();
        let answer = self.with(|server| {
            server.pool().tick(now);
            server.answer(now, &request)
        });
        async { answer.map_err(TransportError::from) }
    }

    fn release(
        &mut self,
        release: Release,
    ) -> impl Future<Output = Result<(), TransportError>> + Send + 'static {
        let now = self.now();
        self.with(|server| server.pool().release(now, &release));
        async { Ok(()) }
    }
}

impl From<AskError> for TransportError {
    fn from(error: AskError) -> Self {
        Self::Failed(error.into())
    }
}
