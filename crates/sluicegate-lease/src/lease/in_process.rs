use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::clock::Clock;
use super::transport::{Transport, TransportError};
use crate::message::{Release, Request, Response};
use crate::pool::AskError;
use crate::server::Server;
use crate::template::Templates;

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
