//! URLs of Redis for `serve`, from what the variables say of a server.

use percent_encoding::{NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

/// The schemes of a Redis over TCP, of one over TLS, and of one at a Unix socket.
const TCP: [&str; 4] = ["redis", "valkey", "rediss", "valkeys"];
const TLS: [&str; 2] = ["rediss", "valkeys"];
const SOCKET: [&str; 3] = ["redis+unix", "valkey+unix", "unix"];

/// The URL of a server that is given as `host:port` or as a URL. As in the service, what other variables say is for both:
/// TLS, and the credentials, which are those of the URL only if there are no others.
pub(super) fn of_server(given: &str, credentials: &str, has_tls: bool) -> String {
    let server = without_scheme(given, &TCP);
    let authority = server.split(['/', '?']).next().unwrap_or(server);
    let server = match authority.rfind('@') {
        Some(at) if !credentials.is_empty() => &server[at + 1..],
        _ => server,
    };
    let scheme = if has_tls { "rediss" } else { "redis" };
    format!("{scheme}://{credentials}{server}")
}

/// The URL of a server at a Unix socket, which is given as a path or as a URL, with `password` or `user:password`.
pub(super) fn of_socket(given: &str, auth: &str) -> String {
    let (user, password) = auth.split_once(':').unwrap_or(("", auth));
    let mut socket = without_scheme(given, &SOCKET).to_owned();
    // Of two, the last is taken.
    for (name, value) in [("user", user), ("pass", password)] {
        if !value.is_empty() {
            let mark = if socket.contains('?') { '&' } else { '?' };
            socket.push_str(&format!("{mark}{name}={}", escaped(value)));
        }
    }
    format!("redis+unix://{socket}")
}

pub(super) fn is_of_socket(url: &str) -> bool {
    has_scheme(url, &SOCKET)
}

pub(super) fn asks_for_tls(url: &str) -> bool {
    has_scheme(url, &TLS)
}

fn has_scheme(url: &str, schemes: &[&str]) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| schemes.contains(&scheme))
}

/// What follows one of these schemes, or the whole text.
fn without_scheme<'u>(url: &'u str, schemes: &[&str]) -> &'u str {
    match url.split_once("://") {
        Some((scheme, rest)) if schemes.contains(&scheme) => rest,
        _ => url,
    }
}

/// What stands in a URL before the host: `password` or `user:password`.
pub(super) fn credentials(auth: &str) -> String {
    match auth.split_once(':') {
        _ if auth.is_empty() => String::new(),
        None => format!(":{}@", escaped(auth)),
        Some((user, password)) => format!("{}:{}@", escaped(user), escaped(password)),
    }
}

fn escaped(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, NON_ALPHANUMERIC)
}
