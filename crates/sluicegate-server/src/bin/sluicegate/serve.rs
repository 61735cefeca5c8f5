//! `sluicegate serve`

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use sluicegate_config::proxy::UpstreamTls;
use sluicegate_core::key::Proxies;
use sluicegate_core::store::OnStoreError;
use sluicegate_server::admin::metrics::Metrics;
use sluicegate_server::{Fields, Server, ServerError, Service, StatsD, Tls, Xds};
use tracing::{info, warn};

use crate::like::{self, Like};
use crate::masters::Masters;
use crate::policies::PolicyFiles;
use crate::running::{Running, Signals};
use crate::shared::{Port, StoreOptions};
use crate::store::Counting;
use crate::{running, shared};

/// Serves until the process is asked to stop.
pub(crate) fn run(options: Serve) -> Result<(), Box<dyn Error>> {
    let running = options.running.clone();
    running::block_on(&running, serve(options))
}

async fn serve(options: Serve) -> Result<(), Box<dyn Error>> {
    let Serve { like, files, xds, statistics, ports, masters, store, deciding, running } = options;
    if like.is_some() {
        like::notices(&like::environment).iter().for_each(|notice| warn!("{notice}"));
    }
    let metrics = Metrics::install()?;
    let policies = files.read(deciding.envoy_merge)?;
    let is_watched = !running.no_watch;
    let _policies = is_watched.then(|| policies.watch()).transpose()?;
    let no_wait = xds.xds_no_wait;
    let xds = xds.server()?;
    let statsd = statistics.statsd()?;

    let deadline = Duration::from_millis(deciding.deadline_ms);
    let service = Service::builder(policies)
        .deadline(deadline)
        .on_store_error(deciding.on_store_error)
        .fields(deciding.fields)
        .proxies(deciding.proxies)
        .shadow(deciding.shadow)
        .watch(&shared::watch(deciding.show_keys)?)
        .allow_resets(deciding.allow_resets)
        .nothing_leased(deciding.nothing_leased)
        .overrides(!deciding.no_overrides)
        .apart(deciding.envoy_counting)
        .quota(deciding.envoy_quotas)
        .metadata(deciding.envoy_metadata);
    let service = match &*deciding.field_names {
        [limit, remaining, reset] => service.field_names(limit, remaining, reset),
        [] => service,
        _ => return Err("--field-names: expected three names, separated by commas".into()),
    };
    let service = match statistics.envoy_statistics {
        Some(near_limit_ratio) => service.statistics(near_limit_ratio),
        None => service,
    };
    let store = Counting::new(&store, deadline)?;
    let own = ports.tls_certificate.as_deref().zip(ports.tls_key.as_deref());
    let service = masters.among(service, files.capacity.is_some(), own)?;
    let service = store.under(service).build()?;
    // It may take long until the ports are open. By default, the first process of a container ignores signals, and SIGHUP ends any
    // other process.
    let mut signals = Signals::new()?;
    // The store has said by now which limits it can keep.
    let mut following = xds.map(|xds| service.policies().follow(xds));
    if let Some(following) = following.as_mut().filter(|_| !no_wait) {
        info!("waiting for the policies of xDS");
        tokio::select! {
            () = following.first() => {}
            () = signals.stopped() => {
                info!("stopped");
                return Ok(());
            }
        }
    }

    let mut server = Server::new(service)
        .metrics(&metrics)
        .connections(ports.connections)
        .idle_timeout(Duration::from_secs(ports.idle_timeout))
        .drain_delay(Duration::from_secs(running.drain_delay))
        .drain(Duration::from_secs(running.drain));
    if let Some(statsd) = statsd {
        server = server.statsd(statsd);
    }
    if let Some(age) = ports.connection_age {
        let grace = Duration::from_secs(ports.connection_grace);
        server = server.connection_age(Duration::from_secs(age), grace);
    }
    #[cfg(unix)]
    let socket = ports.grpc_socket.clone();
    let bound = with_ports(server, ports, masters.advertise_name.as_deref())?.bind().await?;
    let reload = bound.reload();
    let _certificate = is_watched.then(|| reload.watch()).transpose()?;
    #[cfg(unix)]
    if let Some(socket) = socket {
        info!(port = "gRPC socket", file = %socket.display(), "serving");
    }
    let addresses = bound.addresses();
    let ports = [
        ("gRPC", addresses.grpc),
        ("HTTP", addresses.http),
        ("admin", addresses.admin),
        ("metrics", addresses.metrics),
    ];
    let run = async |stop| bound.run(stop).await;
    running::serve(signals, &ports, move || reload.now(), run, store).await
}

