//! Reads URLs, and finds the servers that they name.

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use sluicegate_core::adapter::ConfigError;

use crate::wire::Certificates;
use crate::wire::node::{Sentinels, Target};

#[cfg(feature = "tls")]
use crate::wire::tls::Tls;

/// How the servers are deployed, as the operator says.
#[derive(Debug, Clone)]
pub(crate) enum Topology {
    Server,
    Cluster(Vec<String>),
    Sentinel { service: String, urls: Vec<String> },
}

/// The servers to connect to.
#[derive(Debug)]
pub(crate) enum Servers {
    One(Box<Target>),
    Cluster(Vec<ConnectionInfo>),
}

#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) servers: Servers,
    /// Whether RESP3 is tried; it is unless a URL asks for RESP2.
    pub(crate) resp3: bool,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
}

pub(crate) fn resolve(
    topology: &Topology,
    url: Option<&str>,
    certificates: &Certificates,
) -> Result<Endpoint, ConfigError> {
    let read = |url: &str| read(url, certificates);
    let (servers, urls) = match topology {
        Topology::Server => {
            let url = url.ok_or_else(|| ConfigError::new("no server is given: set `url`"))?;
            (Servers::One(Box::new(Target::Server(read(url)?))), vec![url])
        }
        Topology::Cluster(_) if url.is_some() => {
            return Err(ConfigError::new(
                "both a single server and a cluster are given: choose one",
            ));
        }
        Topology::Cluster(urls) => {
            let seeds =
                urls.iter().map(|url| seed(url, read(url)?)).collect::<Result<Vec<_>, _>>()?;
            if seeds.is_empty() {
                return Err(ConfigError::new("no node of the cluster is given"));
            }
            (Servers::Cluster(seeds), urls.iter().map(String::as_str).collect())
        }
        Topology::Sentinel { service, urls } => {
            if service.is_empty() || urls.is_empty() {
                return Err(ConfigError::new(
                    "the sentinels' service name or their URLs are missing",
                ));
            }
            let sentinels =
                urls.iter().map(|url| over_tcp(url, read(url)?)).collect::<Result<_, _>>()?;
            let master = url.map(|url| over_tcp(url, read(url)?)).transpose()?;
            let target = Target::Master(Sentinels {
                service: service.clone(),
                sentinels,
                master: master.map_or_else(unnamed, Ok)?,
            });
            (Servers::One(Box::new(target)), url.into_iter().collect())
        }
    };
    let older = |url: &&str| url.contains("protocol=2") || url.contains("protocol=resp2");
    let resp3 = !urls.iter().any(older);
    Ok(Endpoint {
        servers,
        resp3,
        #[cfg(feature = "tls")]
        tls: tls(topology, url, certificates)?,
    })
}

fn read(url: &str, certificates: &Certificates) -> Result<ConnectionInfo, ConfigError> {
    let bad = |why: &str| ConfigError::new(format!("the URL `{}` {why}", shown(url)));
    match scheme(url) {
        // It is not shown: it may be a password alone.
        None => return Err(ConfigError::new("the URL has no scheme: write `redis://…`")),
        Some("rediss" | "valkeys") if !cfg!(feature = "tls") => {
            return Err(bad("asks for TLS: enable the feature `tls` of sluicegate-redis"));
        }
        Some("redis" | "rediss" | "valkey" | "valkeys") => {}
        Some("redis+unix" | "valkey+unix" | "unix") => {}
        Some(other) => {
            return Err(bad(&format!(
                "has the scheme `{other}`: expected `redis`, `rediss`, `valkey`, `valkeys` or `redis+unix`"
            )));
        }
    }
    if url.ends_with("#insecure") {
        return Err(bad("asks for an unchecked certificate, which is not supported"));
    }
    if let Some(name) = unknown_parameter(url) {
        return Err(bad(&format!(
            "has {name}, which would be ignored: user and password stand before the host, the database after it, as in \
             `redis://user:password@host:6379/2`; `protocol` is a parameter, and for Unix sockets `user`, `pass` and `db`"
        )));
    }
    let parsed = redis::parse_redis_url(url).ok_or_else(|| {
        bad("cannot be parsed: its host, its port or a character of its password is not valid")
    })?;
    let info = parsed.into_connection_info().map_err(|error| {
        let told = error.to_string();
        bad(&format!("is not accepted: {}", told.split(" - ").next().unwrap_or_default()))
    })?;
    certified(info, certificates).map_err(|why| bad(&why))
}

