//! The tables of `sluicegate proxy`, checked.

pub mod fields;

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::context::Context;
use crate::document::{self, Condition, Document, Key, Settle};
use crate::source::DocumentPath;

/// Where a proxy listens, `[listen]`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listen {
    /// The address and the port.
    pub address: SocketAddr,
    /// The files of a certificate, its key, and the authorities of clients.
    pub tls: Option<(PathBuf, PathBuf, Option<PathBuf>)>,
    /// The most connections.
    pub connections: usize,
    /// The largest head of a request, in bytes.
    pub head: usize,
    /// The largest body of a request whose tokens are counted, in bytes.
    pub body: usize,
    /// The most fields of a request.
    pub fields: usize,
    /// Whether fields are passed on whose names have other characters than letters, digits and `-`.
    pub underscores: bool,
    /// How long a client may take for a handshake and for the head of a request.
    pub head_timeout: Duration,
    /// How long a connection may be without a request.
    pub idle_timeout: Duration,
    /// How long a client may take for the next piece of a body.
    pub read_timeout: Duration,
    /// How long a client may take to read the next piece of a response.
    pub write_timeout: Duration,
    /// The protocols to which clients may upgrade, in lower case.
    pub upgrades: Vec<String>,
}

/// The application behind a proxy, `[upstream]`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Upstream {
    /// Its host and port, such as `127.0.0.1:3000`.
    pub authority: String,
    /// How to speak TLS with it, if its URL begins with `https`.
    pub tls: Option<UpstreamTls>,
    /// Whether it speaks HTTP/2 without being asked first.
    pub http2: bool,
    /// How long it may take to accept a connection.
    pub connect_timeout: Duration,
    /// How long it may take until the head of its response.
    pub response_timeout: Duration,
    /// The most requests that it works on.
    pub requests: usize,
    /// The most idle connections that are kept.
    pub idle_connections: usize,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
}

/// TLS with the application behind a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpstreamTls {
    /// The file of the authorities that vouch for its certificate. `None`: those of the system.
    pub authorities: Option<PathBuf>,
    /// The name that its certificate has to have. `None`: the host.
    pub server_name: Option<String>,
    /// The files of the certificate that the proxy presents, and of its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// The sizes of heads that are allowed: hyper needs 8 KiB, and more than 1 MiB for each of 10,000 connections is too much.
const HEADS: RangeInclusive<u64> = 8 * 1024..=1024 * 1024;

/// The sizes of bodies that are allowed. Requests for language models with images have up to 50 MB.
const BODIES: RangeInclusive<u64> = 1024..=64 * 1024 * 1024;

/// The numbers of fields that are allowed. The proxy itself writes some.
const FIELDS: RangeInclusive<u64> = 16..=1_000;

/// The most connections, requests and idle connections that a file can ask for. A process has fewer descriptors.
const MOST: u64 = 1_000_000;

pub(super) fn listen(
    spec: &document::Listen,
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) -> Option<Listen> {
    let reader = Reader { path, context };
    let address = spec.address.parse();
    let address = address.map_err(|_| "expected an address and a port such as `0.0.0.0:8080`");
    let address = context.check(&path.name("address"), address);
    let tls = spec.tls.as_ref().map(|tls| {
        let clients = tls.clients.as_ref().map(PathBuf::from);
        (PathBuf::from(&tls.certificate), PathBuf::from(&tls.key), clients)
    });
    let head = reader.within("head", spec.head, 32 * 1024, HEADS, "bytes");
    let body = reader.within("body", spec.body, 2 * 1024 * 1024, BODIES, "bytes");
    let fields = reader.within("fields", spec.fields, 200, FIELDS, "fields");
    let connections = reader.count("connections", spec.connections, 10_000);
    let head_timeout = reader.time("head_timeout", spec.head_timeout.as_deref(), 10);
    let idle_timeout = reader.time("idle_timeout", spec.idle_timeout.as_deref(), 75);
    let read_timeout = reader.time("read_timeout", spec.read_timeout.as_deref(), 30);
    let write_timeout = reader.time("write_timeout", spec.write_timeout.as_deref(), 30);
    let upgrades = upgrades(spec.upgrades.as_ref(), &path.name("upgrades"), context);
    Some(Listen {
        address: address?,
        tls,
        connections: connections?,
        head: head?,
        body: body?,
        fields: fields?,
        underscores: spec.underscores,
        head_timeout: head_timeout?,
        idle_timeout: idle_timeout?,
        read_timeout: read_timeout?,
        write_timeout: write_timeout?,
        upgrades: upgrades?,
    })
}

