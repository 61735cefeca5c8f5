//! A load balancer for TCP.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// Passes each connection on to the next of its servers. It ends when this is dropped.
#[derive(Debug)]
pub struct Balancer {
    /// Where it listens.
    pub address: SocketAddr,
    servers: Arc<Mutex<Vec<SocketAddr>>>,
    task: AbortHandle,
}

impl Balancer {
    /// Listens on a free port. There are no servers yet.
    ///
    /// # Panics
    ///
    /// If there is no free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let servers = Arc::<Mutex<Vec<SocketAddr>>>::default();
        let task = tokio::spawn(serve(listener, Arc::clone(&servers))).abort_handle();
        Self { address, servers, task }
    }

    /// Adds a server.
    pub fn add(&self, server: SocketAddr) {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).push(server);
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, servers: Arc<Mutex<Vec<SocketAddr>>>) {
    let next = Arc::new(AtomicUsize::new(0));
    while let Ok((mut client, _)) = listener.accept().await {
        let servers = servers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let next = Arc::clone(&next);
        tokio::spawn(async move {
            for _ in 0..servers.len() {
                let at = next.fetch_add(1, Ordering::Relaxed) % servers.len();
                // One that is not there costs nothing. One that stands still takes the connection.
                let Ok(mut server) = TcpStream::connect(servers[at]).await else { continue };
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let _ = copy_bidirectional(&mut client, &mut server).await;
                return;
            }
        });
    }
}