/// `None` if no URL asks for TLS.
#[cfg(feature = "tls")]
fn tls(
    topology: &Topology,
    url: Option<&str>,
    certificates: &Certificates,
) -> Result<Option<Tls>, ConfigError> {
    let others = match topology {
        Topology::Server => &[][..],
        Topology::Cluster(urls) | Topology::Sentinel { urls, .. } => urls,
    };
    let asks = |url: &str| url.starts_with("rediss:") || url.starts_with("valkeys:");
    if !others.iter().map(String::as_str).chain(url).any(asks) {
        return Ok(None);
    }
    let bad = |why| ConfigError::new(format!("TLS is not set up correctly: {why}"));
    Tls::new(certificates).map(Some).map_err(bad)
}

#[cfg(feature = "tls")]
fn certified(info: ConnectionInfo, certificates: &Certificates) -> Result<ConnectionInfo, String> {
    if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
        let told = certificates.authorities.is_some() || certificates.own.is_some();
        let unused = "does not use TLS (`rediss://`), but certificates are given";
        return if told { Err(unused.to_owned()) } else { Ok(info) };
    }
    // If the program contains several providers and none is chosen, the client panics.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client_tls = certificates
        .own
        .clone()
        .map(|(client_cert, client_key)| redis::ClientTlsConfig { client_cert, client_key });
    let tls = redis::TlsCertificates { client_tls, root_cert: certificates.authorities.clone() };
    match redis::Client::build_with_tls(info, tls) {
        Ok(client) => Ok(client.get_connection_info().clone()),
        Err(error) => Err(format!("cannot be used with the given certificates: {error}")),
    }
}

#[cfg(not(feature = "tls"))]
fn certified(info: ConnectionInfo, _: &Certificates) -> Result<ConnectionInfo, String> {
    Ok(info)
}

fn seed(url: &str, info: ConnectionInfo) -> Result<ConnectionInfo, ConfigError> {
    if info.redis_settings().db() != 0 {
        let shown = shown(url);
        return Err(ConfigError::new(format!(
            "the URL `{shown}` names a database, but a cluster has only database 0"
        )));
    }
    over_tcp(url, info)
}

fn over_tcp(url: &str, info: ConnectionInfo) -> Result<ConnectionInfo, ConfigError> {
    match info.addr() {
        ConnectionAddr::Unix(_) => Err(ConfigError::new(format!(
            "the URL `{}` names a Unix socket, but clusters and sentinels need a host and a port",
            shown(url)
        ))),
        _ => Ok(info),
    }
}

/// A master without user, database or TLS. Its address comes from the sentinels.
fn unnamed() -> Result<ConnectionInfo, ConfigError> {
    read("redis://master", &Certificates::default())
}

fn scheme(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once("://")?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    (!scheme.is_empty() && scheme.bytes().all(fits)).then_some(scheme)
}

/// The first parameter that nothing reads, as text for an error. A parameter that does not look like one may be a part of
/// a password, and is not named.
fn unknown_parameter(url: &str) -> Option<String> {
    let (before, after) = url.split_once('?')?;
    let query = after.split('#').next().unwrap_or_default();
    let known = match scheme(before) {
        Some("redis+unix" | "valkey+unix" | "unix") => &["protocol", "user", "pass", "db"][..],
        _ => &["protocol"],
    };
    let parameters = query.split('&').filter(|parameter| !parameter.is_empty());
    let mut names = parameters.map(|parameter| parameter.split_once('=').map(|(name, _)| name));
    let unknown = names.find(|name| !name.is_some_and(|name| known.contains(&name)))?;
    let fits = |name: &&str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    Some(match unknown.filter(fits) {
        Some(name) => format!("the unknown parameter `{name}`"),
        None => "an unknown parameter".to_owned(),
    })
}