fn upgrades(
    spec: Option<&document::Texts>,
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) -> Option<Vec<String>> {
    let Some(spec) = spec else { return Some(vec!["websocket".to_owned()]) };
    let protocols: Vec<_> = spec.as_slice().iter().map(|name| name.to_ascii_lowercase()).collect();
    if protocols.iter().any(|name| name == "h2c") {
        // An upgraded connection is a tunnel: every request in it would pass uncounted.
        return context
            .refuse(path, "requests in a tunnel of HTTP/2 are not counted, expected no `h2c`");
    }
    let known = protocols.iter().map(|name| context.header_name(name, path)).collect::<Vec<_>>();
    known.iter().all(Option::is_some).then_some(protocols)
}

pub(super) fn upstream(
    spec: &document::Upstream,
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) -> Option<Upstream> {
    let reader = Reader { path, context };
    let url = context.check(&path.name("url"), url(&spec.url));
    let is_tls = url.as_ref().is_none_or(|(is_tls, _)| *is_tls);
    let tls = tls(spec.tls.as_ref(), is_tls, &path.name("tls"), context);
    let connect_timeout = reader.time("connect_timeout", spec.connect_timeout.as_deref(), 2);
    let response_timeout = reader.time("response_timeout", spec.response_timeout.as_deref(), 60);
    let idle_timeout = reader.time("idle_timeout", spec.idle_timeout.as_deref(), 4);
    let requests = reader.count("requests", spec.requests, 10_000);
    let idle_connections = reader.count("idle_connections", spec.idle_connections, 100);
    let (is_tls, authority) = url?;
    let tls = tls?;
    Some(Upstream {
        authority,
        tls: is_tls.then_some(tls),
        http2: spec.http2,
        connect_timeout: connect_timeout?,
        response_timeout: response_timeout?,
        requests: requests?,
        idle_connections: idle_connections?,
        idle_timeout: idle_timeout?,
    })
}

fn tls(
    spec: Option<&document::UpstreamTls>,
    is_tls: bool,
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) -> Option<UpstreamTls> {
    let Some(spec) = spec else { return Some(UpstreamTls::default()) };
    if !is_tls {
        return context
            .refuse(path, "the application does not speak TLS, expected a `url` with `https://`");
    }
    let identity = match (&spec.certificate, &spec.key) {
        (Some(certificate), Some(key)) => Ok(Some((certificate.into(), key.into()))),
        (None, None) => Ok(None),
        _ => Err("expected both a `certificate` and its `key`, or none"),
    };
    let identity = context.check(path, identity);
    let name = spec.server_name.as_deref().map(|name| host(name).ok_or("expected a host name"));
    let server_name = context.check(&path.name("server_name"), name.transpose());
    Some(UpstreamTls {
        authorities: spec.authorities.as_ref().map(PathBuf::from),
        server_name: server_name?.map(|name| name.trim_matches(['[', ']']).to_owned()),
        identity: identity?,
    })
}

/// Whether a URL asks for TLS, and its host and port. It has nothing else.
fn url(url: &str) -> Result<(bool, String), &'static str> {
    const EXPECTED: &str =
        "expected a scheme, a host and a port, such as `http://127.0.0.1:3000`, without a path";
    let (is_tls, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
        (Some(rest), _) => (false, rest),
        (_, Some(rest)) => (true, rest),
        _ => return Err(EXPECTED),
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    let name = match authority.rsplit_once(':') {
        // The colons of an address of IPv6 are inside of brackets.
        Some((host, port)) if !port.contains(']') => {
            port.parse::<u16>().ok().filter(|port| *port > 0).ok_or(EXPECTED)?;
            host
        }
        _ => authority,
    };
    host(name).map(|_| (is_tls, authority.to_owned())).ok_or(EXPECTED)
}

/// The name or address, if it is a host.
fn host(host: &str) -> Option<&str> {
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match literal {
        Some(literal) => literal.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            !host.is_empty() && host.bytes().all(fits)
        }
    };
    is_host.then_some(host)
}

struct Reader<'a> {
    path: &'a DocumentPath<'a>,
    context: &'a Context<'a>,
}

impl Reader<'_> {
    fn time(&self, name: &str, spec: Option<&str>, seconds: u64) -> Option<Duration> {
        match spec {
            Some(text) => self.context.time(text, &self.path.name(name)),
            None => Some(Duration::from_secs(seconds)),
        }
    }

    fn within(
        &self,
        name: &str,
        spec: Option<u64>,
        otherwise: u64,
        range: RangeInclusive<u64>,
        what: &str,
    ) -> Option<usize> {
        let size = spec.unwrap_or(otherwise);
        if !range.contains(&size) {
            let expected = format!("expected {} to {} {what}", range.start(), range.end());
            return self.context.refuse(&self.path.name(name), expected);
        }
        usize::try_from(size).ok()
    }

    fn count(&self, name: &str, spec: Option<u64>, otherwise: u64) -> Option<usize> {
        let count = spec.unwrap_or(otherwise);
        if !(1..=MOST).contains(&count) {
            let what = format!("{count} is not from 1 to {MOST}");
            return self.context.refuse(&self.path.name(name), what);
        }
        usize::try_from(count).ok()
    }
}

