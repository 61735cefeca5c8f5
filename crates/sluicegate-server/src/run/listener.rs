//! Accepts connections, a bounded number at a time.

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use super::error::ServerError;
use super::keepalive::keep_alive;

/// How long to pause when the system has no more descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// What clients connect to: a port of TCP, or a Unix socket.
pub(crate) trait Acceptor: Sized + Send + Sync + 'static {
    /// A connection of a client.
    type Stream: Send + Sync + 'static;
    /// The same without tokio, which does not wait.
    type Blocking: Send;

    /// The next client.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, SocketAddr)>> + Send;

    /// Ready once a client has sent something, or has left. Returns whether it has sent something.
    fn speaks(stream: &Self::Stream) -> impl Future<Output = bool> + Send;

    fn into_blocking(self) -> io::Result<Self::Blocking>;

    /// A client that waits at this moment.
    fn accept_now(blocking: &Self::Blocking) -> io::Result<(Self::Stream, SocketAddr)>;
}

impl Acceptor for TcpListener {
    type Stream = TcpStream;
    type Blocking = std::net::TcpListener;

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = Self::accept(self).await?;
        keep_alive(&stream);
        Ok((stream, peer))
    }

    async fn speaks(stream: &TcpStream) -> bool {
        // A client that leaves is ready too, and has said nothing.
        stream.peek(&mut [0]).await.is_ok_and(|length| length > 0)
    }

    fn into_blocking(self) -> io::Result<Self::Blocking> {
        self.into_std()
    }

    fn accept_now(blocking: &Self::Blocking) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = blocking.accept()?;
        stream.set_nonblocking(true)?;
        let stream = TcpStream::from_std(stream)?;
        keep_alive(&stream);
        Ok((stream, peer))
    }
}

/// Serves a connection, whose first byte has come, until it ends. Once the port stops, it ends after its last answer. Its
/// future is boxed, so that nothing is kept for it before: a client that says nothing costs no more than its task.
type Serve<S> = dyn Fn(S, SocketAddr, watch::Receiver<bool>) -> Pin<Box<dyn Future<Output = ()> + Send>>
    + Send
    + Sync;

/// One port, which is open.
pub(crate) struct Listener<D: Acceptor = TcpListener> {
    acceptor: D,
    address: SocketAddr,
    most: usize,
    times: (Duration, Duration),
    serve: Arc<Serve<D::Stream>>,
}

impl Listener {
    /// Opens a port, which is called `name` in errors, for `most` connections at a time. Others wait to be accepted.
    ///
    /// The `times` are how long a client may say nothing once it is connected, and how long one that has said nothing may
    /// stay once the port stops, for a request that is on its way.
    ///
    /// # Errors
    ///
    /// If the port cannot be opened.
    pub(crate) async fn bind<F: Future<Output = ()> + Send + 'static>(
        name: &str,
        address: SocketAddr,
        most: usize,
        times: (Duration, Duration),
        serve: impl Fn(TcpStream, SocketAddr, watch::Receiver<bool>) -> F + Send + Sync + 'static,
    ) -> Result<Self, ServerError> {
        let what = format!("the {name} port cannot be opened at {address}");
        let failed = |error| ServerError::because(what.as_str(), error);
        let acceptor = TcpListener::bind(address).await.map_err(failed)?;
        let address = acceptor.local_addr().map_err(failed)?;
        Ok(Self::at(acceptor, address, most, times, serve))
    }

    /// Where the port is open. A port 0 has become a free one.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl<D: Acceptor> Listener<D> {
    /// Like [`bind`](Listener::bind), for what is open already.
    pub(crate) fn at<F: Future<Output = ()> + Send + 'static>(
        acceptor: D,
        address: SocketAddr,
        most: usize,
        times: (Duration, Duration),
        serve: impl Fn(D::Stream, SocketAddr, watch::Receiver<bool>) -> F + Send + Sync + 'static,
    ) -> Self {
        let serve: Arc<Serve<D::Stream>> =
            Arc::new(move |stream, peer, stopping| Box::pin(serve(stream, peer, stopping)));
        Self { acceptor, address, most, times, serve }
    }

    /// Serves until `stopping` is true, and then until every request is answered, for at most `drain`.
    pub(crate) async fn serve(self, mut stopping: watch::Receiver<bool>, drain: Duration) {
        let Self { acceptor, most, times, serve, .. } = self;
        let places = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        let watched = stopping.clone();
        // Serves a connection, which has a place until it ends.
        let spawn = |tasks: &mut JoinSet<()>, (stream, peer), place| {
            let (serve, mut stopping) = (Arc::clone(&serve), watched.clone());
            tasks.spawn(async move {
                if speaks::<D>(&stream, times, &mut stopping).await {
                    serve(stream, peer, stopping).await;
                }
                drop::<Option<OwnedSemaphorePermit>>(place);
            });
        };
        let mut tasks = JoinSet::new();
        'serving: loop {
            let place = Arc::clone(&places).acquire_owned();
            let next = async {
                let place = place.await;
                (accept(&acceptor).await, place)
            };
            let mut next = pin!(next);
            let (accepted, place) = loop {
                tokio::select! {
                    next = &mut next => break next,
                    // The set keeps a task that has ended until it is joined. Without this, the memory of a flood
                    // of connections would stay until the next one comes.
                    Some(_) = tasks.join_next() => {}
                    _ = stopping.wait_for(|stopping| *stopping) => break 'serving,
                }
            };
            spawn(&mut tasks, accepted, place.ok());
        }
        // tokio only accepts what it has been told of by the system, so it is asked without tokio.
        if let Ok(acceptor) = acceptor.into_blocking() {
            while let Ok(place) = Arc::clone(&places).try_acquire_owned() {
                let Some(waiting) = accept_waiting::<D>(&acceptor) else { break };
                spawn(&mut tasks, waiting, Some(place));
            }
        }
        let ended = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(drain, ended).await.is_err() {
            tracing::warn!(connections = tasks.len(), "stopped before every request was answered");
        }
    }
}

