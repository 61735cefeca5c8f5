//! What a file says to `sluicegate proxy`.

use std::net::{IpAddr, SocketAddr};

use sluicegate_config::Policies;
use sluicegate_config::proxy::Upstream;

/// Where a proxy would listen and what for, and what is probably a mistake, as lines of a report.
pub(super) fn described(policies: &Policies) -> Vec<String> {
    let (listen, upstream) = match (policies.listen(), policies.upstream()) {
        (None, None) => return Vec::new(),
        (Some(_), None) => return vec!["warning: `[listen]` without `[upstream]`".to_owned()],
        (None, Some(_)) => return vec!["warning: `[upstream]` without `[listen]`".to_owned()],
        (Some(listen), Some(upstream)) => (listen, upstream),
    };
    let scheme = if upstream.tls.is_some() { "https" } else { "http" };
    let tls = if listen.tls.is_some() { " with TLS" } else { "" };
    let version = if upstream.http2 { " in HTTP/2" } else { "" };
    let mut lines = vec![format!(
        "a proxy listens at {}{tls}, for {scheme}://{}{version}",
        listen.address, upstream.authority
    )];
    if is_itself(listen.address, upstream) {
        let what = "the application is at the address of the proxy: requests go in a circle";
        lines.push(format!("warning: {what}"));
    }
    lines
}

/// Whether the application is where the proxy listens.
fn is_itself(address: SocketAddr, upstream: &Upstream) -> bool {
    let default = if upstream.tls.is_some() { 443 } else { 80 };
    let (host, port) = match upstream.authority.rsplit_once(':') {
        // The colons of an address of IPv6 are inside of brackets.
        Some((host, port)) if !port.contains(']') => (host, port.parse().unwrap_or(default)),
        _ => (&*upstream.authority, default),
    };
    let host = host.trim_matches(['[', ']']);
    let at = host.parse::<IpAddr>().ok();
    let is_here = host.eq_ignore_ascii_case("localhost") || at.is_some_and(|at| at.is_loopback());
    port == address.port()
        && (at == Some(address.ip())
            || (is_here && (address.ip().is_unspecified() || address.ip().is_loopback())))
}
