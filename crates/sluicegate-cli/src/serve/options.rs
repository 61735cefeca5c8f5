use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use sluicegate_core::key::Proxies;
use sluicegate_core::store::OnStoreError;
use sluicegate_server::Fields;

use crate::log;
use crate::policies::PolicyFiles;

/// Answers Envoy and HTTP clients by policies in files. Stops on SIGTERM and SIGINT once every request is answered,
/// and reads its files again on SIGHUP and when they change.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(super) files: PolicyFiles,
    #[command(flatten)]
    pub(super) ports: Ports,
    #[command(flatten)]
    pub(super) store: StoreOptions,
    #[command(flatten)]
    pub(super) deciding: Deciding,
    #[command(flatten)]
    pub(super) running: Running,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Ports")]
pub(super) struct Ports {
    /// Where to serve gRPC, or `off`.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8081")]
    pub(super) grpc: Port,
    /// Where to serve the HTTP API and health, or `off`.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    pub(super) http: Port,
    /// Where to serve metrics and the policies in force, or `off`. Other addresses than those of this host need a token.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6070")]
    pub(super) admin: Port,
    /// The token that clients of the admin port present as `Authorization: Bearer ..`, at least 16 bytes.
    #[arg(long, value_name = "TOKEN", env = "SLUICEGATE_ADMIN_TOKEN", hide_env_values = true)]
    pub(super) admin_token: Option<String>,
    /// Speaks TLS on the gRPC and the HTTP port, with this certificate: a PEM file, which is read again on SIGHUP.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(super) tls_certificate: Option<PathBuf>,
    /// The private key of the certificate, a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(super) tls_key: Option<PathBuf>,
    /// Accepts only clients with a certificate by one of the authorities in this PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(super) tls_clients: Option<PathBuf>,
    /// The most connections on each port. Others wait to be accepted.
    #[arg(long, value_name = "NUMBER", default_value = "10000")]
    pub(super) connections: usize,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Counting")]
pub(super) struct StoreOptions {
    /// Counts in Redis or Valkey at this URL, such as `redis://user:secret@host:6379` or `rediss://..`, so that several
    /// servers share every limit. Otherwise each server counts in its memory.
    #[arg(long, value_name = "URL", env = "SLUICEGATE_REDIS", hide_env_values = true)]
    pub(super) redis: Option<String>,
    /// How many keys the memory has room for.
    #[arg(long, value_name = "NUMBER", default_value = "131072", conflicts_with = "redis")]
    pub(super) keys: usize,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Deciding")]
pub(super) struct Deciding {
    /// How long a decision may take, in milliseconds. Envoy waits 20 by default.
    #[arg(long, value_name = "MS", default_value = "15", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub(super) deadline_ms: u64,
    /// What to answer when the store cannot decide in time.
    #[arg(long, value_name = "ANSWER", default_value = "error")]
    pub(super) on_store_error: StoreError,
    /// Which header fields to ask Envoy to add to responses.
    #[arg(long, value_name = "FIELDS", default_value = "none")]
    pub(super) fields: FieldSet,
    /// The proxies that are believed when they ask about requests of their clients: addresses and networks with commas.
    #[arg(long, value_name = "NETWORKS", default_value = "127.0.0.0/8,::1")]
    pub(super) proxies: Proxies,
    /// Counts everything and refuses nothing.
    #[arg(long)]
    pub(super) shadow: bool,
    /// Lets every client of the HTTP API forget what was spent on any key, by `/v1/reset`.
    #[arg(long)]
    pub(super) allow_resets: bool,
    /// Ignores limits that requests of Envoy bring along.
    #[arg(long)]
    pub(super) no_overrides: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Running")]
pub(super) struct Running {
    /// Reads files again on SIGHUP only, and not when they change.
    #[arg(long)]
    pub(super) no_watch: bool,
    /// How long to go on as before after SIGTERM, in seconds, while health says that the server is not ready.
    #[arg(long, value_name = "SECONDS", default_value = "0")]
    pub(super) drain_delay: u64,
    /// How long requests may take to be answered after that, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "30")]
    pub(super) drain: u64,
    /// How log lines are written.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(super) log: log::Format,
    /// Which log lines are written: a level, or levels of modules, such as `info,sluicegate_redis=debug`.
    #[arg(long, value_name = "FILTER", env = "SLUICEGATE_LOG", default_value = "info")]
    pub(super) log_level: String,
}

/// An address, or none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Port(pub(super) Option<SocketAddr>);

impl FromStr for Port {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "off" {
            return Ok(Self(None));
        }
        let address =
            text.parse().map_err(|_| "expected an address such as 127.0.0.1:8080, or `off`")?;
        Ok(Self(Some(address)))
    }
}

/// What to answer when the store cannot decide. It is never `OVER_LIMIT`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum StoreError {
    /// An error. Envoy then lets requests pass, unless its `failure_mode_deny` is set.
    Error,
    /// `OK`, without a count.
    Allow,
}

impl From<StoreError> for OnStoreError {
    fn from(answer: StoreError) -> Self {
        match answer {
            StoreError::Error => Self::Refuse,
            StoreError::Allow => Self::Admit,
        }
    }
}

/// Header fields for Envoy to add.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum FieldSet {
    /// None.
    None,
    /// `RateLimit`, `RateLimit-Policy` and `Retry-After`, as in the IETF draft.
    Draft,
    /// `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`, as Envoy's rate limit service writes them.
    Three,
}

impl From<FieldSet> for Fields {
    fn from(fields: FieldSet) -> Self {
        match fields {
            FieldSet::None => Self::Nothing,
            FieldSet::Draft => Self::Draft,
            FieldSet::Three => Self::Three,
        }
    }
}
