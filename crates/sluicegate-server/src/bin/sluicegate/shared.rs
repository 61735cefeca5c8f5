//! Options of every command that serves.

use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use sluicegate_core::observe::Watch;
use sluicegate_server::admin::Token;

/// How many refused keys of each policy are noted.
const REFUSED: usize = 20;

/// How many keys of each limit are followed to show whom another limit would refuse. A share of keys is then right within 2 %.
const FOLLOWED: usize = 4_096;

#[derive(Debug, Args)]
#[command(next_help_heading = "Counting")]
pub(crate) struct StoreOptions {
    /// Counts in Redis or Valkey at this URL, such as `redis://user:secret@host:6379` or `rediss://..`, so that several
    /// servers share every limit. Otherwise each server counts in its memory.
    #[arg(long, value_name = "URL", env = "SLUICEGATE_REDIS", hide_env_values = true)]
    pub(crate) redis: Option<String>,
    /// Takes the servers at `--redis` for nodes of a cluster. A few are enough, separated by commas: the others are found
    /// through them.
    #[arg(long, requires = "redis")]
    pub(crate) redis_cluster: bool,
    /// Takes the host of `--redis` for the name of a master, which the sentinels at these URLs know, separated by commas.
    #[arg(
        long,
        value_name = "URLS",
        requires = "redis",
        conflicts_with = "redis_cluster",
        value_delimiter = ','
    )]
    #[arg(env = "SLUICEGATE_REDIS_SENTINELS", hide_env_values = true)]
    pub(crate) redis_sentinels: Vec<String>,
    /// Counts limits whose period is a second in another Redis, at this URL. It has the same names of rows, certificates and
    /// deadline.
    #[arg(long, value_name = "URL", requires = "redis", conflicts_with = "redis_lease")]
    #[arg(env = "SLUICEGATE_REDIS_PER_SECOND", hide_env_values = true)]
    pub(crate) redis_per_second: Option<String>,
    /// Like `--redis-cluster`, for `--redis-per-second`.
    #[arg(long, requires = "redis_per_second")]
    pub(crate) redis_per_second_cluster: bool,
    /// Like `--redis-sentinels`, for `--redis-per-second`.
    #[arg(
        long,
        value_name = "URLS",
        requires = "redis_per_second",
        conflicts_with = "redis_per_second_cluster",
        value_delimiter = ','
    )]
    #[arg(env = "SLUICEGATE_REDIS_PER_SECOND_SENTINELS", hide_env_values = true)]
    pub(crate) redis_per_second_sentinels: Vec<String>,
    /// Accepts a certificate of Redis that an authority has signed, even if it is for another host.
    #[arg(long, requires = "redis")]
    pub(crate) redis_any_host: bool,
    /// The authorities in this PEM file may sign the certificate of Redis, instead of those of the system.
    #[arg(long, value_name = "FILE", requires = "redis")]
    pub(crate) redis_authorities: Option<PathBuf>,
    /// The certificate in this PEM file is shown to Redis.
    #[arg(long, value_name = "FILE", requires = "redis_key")]
    pub(crate) redis_certificate: Option<PathBuf>,
    /// The private key of that certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "redis_certificate", requires = "redis")]
    pub(crate) redis_key: Option<PathBuf>,
    /// What the names of all rows in Redis begin with. Servers with the same prefix share their counts.
    #[arg(long, value_name = "PREFIX", requires = "redis", default_value = "sluicegate:")]
    pub(crate) redis_prefix: String,
    /// Leases up to this many tokens of a key from Redis at once, 1000 if no number is given, and spends them without a
    /// round trip. All servers together still admit no more than the limit. If a server is killed, the tokens that it has
    /// leased are missing until the bucket has refilled, or the window ends. Requests that are charged to several limits,
    /// and sliding windows, ask Redis each time.
    #[arg(long, value_name = "TOKENS", requires = "redis", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "1000", value_parser = clap::value_parser!(u64).range(2..=4_294_967_296))]
    pub(crate) redis_lease: Option<u64>,
    /// Names the rows in Redis by digests of the keys under this secret, of at least 16 bytes, the same for all servers. Then
    /// keys cannot be read in Redis, and no client can choose keys of one slot of a cluster.
    #[arg(
        long,
        value_name = "SECRET",
        requires = "redis",
        env = "SLUICEGATE_REDIS_KEY_SECRET",
        hide_env_values = true
    )]
    pub(crate) redis_key_secret: Option<String>,
    /// How many keys the memory has room for.
    #[arg(long, value_name = "NUMBER", default_value = "131072", conflicts_with = "redis")]
    pub(crate) keys: usize,
    /// Keeps the counts of the memory in this file, so that they survive a restart. Its folder has to exist. After a stop
    /// nothing is forgotten, and after a kill or a loss of power about the last second. Places of limits of concurrency
    /// are free after a restart. A file that cannot be read is moved to the same name with `.bad`, and the log says so. One
    /// server at a time can have the file.
    #[arg(long, value_name = "FILE", env = "SLUICEGATE_STATE", conflicts_with = "redis")]
    pub(crate) state: Option<PathBuf>,
}

/// An address, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Port(pub(crate) Option<SocketAddr>);

impl FromStr for Port {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "off" {
            return Ok(Self(None));
        }
        let address = text
            .parse()
            .map_err(|_| "expected an IP address and a port such as 127.0.0.1:8080, or `off`")?;
        Ok(Self(Some(address)))
    }
}

/// Notes the keys that are refused most, and the highest counts of keys. Digests are made with a secret of this process, so
/// that nobody can find a key by trying, not even an address.
pub(crate) fn watch(show_keys: bool) -> Result<Watch, Box<dyn Error>> {
    let watch = Watch::new(REFUSED).with_peaks(FOLLOWED);
    if show_keys {
        return Ok(watch);
    }
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    Ok(watch.redacted(&secret))
}

/// The contents of the file that an option names.
pub(crate) fn read(option: &str, file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{option}: {}: {error}", file.display()))
}

/// The token of `--admin-token`.
pub(crate) fn token(given: Option<&str>) -> Result<Option<Token>, &'static str> {
    let Some(given) = secret(given)? else { return Ok(None) };
    Token::new(given).map(Some).ok_or("--admin-token: expected at least 16 bytes")
}

/// The text of `--admin-token`, without the line break that ends the file of a secret. No client could send one.
pub(crate) fn secret(given: Option<&str>) -> Result<Option<&str>, &'static str> {
    let Some(given) = given else { return Ok(None) };
    let line = given.strip_suffix('\n').unwrap_or(given);
    let line = line.strip_suffix('\r').unwrap_or(line);
    // HTTP takes white space away around a value.
    if line.trim() != line || line.contains(char::is_control) {
        return Err(
            "--admin-token: it has a line break, a control character, or white space around it, which no client can send",
        );
    }
    Ok(Some(line))
}
