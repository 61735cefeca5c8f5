//! Several servers, of which one divides the capacity.

use std::error::Error;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use http::uri::Authority;
use sluicegate_lease::etcd::Etcd;
use sluicegate_redis::Redis;
use sluicegate_server::ServiceBuilder;
use sluicegate_server::capacity::LONGEST_LEASE;

use crate::shared::read;

#[derive(Debug, Args)]
#[command(next_help_heading = "Several servers")]
pub(crate) struct Masters {
    /// Elects the server that divides the capacity among those that have the same `--capacity`, in Redis or Valkey at this
    /// URL, such as `redis://user:secret@host:6379` or `rediss://..`, or in etcd, such as `etcd://host:2379,other:2379`, or
    /// `etcds://..` with TLS. If such a store asks for a certificate, it is shown that of `--tls-certificate`. The other servers
    /// pass calls and streams on to the elected one, so clients may call any server. A server that is killed is replaced
    /// within 3 seconds. Servers with another file need a database of their own.
    #[arg(
        long,
        value_name = "URL",
        env = "SLUICEGATE_MASTERS",
        hide_env_values = true,
        conflicts_with = "nothing_leased"
    )]
    masters: Option<String>,
    /// The authorities in this PEM file may sign the certificate of the Redis or etcd of `--masters`, instead of those of the
    /// system. The file is read at the start, like the certificate that is shown.
    #[arg(long, value_name = "FILE", requires = "masters")]
    masters_authorities: Option<PathBuf>,
    /// The address at which the other servers reach the gRPC port of this one, such as `10.0.0.7:8081`. Where that has TLS, its
    /// certificate has to be for this host, and by an authority of the system or of `--tls-clients`, and clients have to accept
    /// it as one of a client.
    #[arg(long, value_name = "ADDRESS", env = "SLUICEGATE_ADVERTISE", requires = "masters")]
    advertise: Option<Advertised>,
    /// A name in the certificates of all these servers, where they are for names and not for the hosts of `--advertise`, such as
    /// addresses of pods.
    #[arg(long, value_name = "NAME", requires = "masters", requires = "tls_certificate")]
    pub(crate) advertise_name: Option<String>,
}

/// What all servers with one file have in common in the store.
const NAME: &str = "capacity";

/// How long a master that is not heard of stays the master.
const MASTERSHIP: Duration = Duration::from_secs(2);

impl Masters {
    /// Makes the service one of several, if it is to be.
    pub(crate) fn among(
        &self,
        service: ServiceBuilder,
        has_capacity: bool,
        own: Option<(&Path, &Path)>,
    ) -> Result<ServiceBuilder, Box<dyn Error>> {
        let Some(url) = &self.masters else { return Ok(service) };
        if !has_capacity {
            return Err("--masters: there is nothing to divide, expected --capacity".into());
        }
        let address = self.address(own.is_some())?;
        let wrong = |error: &dyn Error| format!("--masters: {error}");
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let has_tls = matches!(scheme, "rediss" | "etcds");
        let (authorities, own) = self.files(has_tls, own)?;
        Ok(match scheme {
            "redis" | "rediss" => {
                let mut redis = Redis::builder().url(url).client_name("sluicegate");
                if let Some(pem) = authorities {
                    redis = redis.certificate_authorities(pem);
                }
                if let Some((pem, key)) = own {
                    redis = redis.certificate(pem, key);
                }
                let redis = redis.build().map_err(|error| wrong(&error))?;
                let stands = redis.mastership(NAME, &address).lease(MASTERSHIP);
                let stands = stands.longest_lease(LONGEST_LEASE).stand();
                service.mastership(stands.map_err(|error| wrong(&error))?)
            }
            "etcd" | "etcds" => {
                let scheme = if has_tls { "https" } else { "http" };
                let members = rest.split(',').map(|member| format!("{scheme}://{member}"));
                let mut etcd = Etcd::new(members).map_err(|error| wrong(&error))?;
                if has_tls {
                    let own = own.as_ref().map(|(pem, key)| (&**pem, &**key));
                    let certified = etcd.certificates(authorities.as_deref(), own);
                    etcd = certified.map_err(|error| wrong(&error))?;
                }
                let stands = etcd.mastership(NAME, &address).lease(MASTERSHIP);
                let stands = stands.longest_lease(LONGEST_LEASE).stand();
                service.mastership(stands.map_err(|error| wrong(&error))?)
            }
            // Not shown: without a scheme, it may begin with a password.
            _ => {
                return Err("--masters: the URL has another scheme, expected redis://, rediss://, etcd:// or etcds://".into());
            }
        })
    }

    /// Reads what TLS to the store needs.
    fn files(&self, has_tls: bool, own: Option<(&Path, &Path)>) -> Result<Files, String> {
        if !has_tls {
            return match self.masters_authorities {
                Some(_) => Err("--masters-authorities: the URL of --masters has no TLS, expected rediss:// or etcds://".to_owned()),
                None => Ok((None, None)),
            };
        }
        let authorities = self.masters_authorities.as_deref();
        let authorities =
            authorities.map(|file| read("--masters-authorities", file)).transpose()?;
        let own = own.map(|(certificate, key)| {
            Ok::<_, String>((read("--tls-certificate", certificate)?, read("--tls-key", key)?))
        });
        Ok((authorities, own.transpose()?))
    }

    fn address(&self, has_tls: bool) -> Result<String, String> {
        let Some(Advertised(address)) = &self.advertise else {
            let what = "--masters: the other servers cannot reach this one, expected its address as --advertise";
            return Err(what.to_owned());
        };
        let scheme = if has_tls { "https" } else { "http" };
        Ok(format!("{scheme}://{address}"))
    }
}

/// What is read for TLS to the store, in PEM: authorities, and the certificate of this server with its key.
type Files = (Option<Vec<u8>>, Option<(Vec<u8>, Vec<u8>)>);

/// A host and a port.
#[derive(Debug, Clone)]
struct Advertised(Authority);

impl FromStr for Advertised {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Kubernetes writes addresses in version 6 without brackets.
        let bare = text.rsplit_once(':').filter(|(host, _)| host.parse::<Ipv6Addr>().is_ok());
        let address = match bare {
            Some((host, port)) => format!("[{host}]:{port}").parse(),
            None => text.parse::<Authority>(),
        };
        let is_host = |address: &Authority| {
            let has_port = address.port_u16().is_some_and(|port| port != 0);
            has_port && !address.host().is_empty() && !address.as_str().contains('@')
        };
        address
            .ok()
            .filter(is_host)
            .map(Self)
            .ok_or("expected a host and a port such as 10.0.0.7:8081")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_server_is_a_host_and_a_port() {
        for (text, read) in [
            ("10.0.0.7:8081", Some("10.0.0.7:8081")),
            ("limits.internal:8081", Some("limits.internal:8081")),
            ("[fd00::1]:8081", Some("[fd00::1]:8081")),
            ("fd00::1:8081", Some("[fd00::1]:8081")),
            ("10.0.0.7", None),
            ("10.0.0.7:0", None),
            ("10.0.0.7:65536", None),
            (":8081", None),
            ("a@10.0.0.7:8081", None),
            ("http://10.0.0.7:8081", None),
            ("", None),
        ] {
            let address = text.parse::<Advertised>().ok();
            let address = address.as_ref().map(|Advertised(address)| address.as_str());
            assert_eq!(address, read, "{text}");
        }
    }
}
