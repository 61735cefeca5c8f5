//! Shared code of the examples that serve: the listener, the end of the process, and a Redis server.

mod server;

use std::error::Error;
use std::fmt;
use std::process;

use tokio::net::TcpListener;
use tokio::signal;

pub use self::server::RedisServer;

/// Listens on port `$PORT` of 127.0.0.1, or on port 3000, and returns the URL to print as well.
///
/// If that is not possible, prints why and ends the process with exit code 1.
pub async fn listen() -> (TcpListener, String) {
    let listener = match port(std::env::var("PORT").ok().as_deref()) {
        Ok(port) => bind(port).await,
        Err(error) => Err(error),
    };
    listener.unwrap_or_else(|error| {
        eprintln!("{error}");
        process::exit(1)
    })
}

fn port(variable: Option<&str>) -> Result<u16, Failure> {
    let Some(text) = variable else { return Ok(3000) };
    text.parse().map_err(|_| Failure(format!("PORT is `{text}`: that is not a port number")))
}

async fn bind(port: u16) -> Result<(TcpListener, String), Failure> {
    let cannot = |error| {
        Failure(format!(
            "cannot listen on 127.0.0.1:{port}: {error}; choose another port by PORT=…"
        ))
    };
    let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(cannot)?;
    let url = format!("http://{}", listener.local_addr().map_err(cannot)?);
    Ok((listener, url))
}

/// Waits for Ctrl-C, or for the system to ask this process to end.
pub async fn ended() {
    #[cfg(unix)]
    if let Ok(mut terminated) = signal::unix::signal(signal::unix::SignalKind::terminate()) {
        tokio::select! {
            _ = signal::ctrl_c() => {}
            _ = terminated.recv() => {}
        }
        return;
    }
    // A signal that cannot be listened for ends the wait at once.
    let _ = signal::ctrl_c().await;
}

/// An error of an example, as a sentence.
#[derive(Debug)]
pub struct Failure(String);

impl Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_port_it_is_3000() {
        assert_eq!(port(None).unwrap(), 3000);
        assert_eq!(port(Some("8080")).unwrap(), 8080);
    }

    #[test]
    fn a_bad_port_is_named() {
        for bad in ["", "http", "-1", "65536", "80 "] {
            let sentence = port(Some(bad)).unwrap_err().to_string();
            assert!(sentence.contains(&format!("`{bad}`")), "{sentence}");
        }
    }

    #[tokio::test]
    async fn a_port_in_use_is_named() {
        let (_listener, url) = bind(0).await.unwrap();
        let taken = url.rsplit(':').next().unwrap();
        let sentence = bind(taken.parse().unwrap()).await.unwrap_err().to_string();
        assert!(sentence.contains(taken) && sentence.contains("PORT"), "{sentence}");
    }
}
