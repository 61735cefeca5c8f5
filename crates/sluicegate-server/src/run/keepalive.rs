//! How the system finds out that the other end of a connection has gone without a word, like one that has lost its network.

use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// An end that has sent nothing for this time is asked whether it is there. nginx and HAProxy leave this to the system, which by
/// default never asks. Go asks each connection after 15 seconds.
///
/// While something is on its way to the other end, the system gives up by its count of retransmissions instead, after a quarter of
/// an hour on Linux. `TCP_USER_TIMEOUT` would bound that. But it also ends a connection whose other end is there and reads nothing.
const SILENCE: Duration = Duration::from_secs(30);

/// How often it is asked then, and after what time again.
const QUESTIONS: u32 = 3;
const AGAIN: Duration = Duration::from_secs(10);

/// Has the system find out when the client is gone. Its place would be taken for ever: a tunnel, a client that waits for its
/// answer and a call that streams have no other time.
pub(super) fn keep_alive(stream: &TcpStream) {
    let asking = TcpKeepalive::new().with_time(SILENCE).with_interval(AGAIN);
    // A connection that has ended by now has no options.
    let _ = SockRef::from(stream).set_tcp_keepalive(&asking.with_retries(QUESTIONS));
}

/// Has the system find out when a server is gone. A tunnel to it would be kept for ever.
pub(super) fn keep_alive_to_servers(tcp: &mut HttpConnector) {
    tcp.set_keepalive(Some(SILENCE));
    tcp.set_keepalive_interval(Some(AGAIN));
    tcp.set_keepalive_retries(Some(QUESTIONS));
}

/// Whether the system asks the other end, and within how many seconds it has found out.
#[cfg(test)]
pub(super) fn asked(stream: &TcpStream) -> String {
    let socket = SockRef::from(stream);
    let is_asked = socket.keepalive().expect("an option");
    let time = socket.tcp_keepalive_time().expect("an option");
    let interval = socket.tcp_keepalive_interval().expect("an option");
    let retries = socket.tcp_keepalive_retries().expect("an option");
    format!("{is_asked} {}", (time + interval * retries).as_secs())
}
