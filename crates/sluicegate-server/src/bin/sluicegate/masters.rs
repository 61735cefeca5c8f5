//! Several servers, of which one divides the capacity.

use std::error::Error;
use std::net::Ipv6Addr;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use http::uri::Authority;
use sluicegate_lease::etcd::Etcd;
use sluicegate_redis::Redis;
use sluicegate_server::ServiceBuilder;
use sluicegate_server::capacity::LONGEST_LEASE;

#[derive(Debug, Args)]
#[command(next_help_heading = "Several servers")]
pub(crate) struct Masters {
    /// Elects the server that divides the capacity among those that have the same `--capacity`, in Redis or Valkey at this
    /// URL, such as `redis://user:secret@host:6379` or `rediss://..`, or in etcd, such as `etcd://host:2379,other:2379`. The
    /// others pass calls and streams on to it, so clients may call any server. A server that is killed is replaced within 3
    /// seconds. Servers with another file need a database of their own.
    #[arg(
        long,
        value_name = "URL",
        env = "SLUICEGATE_MASTERS",
        hide_env_values = true,
        conflicts_with = "nothing_leased"
    )]
    masters: Option<String>,
    /// The address at which the other servers reach the gRPC port of this one, such as `10.0.0.7:8081`. Where that has TLS, its
    /// certificate has to be for this host, and by an authority of the system or of `--tls-clients`, and clients have to accept
    /// it as one of a client.
    #[arg(long, value_name = "ADDRESS", env = "SLUICEGATE_ADVERTISE", requires = "masters")]
    advertise: Option<Advertised>,
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
        has_tls: bool,
    ) -> Result<ServiceBuilder, Box<dyn Error>> {
        let Some(url) = &self.masters else { return Ok(service) };
        if !has_capacity {
            return Err("--masters: there is nothing to divide, expected --capacity".into());
        }
        let address = self.address(has_tls)?;
        let wrong = |error: &dyn Error| format!("--masters: {error}");
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        Ok(match scheme {
            "redis" | "rediss" => {
                let redis = Redis::builder().url(url).client_name("sluicegate").build();
                let redis = redis.map_err(|error| wrong(&error))?;
                let stands = redis.mastership(NAME, &address).lease(MASTERSHIP);
                let stands = stands.longest_lease(LONGEST_LEASE).stand();
                service.mastership(stands.map_err(|error| wrong(&error))?)
            }
            "etcd" => {
                let members = rest.split(',').map(|member| format!("http://{member}"));
                let etcd = Etcd::new(members).map_err(|error| wrong(&error))?;
                let stands = etcd.mastership(NAME, &address).lease(MASTERSHIP);
                let stands = stands.longest_lease(LONGEST_LEASE).stand();
                service.mastership(stands.map_err(|error| wrong(&error))?)
            }
            // Not shown: without a scheme, it may begin with a password.
            _ => {
                return Err("--masters: the URL has another scheme, expected redis://, rediss:// or etcd://".into());
            }
        })
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