/// `name` is that in the certificates of other servers.
fn with_ports(
    mut server: Server,
    ports: Ports,
    name: Option<&str>,
) -> Result<Server, Box<dyn Error>> {
    for (port, open) in [
        (ports.grpc, Server::grpc as fn(Server, _) -> Server),
        (ports.http, Server::http),
        (ports.admin, Server::admin),
    ] {
        server = match port.0 {
            Some(address) => open(server, address),
            None => server,
        };
    }
    #[cfg(unix)]
    if let Some(path) = ports.grpc_socket {
        server = server.grpc_socket(path);
    }
    if let Some(address) = ports.metrics_port.0 {
        server = server.metrics_port(address, &ports.metrics_path);
    }
    if let Some(token) = shared::token(ports.admin_token.as_deref())? {
        server = server.token(token);
    }
    if let (Some(certificate), Some(key)) = (ports.tls_certificate, ports.tls_key) {
        let mut tls = Tls::new(certificate, key);
        if let Some(name) = name {
            tls = tls.name_of_others(name);
        }
        if ports.tls_grpc_only {
            tls = tls.grpc_only();
        }
        if let Some(name) = &ports.tls_client_name {
            tls = tls.client_name(name);
        }
        server = server.tls(match ports.tls_clients {
            Some(authorities) => tls.clients(authorities),
            None => tls,
        });
    }
    Ok(server)
}

/// Answers Envoy, other proxies and HTTP clients by policies in files.
///
/// By default, it listens on port 8081 for Envoy (gRPC), on port 8080 for other proxies and HTTP clients, and on port 6070
/// of this host for Prometheus and the dashboard.
#[derive(Debug, Args)]
#[command(after_long_help = SIGNALS)]
pub(crate) struct Serve {
    /// Takes options that are not given from the environment variables of this server, with its defaults, so that one line
    /// of a deployment has to change.
    #[arg(long, value_name = "SERVER")]
    pub(super) like: Option<Like>,
    #[command(flatten)]
    pub(super) files: PolicyFiles,
    #[command(flatten)]
    pub(super) xds: XdsOptions,
    #[command(flatten)]
    pub(super) statistics: StatisticsOptions,
    #[command(flatten)]
    pub(super) ports: Ports,
    #[command(flatten)]
    pub(super) masters: Masters,
    #[command(flatten)]
    pub(super) store: StoreOptions,
    #[command(flatten)]
    pub(super) deciding: Deciding,
    #[command(flatten)]
    pub(super) running: Running,
}

const SIGNALS: &str = "\
SIGTERM and SIGINT stop the server after it has answered every request that has arrived. A second signal ends it at once. \
On SIGHUP it reads its policies and its certificate again. A file that is not valid changes nothing, and the log says why.";