/// Waits for the first byte of a client, or for its end. Returns whether one of them has come in time.
async fn speaks<D: Acceptor>(
    stream: &D::Stream,
    (silence, linger): (Duration, Duration),
    stopping: &mut watch::Receiver<bool>,
) -> bool {
    let stops = async {
        // An error: the server is gone.
        let _ = stopping.wait_for(|stopping| *stopping).await;
        tokio::time::sleep(linger).await;
    };
    tokio::select! {
        biased;
        speaks = D::speaks(stream) => speaks,
        () = tokio::time::sleep(silence) => false,
        () = stops => false,
    }
}

/// A connection that the system has let in already, if there is one. Closing the port would reset it.
fn accept_waiting<D: Acceptor>(acceptor: &D::Blocking) -> Option<(D::Stream, SocketAddr)> {
    loop {
        match D::accept_now(acceptor) {
            Ok(accepted) => return Some(accepted),
            Err(error) if is_about_the_client(&error) => {}
            Err(_) => return None,
        }
    }
}

/// The next connection. An error here is about one connection, or about the limits of the system.
async fn accept<D: Acceptor>(acceptor: &D) -> (D::Stream, SocketAddr) {
    loop {
        match acceptor.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_about_the_client(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn is_about_the_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::run::keepalive::asked;

    const TIME: Duration = Duration::from_secs(60);

    /// Greets a client that has said something, and closes.
    async fn greet(mut stream: TcpStream, _: SocketAddr, _: watch::Receiver<bool>) {
        let _ = stream.read_u8().await;
        let _ = stream.write_all(b"hello").await;
    }

    /// Says how the system finds out that the client has gone.
    async fn tell(mut stream: TcpStream, _: SocketAddr, _: watch::Receiver<bool>) {
        let _ = stream.read_u8().await;
        let told = asked(&stream);
        let _ = stream.write_all(told.as_bytes()).await;
    }

    async fn told(mut client: TcpStream) -> String {
        let mut told = String::new();
        client.read_to_string(&mut told).await.expect("no reset");
        told
    }

    #[tokio::test]
    async fn a_client_that_vanishes_is_found_out_within_a_minute() {
        let any = "127.0.0.1:0".parse().expect("an address");
        let listener =
            Listener::bind("test", any, 1_000, (TIME, TIME), tell).await.expect("a port");
        let address = listener.address();
        let connect = || async move {
            let mut client = TcpStream::connect(address).await.expect("a connection");
            client.write_all(b"?").await.expect("an open connection");
            client
        };
        let waiting = connect().await;
        let (stop, stopping) = watch::channel(false);
        let serving = tokio::spawn(listener.serve(stopping, TIME));
        assert_eq!(told(waiting).await, "true 60");
        // A connection that is accepted when the server stops is no other.
        let last = connect().await;
        let _ = stop.send(true);
        assert_eq!(told(last).await, "true 60");
        serving.await.expect("no panic");
    }

    #[tokio::test]
    async fn connections_that_the_system_has_let_in_are_served_when_the_server_stops() {
        let any = "127.0.0.1:0".parse().expect("an address");
        let listener =
            Listener::bind("test", any, 1_000, (TIME, TIME), greet).await.expect("a port");
        let mut waiting = Vec::new();
        for _ in 0..100 {
            let mut client = TcpStream::connect(listener.address()).await.expect("a connection");
            client.write_all(b"?").await.expect("an open connection");
            waiting.push(client);
        }
        // It stops before it has accepted any of them.
        let (_stop, stopping) = watch::channel(true);
        listener.serve(stopping, TIME).await;
        for mut client in waiting {
            let mut greeting = String::new();
            client.read_to_string(&mut greeting).await.expect("no reset");
            assert_eq!(greeting, "hello");
        }
    }
}
