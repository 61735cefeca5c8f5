//! `sluicegate health`

use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use clap::Args;

use crate::shared;

/// Asks a running server whether it is ready, for the health checks of containers.
///
/// Exits with 1 if the server is not ready. Images need no shell and no curl for it.
#[derive(Debug, Args)]
pub(crate) struct Health {
    /// The server's admin port, or its HTTP port if that does not speak TLS.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6070")]
    address: SocketAddr,
    /// The token of the admin port, if it has one.
    #[arg(long, value_name = "TOKEN", env = "SLUICEGATE_ADMIN_TOKEN", hide_env_values = true)]
    admin_token: Option<String>,
    /// Asks only whether the server runs. It does until its last request is answered.
    #[arg(long)]
    live: bool,
    /// How long the server may take to answer, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "2000", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    timeout_ms: u64,
}

/// The longest status line that is read, in bytes.
const LONGEST: usize = 1024;

/// Fails with a sentence if the server does not answer 200.
pub(crate) fn run(options: &Health) -> Result<(), Box<dyn Error>> {
    let Health { address, admin_token, live, .. } = options;
    let path = if *live { "/healthz" } else { "/readyz" };
    let token = match shared::secret(admin_token.as_deref())? {
        Some(token) => format!("Authorization: Bearer {token}\r\n"),
        None => String::new(),
    };
    let question =
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{token}Connection: close\r\n\r\n");
    let answer = ask(options, &question)
        .map_err(|error| format!("no answer from the server at {address}: {error}"))?;
    let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.split(' ').next());
    let status = status
        .filter(|status| status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit()));
    match status {
        Some("200") => Ok(()),
        Some(status) => Err(format!("{address}{path} answers {status}").into()),
        None => Err(format!("{address} does not speak HTTP without TLS").into()),
    }
}

/// The first line of the answer.
fn ask(options: &Health, question: &str) -> io::Result<String> {
    let deadline = Instant::now() + Duration::from_millis(options.timeout_ms);
    let mut stream = TcpStream::connect_timeout(&options.address, left(deadline)?)?;
    stream.set_write_timeout(Some(left(deadline)?))?;
    stream.write_all(question.as_bytes())?;
    let (mut line, mut piece) = (Vec::new(), [0; 256]);
    while line.len() < LONGEST && !line.contains(&b'\n') {
        stream.set_read_timeout(Some(left(deadline)?))?;
        match stream.read(&mut piece)? {
            0 => break,
            read => line.extend_from_slice(&piece[..read]),
        }
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// How much time is left until the deadline.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}