#[derive(Debug, Args)]
#[command(next_help_heading = "Policies from a management server")]
pub(super) struct XdsOptions {
    /// Takes files of Envoy's rate limit service from the management server at this URL, such as `http://gateway:18000`, by
    /// the aggregated discovery service of xDS. With `https`, its certificate is checked. The ports are opened once they have come. What is in force stays in force
    /// while the server is away, or sends what is not valid.
    #[arg(long, value_name = "URL", group = "PolicyFiles")]
    pub(super) xds: Option<String>,
    /// Opens the ports before the first policies have come. Nothing of them is limited until then.
    #[arg(long, requires = "xds")]
    pub(super) xds_no_wait: bool,
    /// The name of this server in its requests.
    #[arg(long, value_name = "ID", requires = "xds", default_value = "default")]
    pub(super) xds_node: String,
    /// The metadata of this server in its requests, a JSON object.
    #[arg(long, value_name = "JSON", requires = "xds")]
    pub(super) xds_metadata: Option<String>,
    /// Headers to send along, such as `x-tenant=blue,x-zone=a`.
    #[arg(long, value_name = "HEADERS", requires = "xds", value_delimiter = ',')]
    #[arg(env = "SLUICEGATE_XDS_HEADERS", hide_env_values = true)]
    pub(super) xds_headers: Vec<String>,
    /// A PEM file with the authorities that vouch for the certificate of the management server, instead of those of the
    /// system. This and the next two are read for each connection.
    #[arg(long, value_name = "FILE", requires = "xds")]
    pub(super) xds_authorities: Option<PathBuf>,
    /// A PEM file with the certificate that this server shows to the management server.
    #[arg(long, value_name = "FILE", requires_all = ["xds", "xds_key"])]
    pub(super) xds_certificate: Option<PathBuf>,
    /// A PEM file with the private key of that certificate.
    #[arg(long, value_name = "FILE", requires = "xds_certificate")]
    pub(super) xds_key: Option<PathBuf>,
    /// The name that the certificate of the management server has to have, instead of the host of the URL.
    #[arg(long, value_name = "NAME", requires = "xds")]
    pub(super) xds_server_name: Option<String>,
    /// How many milliseconds to wait before the management server is called again: at first, and at most.
    #[arg(long, value_name = "MS,MS", requires = "xds", value_delimiter = ',')]
    #[arg(default_value = "500,15000", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub(super) xds_backoff_ms: Vec<u64>,
    /// How many bytes a message of the management server may have.
    #[arg(long, value_name = "BYTES", requires = "xds", default_value = "67108864")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) xds_message_size: u32,
}