/// The URL without user, password and options. Where these may reach farther than it seems, it is the scheme alone.
fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (before, after) = rest.split_at(authority.len());
    let host = before.rsplit('@').next().unwrap_or_default();
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit() || byte == b']');
    let is_clear = host.rsplit_once(':').is_none_or(|(_, port)| is_port(port));
    if after.contains('@') || !is_clear {
        return format!("{scheme}://…");
    }
    let path = after.split(['?', '#']).next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(topology: &Topology, url: Option<&str>) -> String {
        let found = resolve(topology, url, &Certificates::default());
        found.expect_err("it cannot be used").to_string()
    }

    fn server(url: &str) -> String {
        refused(&Topology::Server, Some(url))
    }

    #[test]
    fn an_error_names_the_bad_part_and_no_password() {
        for (url, part) in [
            ("127.0.0.1:6379", "no scheme"),
            ("http://example.org", "`http`"),
            ("redis://host:99999", "port"),
            ("redis://host/nine", "database"),
            ("redis://user:hush@0.0.0.0/", "wildcard"),
            ("redis://user:hush@host/nine", "database"),
            ("redis://user:hush@host:99999", "port"),
            ("user:hush@host", "no scheme"),
            ("redis+unix:///run/redis.sock?pass=hush&db=x", "database"),
            ("hush", "no scheme"),
            ("hush@host:6379/0", "no scheme"),
            ("://hush", "no scheme"),
            ("user:hush://host", "no scheme"),
            ("redis://host?password=hush", "`password`"),
            ("redis://host:6379/0?protocol=3&pass=hush", "`pass`"),
            ("redis://host/?db=1&user=hush", "`db`"),
            ("redis://host?hush", "unknown parameter"),
            ("redis://host?pro%74ocol=hush", "unknown parameter"),
            ("redis+unix:///run/redis.sock?password=hush", "`password`"),
            ("redis://user:hu?sh=hush@host", "unknown parameter"),
            ("redis://user:a#hush@host", "port"),
            ("redis://user:a/hush@host", "port"),
            ("redis://user:hush", "port"),
        ] {
            let error = server(url);
            assert!(error.to_lowercase().contains(part), "{url}: {error}");
            assert!(!error.contains("hush"), "{error}");
        }
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn tls_needs_its_feature() {
        assert!(server("rediss://host").contains("the feature `tls`"));
    }

    #[test]
    fn a_certificate_is_always_checked() {
        if cfg!(feature = "tls") {
            assert!(server("rediss://host/#insecure").contains("certificate"));
        }
    }

    #[test]
    fn a_cluster_has_nodes_and_one_database() {
        let cluster = |url: &str| Topology::Cluster(vec![url.to_owned()]);
        assert!(refused(&Topology::Cluster(vec![]), None).contains("no node"));
        assert!(refused(&cluster("redis://host/2"), None).contains("database"));
        assert!(refused(&cluster("unix:///run/redis.sock"), None).contains("socket"));
        assert!(refused(&cluster("redis://host"), Some("redis://host")).contains("both"));
    }

    #[test]
    fn sentinels_have_a_service_and_addresses() {
        let sentinel = |service: &str, urls: &[&str]| Topology::Sentinel {
            service: service.to_owned(),
            urls: urls.iter().map(|url| (*url).to_owned()).collect(),
        };
        assert!(refused(&sentinel("", &["redis://host"]), None).contains("service"));
        assert!(refused(&sentinel("main", &[]), None).contains("URLs"));
        assert!(
            resolve(&sentinel("main", &["redis://host"]), None, &Certificates::default()).is_ok()
        );
    }

    #[test]
    fn a_server_needs_a_url() {
        assert!(refused(&Topology::Server, None).contains("`url`"));
    }

    #[test]
    fn resp3_is_tried_unless_the_url_says_otherwise() {
        let resp3 = |url| {
            resolve(&Topology::Server, Some(url), &Certificates::default())
                .expect("a good URL")
                .resp3
        };
        assert!(resp3("redis://host"));
        assert!(!resp3("redis://host/?protocol=resp2"));
        assert!(!resp3("redis://host/?protocol=2"));
    }
}
