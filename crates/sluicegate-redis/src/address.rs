//! From URLs to whom they name.

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

use crate::builder::{Certificates, ConfigError};
use crate::node::{Sentinels, Target};
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// Where the rows are, as the operator tells it.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Server,
    Cluster(Vec<String>),
    Sentinel { service: String, urls: Vec<String> },
}

/// Whom to connect to.
#[derive(Debug)]
pub(crate) enum Whom {
    One(Box<Target>),
    Cluster(Vec<ConnectionInfo>),
}

#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) whom: Whom,
    /// Whether RESP3 is tried: unless a URL says otherwise.
    pub(crate) resp3: bool,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
}

pub(crate) fn find(
    place: &Place,
    url: Option<&str>,
    certificates: &Certificates,
) -> Result<Found, ConfigError> {
    let read = |url: &str| read(url, certificates);
    let (whom, urls) = match place {
        Place::Server => {
            let url = url.ok_or_else(|| ConfigError::new("no server is named: give its `url`"))?;
            (Whom::One(Box::new(Target::Server(read(url)?))), vec![url])
        }
        Place::Cluster(_) if url.is_some() => {
            return Err(ConfigError::new("both one server and a cluster are named"));
        }
        Place::Cluster(urls) => {
            let seeds =
                urls.iter().map(|url| seed(url, read(url)?)).collect::<Result<Vec<_>, _>>()?;
            if seeds.is_empty() {
                return Err(ConfigError::new("no node of the cluster is named"));
            }
            (Whom::Cluster(seeds), urls.iter().map(String::as_str).collect())
        }
        Place::Sentinel { service, urls } => {
            if service.is_empty() || urls.is_empty() {
                return Err(ConfigError::new(
                    "the sentinels' service or all their URLs are missing",
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
            (Whom::One(Box::new(target)), url.into_iter().collect())
        }
    };
    let older = |url: &&str| url.contains("protocol=2") || url.contains("protocol=resp2");
    let resp3 = !urls.iter().any(older);
    Ok(Found {
        whom,
        resp3,
        #[cfg(feature = "tls")]
        tls: tls(place, url, certificates)?,
    })
}

fn read(url: &str, certificates: &Certificates) -> Result<ConnectionInfo, ConfigError> {
    let bad = |why: &str| ConfigError::new(format!("the URL `{}` {why}", shown(url)));
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    match scheme {
        None => return Err(bad("has no scheme, such as `redis://`")),
        Some("rediss" | "valkeys") if !cfg!(feature = "tls") => {
            return Err(bad("asks for TLS, which is behind the feature `tls` of sluicegate-redis"));
        }
        Some("redis" | "rediss" | "valkey" | "valkeys") => {}
        Some("redis+unix" | "valkey+unix" | "unix") => {}
        Some(other) => return Err(bad(&format!("has the scheme `{other}`, which is not Redis'"))),
    }
    if url.ends_with("#insecure") {
        return Err(bad("asks for a certificate not to be checked, which is not done here"));
    }
    let parsed = redis::parse_redis_url(url).ok_or_else(|| {
        bad("cannot be read: its host, its port or a sign in its password is not valid")
    })?;
    let info = parsed.into_connection_info().map_err(|error| {
        let told = error.to_string();
        bad(&format!("does not do: {}", told.split(" - ").next().unwrap_or_default()))
    })?;
    certified(info, certificates).map_err(|why| bad(&why))
}

/// None, where no URL asks for it.
#[cfg(feature = "tls")]
fn tls(
    place: &Place,
    url: Option<&str>,
    certificates: &Certificates,
) -> Result<Option<Tls>, ConfigError> {
    let others = match place {
        Place::Server => &[][..],
        Place::Cluster(urls) | Place::Sentinel { urls, .. } => urls,
    };
    let asks = |url: &str| url.starts_with("rediss:") || url.starts_with("valkeys:");
    if !others.iter().map(String::as_str).chain(url).any(asks) {
        return Ok(None);
    }
    let bad = |why| ConfigError::new(format!("TLS cannot be used as it is set up: {why}"));
    Tls::new(certificates).map(Some).map_err(bad)
}

#[cfg(feature = "tls")]
fn certified(info: ConnectionInfo, certificates: &Certificates) -> Result<ConnectionInfo, String> {
    if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
        let told = certificates.authorities.is_some() || certificates.own.is_some();
        let unused = "does not ask for TLS, as `rediss://` would, but certificates are given";
        return if told { Err(unused.to_owned()) } else { Ok(info) };
    }
    // With more than one in the program, the client would not know which to take, and panic.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client_tls = certificates
        .own
        .clone()
        .map(|(client_cert, client_key)| redis::ClientTlsConfig { client_cert, client_key });
    let tls = redis::TlsCertificates { client_tls, root_cert: certificates.authorities.clone() };
    match redis::Client::build_with_tls(info, tls) {
        Ok(client) => Ok(client.get_connection_info().clone()),
        Err(error) => Err(format!("cannot be used with the certificates given: {error}")),
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
            "the URL `{shown}` names a database, of which a cluster has none but 0"
        )));
    }
    over_tcp(url, info)
}

fn over_tcp(url: &str, info: ConnectionInfo) -> Result<ConnectionInfo, ConfigError> {
    match info.addr() {
        ConnectionAddr::Unix(_) => Err(ConfigError::new(format!(
            "the URL `{}` names a socket, but other servers are found from here by host and port",
            shown(url)
        ))),
        _ => Ok(info),
    }
}

/// A master of which nothing is told but its address, later.
fn unnamed() -> Result<ConnectionInfo, ConfigError> {
    read("redis://master", &Certificates::default())
}

/// The URL without user, password and options.
fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.rsplit('@').next().unwrap_or_default().to_owned();
    };
    let after_password = rest.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{after_password}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(place: &Place, url: Option<&str>) -> String {
        let found = find(place, url, &Certificates::default());
        found.expect_err("it cannot be used").to_string()
    }

    fn server(url: &str) -> String {
        refused(&Place::Server, Some(url))
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
        let cluster = |url: &str| Place::Cluster(vec![url.to_owned()]);
        assert!(refused(&Place::Cluster(vec![]), None).contains("no node"));
        assert!(refused(&cluster("redis://host/2"), None).contains("database"));
        assert!(refused(&cluster("unix:///run/redis.sock"), None).contains("socket"));
        assert!(refused(&cluster("redis://host"), Some("redis://host")).contains("both"));
    }

    #[test]
    fn sentinels_have_a_service_and_addresses() {
        let sentinel = |service: &str, urls: &[&str]| Place::Sentinel {
            service: service.to_owned(),
            urls: urls.iter().map(|url| (*url).to_owned()).collect(),
        };
        assert!(refused(&sentinel("", &["redis://host"]), None).contains("service"));
        assert!(refused(&sentinel("main", &[]), None).contains("URLs"));
        assert!(find(&sentinel("main", &["redis://host"]), None, &Certificates::default()).is_ok());
    }

    #[test]
    fn nobody_is_asked_without_a_name() {
        assert!(refused(&Place::Server, None).contains("`url`"));
    }

    #[test]
    fn resp3_is_tried_unless_the_url_says_otherwise() {
        let resp3 = |url| {
            find(&Place::Server, Some(url), &Certificates::default()).expect("a good URL").resp3
        };
        assert!(resp3("redis://host"));
        assert!(!resp3("redis://host/?protocol=resp2"));
        assert!(!resp3("redis://host/?protocol=2"));
    }
}