/// Why the limits of a proxy never see the request header of this name. `None` if they do, or there is no proxy.
pub(super) fn why_removed(document: &Document, name: &str) -> Option<&'static str> {
    document.upstream.as_ref()?;
    let name = name.to_ascii_lowercase();
    let underscores = document.listen.as_ref().is_some_and(|listen| listen.underscores);
    let header = document.proxies.as_ref().and_then(|proxies| proxies.header.as_deref());
    let has_trusted = document.proxies.as_ref().is_some_and(|proxies| !proxies.trusted.is_empty());
    let is_removed = |is_trusted| fields::is_removed(&name, header, underscores, is_trusted);
    match (is_removed(has_trusted), is_removed(true)) {
        (false, _) => None,
        (true, false) => Some(STRANGERS),
        (true, true) if underscores => Some(MISTAKEN),
        (true, true) => Some(ODD),
    }
}

const ODD: &str = "a proxy removes headers whose names have other characters than letters, digits and `-`: expected a name \
                   without them, or `underscores = true` in `[listen]`";
const MISTAKEN: &str = "a proxy removes this header, because applications may take it for one that the proxy reads or writes: \
                        expected another name";
const STRANGERS: &str = "only a proxy may write this header, and it is removed from the requests of others: expected the addresses of \
                         the proxies in front as `trusted` in `[proxies]`";
const CLAIM: &str = "claims are left by the code of a service, and a proxy has none: expected what the request itself shows";
const ROUTE: &str = "the routes of the application are not known to a proxy: expected `path`";
const RESPONSE: &str = "a proxy sees no cost that a handler reports: expected `header` or `tokens`";
const REPORTED: &str = "a proxy sees no cost that a handler reports: expected none of this";
const PER_SECOND: &str = "a proxy sees no cost that a handler reports: expected `requests_per_second`, `in_flight` or `adaptive`";

/// Reports what a proxy can never see of a request, because only the code of a service leaves it there. A rule that needs
/// it would refuse every request, or never apply, and a throttle would take all requests for alike.
pub(super) fn report_unseen(document: &Document, context: &Context<'_>) {
    let list = DocumentPath::Root.name("rules");
    let mut of_key = |key: &Key, path: &DocumentPath<'_>| match key {
        Key::Claim(_) => context.report(path, CLAIM),
        Key::Route => context.report(path, ROUTE),
        Key::Ip
        | Key::Method
        | Key::Path
        | Key::Host
        | Key::Global
        | Key::Country
        | Key::Region
        | Key::Header(_)
        | Key::Cookie(_)
        | Key::Query(_)
        | Key::Const(_)
        | Key::First(_)
        | Key::Optional(_)
        | Key::All(_) => {}
    };
    let mut of_condition = |when: &Condition, path: &DocumentPath<'_>| {
        if !when.claim.is_empty() {
            context.report(&path.name("claim"), CLAIM);
        }
        if when.route.is_some() {
            context.report(&path.name("route"), ROUTE);
        }
    };
    for (i, rule) in document.rules.iter().enumerate() {
        let path = list.index(i);
        rule.key.each(&path.name("key"), &mut of_key);
        if let Some(tiers) = &rule.tiers {
            let path = path.name("tiers");
            for (name, key) in [("by", &tiers.by), ("customer", &tiers.customer)] {
                if let Some(key) = key {
                    key.each(&path.name(name), &mut of_key);
                }
            }
        }
        rule.each_condition(&path, &mut of_condition);
        if rule.settle == Some(Settle::Response) {
            context.report(&path.name("settle"), RESPONSE);
        }
    }
    if let Some(throttle) = &document.throttle {
        let path = DocumentPath::Root.name("throttle");
        for (name, key) in [("predict_by", &throttle.predict_by), ("fair_by", &throttle.fair_by)] {
            if let Some(key) = key {
                key.each(&path.name(name), &mut of_key);
            }
        }
        throttle.each_condition(&path, &mut of_condition);
        if throttle.reported_cost.is_some() {
            context.report(&path.name("reported_cost"), REPORTED);
        }
        if throttle.capacity.cost_per_second.is_some() {
            context.report(&path.name("capacity").name("cost_per_second"), PER_SECOND);
        }
    }
}