impl XdsOptions {
    fn server(&self) -> Result<Option<Xds>, Box<dyn Error>> {
        let Some(url) = &self.xds else { return Ok(None) };
        let mut xds = Xds::new(url, &self.xds_node)?;
        if let Some(metadata) = &self.xds_metadata {
            xds = xds.metadata(metadata)?;
        }
        for header in &self.xds_headers {
            let (name, value) = header.split_once('=').unwrap_or((header, ""));
            xds = xds.header(name.trim(), value.trim())?;
        }
        let mut tls = UpstreamTls::default();
        tls.authorities.clone_from(&self.xds_authorities);
        tls.identity = self.xds_certificate.clone().zip(self.xds_key.clone());
        tls.server_name.clone_from(&self.xds_server_name);
        if tls != UpstreamTls::default() {
            xds = xds.tls(tls)?;
        }
        let [first, longest] = *self.xds_backoff_ms else {
            let what = "--xds-backoff-ms: expected two numbers, such as 500,15000";
            return Err(what.into());
        };
        let xds = xds.backoff(Duration::from_millis(first), Duration::from_millis(longest));
        Ok(Some(xds.max_message(self.xds_message_size as usize)))
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Statistics of Envoy's rate limit service")]
pub(super) struct StatisticsOptions {
    /// Also counts under the names of Envoy's rate limit service, for its dashboards and alarms. A descriptor is near its limit
    /// once more than this share of it is spent, such as 0.8.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(super) envoy_statistics: Option<f32>,
    /// Sends these statistics to StatsD: `tcp://host:8125`, `udp://host:8125`, or `dogstatsd://host:8125` for one with tags.
    #[arg(long, value_name = "URL", requires = "envoy_statistics")]
    pub(super) statsd: Option<String>,
    /// Tags to send along, such as `env=blue,zone=a`.
    #[arg(long, value_name = "TAGS", requires = "statsd", value_delimiter = ',')]
    pub(super) statsd_tags: Vec<String>,
    /// How often to send them, in milliseconds.
    #[arg(long, value_name = "MS", requires = "statsd", default_value = "10000")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub(super) statsd_interval: u64,
}

impl StatisticsOptions {
    fn statsd(&self) -> Result<Option<StatsD>, ServerError> {
        let Some(url) = &self.statsd else { return Ok(None) };
        let mut statsd = StatsD::new(url)?.interval(Duration::from_millis(self.statsd_interval));
        for tag in &self.statsd_tags {
            let (name, value) = tag.split_once('=').unwrap_or((tag, ""));
            statsd = statsd.tag(name, value)?;
        }
        Ok(Some(statsd))
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Ports")]
pub(super) struct Ports {
    /// The address of the gRPC port, or `off`.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8081")]
    pub(super) grpc: Port,
    /// Serves gRPC at a Unix socket in this file too. The file is removed when the server ends.
    #[cfg(unix)]
    #[arg(long, value_name = "FILE")]
    pub(super) grpc_socket: Option<PathBuf>,
    /// The address of the port for the HTTP API, proxies and health checks, or `off`.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    pub(super) http: Port,
    /// The address of the port for the dashboard, metrics and the policies in force, or `off`. An address that other hosts
    /// can reach needs a token.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6070")]
    pub(super) admin: Port,
    /// The address of a port for metrics alone, without a token, or `off`. Prometheus can read them at the admin port too.
    #[arg(long, value_name = "ADDRESS", default_value = "off")]
    pub(super) metrics_port: Port,
    /// The path of metrics on that port.
    #[arg(long, value_name = "PATH", default_value = "/metrics")]
    pub(super) metrics_path: String,
    /// The token of the admin port, at least 16 bytes. Clients send it as `Authorization: Bearer ..`, and the dashboard asks
    /// for it.
    #[arg(long, value_name = "TOKEN", env = "SLUICEGATE_ADMIN_TOKEN", hide_env_values = true)]
    pub(super) admin_token: Option<String>,
    /// Uses TLS on the gRPC and the HTTP port, with the certificate in this PEM file. The file is read again when it
    /// changes.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(super) tls_certificate: Option<PathBuf>,
    /// The private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(super) tls_key: Option<PathBuf>,
    /// Accepts only clients whose certificate is signed by an authority in this PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(super) tls_clients: Option<PathBuf>,
    /// Accepts only those of these clients whose certificate has this name, such as `envoy.example`.
    #[arg(long, value_name = "NAME", requires = "tls_clients")]
    pub(super) tls_client_name: Option<String>,
    /// Leaves the HTTP port without TLS.
    #[arg(long, requires = "tls_certificate")]
    pub(super) tls_grpc_only: bool,
    /// The most connections on each port. Further connections wait.
    #[arg(long, value_name = "NUMBER", default_value = "10000")]
    pub(super) connections: usize,
    /// How long a connection stays open without a request, in seconds. Choose more than the idle timeout of the load balancers
    /// and proxies in front of it. On the gRPC port, a connection in HTTP/2 stays open while its client answers pings.
    #[arg(long, value_name = "SECONDS", default_value = "75", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) idle_timeout: u64,
    /// How old a connection on the gRPC port becomes, in seconds, up to a tenth more or less. Then its client connects anew, so that
    /// servers that were added get calls. Without it, connections become as old as their clients like. Envoys on the quota
    /// service should then send their name as `x-sluicegate-client`, to get back what they had on the old connection.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub(super) connection_age: Option<u64>,
    /// How long calls and streams on such a connection may take to end, in seconds, before they are cut off.
    #[arg(long, value_name = "SECONDS", default_value = "30", requires = "connection_age", value_parser = clap::value_parser!(u64).range(0..=31_536_000))]
    pub(super) connection_grace: u64,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Deciding")]
pub(super) struct Deciding {
    /// How long a decision may take, in milliseconds. Envoy waits 20 by default.
    #[arg(long, value_name = "MS", default_value = "15", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub(super) deadline_ms: u64,
    /// What to answer when the store cannot decide in time.
    #[arg(long, value_name = "ANSWER", default_value = "error", value_parser = answers())]
    pub(super) on_store_error: OnStoreError,
    /// Which header fields to ask Envoy to add to responses.
    #[arg(long, value_name = "FIELDS", default_value = "none", value_parser = field_sets())]
    pub(super) fields: Fields,
    /// The names of the three fields of `--fields three`: of the limit, of what is left, and of when it begins anew.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) field_names: Vec<String>,
    /// The proxies that may ask about requests of their clients, and are believed: addresses and networks, separated by
    /// commas.
    #[arg(long, value_name = "NETWORKS", default_value = "127.0.0.0/8,::1")]
    pub(super) proxies: Proxies,
    /// Counts everything and refuses nothing.
    #[arg(long)]
    pub(super) shadow: bool,
    /// Opens `/v1/reset`, with which every client of the HTTP API can clear the count of any key.
    #[arg(long)]
    pub(super) allow_resets: bool,
    /// Counts descriptors of Envoy as Envoy's rate limit service does, each by itself: a request that one limit refuses is charged
    /// by all others too, and hits beyond a limit are counted. Without it, what one limit refuses is charged by none.
    #[arg(long, conflicts_with = "redis_lease")]
    pub(super) envoy_counting: bool,
    /// Takes every limit of Envoy's files for a quota, and refuses a request only if all of its descriptors are over.
    #[arg(long, requires = "envoy_counting")]
    pub(super) envoy_quotas: bool,
    /// Repeats the domain, the descriptors and the hits of each call of Envoy in the metadata of the answer, which other filters
    /// may read. Answers in JSON have none.
    #[arg(long)]
    pub(super) envoy_metadata: bool,
    /// Lets several files of Envoy's service have one domain, which has the descriptors of all then.
    #[arg(long)]
    pub(super) envoy_merge: bool,
    /// Ignores the `limit` in descriptors of Envoy, which otherwise replaces that of the file.
    #[arg(long)]
    pub(super) no_overrides: bool,
    /// Leases the shared capacity at once. Use it only if no server has leased it before, or all leases have ended. Without
    /// it, the server first learns for the length of a lease what each client holds.
    #[arg(long, requires = "capacity")]
    pub(super) nothing_leased: bool,
    /// Shows the most refused keys on the admin port as they are, instead of digests of them. Keys that are too long to be
    /// kept stay digests, which begin with `#`.
    #[arg(long)]
    pub(super) show_keys: bool,
}

/// Reads a part of a whole.
fn share(text: &str) -> Result<f32, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// Reads the name of an answer. It is never `OVER_LIMIT`.
fn answers() -> impl TypedValueParser<Value = OnStoreError> {
    let error = "An error. Envoy then lets requests pass, unless its `failure_mode_deny` is set";
    PossibleValuesParser::new([
        PossibleValue::new("error").help(error),
        PossibleValue::new("allow").help("`OK`, without a count"),
    ])
    .map(|name| if name == "allow" { OnStoreError::Admit } else { OnStoreError::Refuse })
}

/// Reads the name of a set of header fields.
fn field_sets() -> impl TypedValueParser<Value = Fields> {
    let draft = "`RateLimit`, `RateLimit-Policy` and `Retry-After`, as in the IETF draft";
    let three = "`RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`, as Envoy's rate limit service writes them";
    PossibleValuesParser::new([
        PossibleValue::new("none").help("None"),
        PossibleValue::new("draft").help(draft),
        PossibleValue::new("three").help(three),
    ])
    .map(|name| match name.as_str() {
        "draft" => Fields::Draft,
        "three" => Fields::Three,
        _ => Fields::Nothing,
    })
}
