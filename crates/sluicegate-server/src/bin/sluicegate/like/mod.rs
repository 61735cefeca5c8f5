//! `serve --like envoy-ratelimit`: options from the environment of another server.
//!
//! The variables become options of `serve`, so nothing else has to know of them. An option that is given itself wins.

mod redis_url;
mod variables;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;

use self::variables::Variables;

/// Whose environment is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Like {
    /// Envoy's rate limit service: <https://github.com/envoyproxy/ratelimit>.
    EnvoyRatelimit,
}

/// A variable of this process.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The program of Envoy's rate limit service, which manifests name. Under this name, the command is in its place.
const PROGRAM: &str = "ratelimit";

/// The command line `arguments`, and the options for what the environment says, if there is `--like`.
///
/// # Errors
///
/// A sentence that names the variable that cannot be honoured.
pub(crate) fn completed(
    mut arguments: Vec<OsString>,
    read: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<OsString>, String> {
    if arguments
        .first()
        .is_some_and(|program| Path::new(program).file_name() == Some(OsStr::new(PROGRAM)))
    {
        arguments.splice(1..1, ["serve".into(), "--like=envoy-ratelimit".into()]);
    }
    let has = |name: &str| {
        let is_named = |argument: &OsString| {
            let argument = argument.to_string_lossy();
            argument.split('=').next() == Some(name)
        };
        arguments.iter().any(is_named)
    };
    if arguments.get(1).map(OsString::as_os_str) != Some(OsStr::new("serve")) || !has("--like") {
        return Ok(arguments);
    }
    let Translation { options, .. } = Translation::new(read)?;
    // Of several ways to say where counts are, the operator has chosen one.
    let counts = ["--redis", "--keys", "--state"].into_iter().any(has);
    let is_given = |name: &str| has(name) || counts && name.starts_with("--redis");
    let options: Vec<_> = options.into_iter().filter(|(name, _)| !is_given(name)).collect();
    for (name, value) in options {
        arguments.push(match value {
            Some(value) => format!("{name}={value}").into(),
            None => name.into(),
        });
    }
    Ok(arguments)
}

/// What to tell the operator about the environment: variables that are set, and what happens instead of what they ask for.
pub(crate) fn notices(read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    Translation::new(read).map_or_else(|_| Vec::new(), |translation| translation.notices)
}

/// Variables without a meaning here, with the value that asks for what happens anyway, and what that is.
const INSTEAD: [(&str, &str, &str); 41] = [
    ("RUNTIME_WATCH_ROOT", "true", "a swapped link and a changed file are both noticed"),
    ("RUNTIME_IGNOREDOTFILES", "true", "files whose names begin with a dot are never read"),
    ("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", "true", "health begins when policies are read"),
    ("EXPIRATION_JITTER_MAX_SECONDS", "", "rows in Redis expire without jitter"),
    ("LOCAL_CACHE_SIZE_IN_BYTES", "0", "the store answers every request"),
    ("REDIS_PERSECOND_TIMEOUT", "", "both Redis have the time of REDIS_TIMEOUT"),
    ("REDIS_PERSECOND_POOL_SIZE", "", CONNECTION),
    ("REDIS_PERSECOND_PIPELINE_WINDOW", "", CONNECTION),
    ("REDIS_PERSECOND_PIPELINE_LIMIT", "", CONNECTION),
    ("REDIS_CLUSTER_PIPELINE_PARALLELISM", "1", CONNECTION),
    ("REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM", "1", CONNECTION),
    ("REDIS_POOL_ON_EMPTY_BEHAVIOR", "WAIT", CONNECTION),
    ("REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR", "WAIT", CONNECTION),
    ("REDIS_STARTUP_INITIAL_INTERVAL", "", STARTS),
    ("REDIS_STARTUP_MAX_INTERVAL", "", STARTS),
    ("REDIS_STARTUP_MAX_ELAPSED_TIME", "0", STARTS),
    ("TRACING_ENABLED", "false", NO_TRACES),
    ("TRACING_EXPORTER_PROTOCOL", "", NO_TRACES),
    ("TRACING_SERVICE_NAME", "", NO_TRACES),
    ("TRACING_SERVICE_NAMESPACE", "", NO_TRACES),
    ("TRACING_SERVICE_INSTANCE_ID", "", NO_TRACES),
    ("TRACING_SAMPLING_RATE", "", NO_TRACES),
    ("REDIS_POOL_SIZE", "", CONNECTION),
    ("REDIS_PIPELINE_WINDOW", "", CONNECTION),
    ("REDIS_PIPELINE_LIMIT", "", CONNECTION),
    ("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", "false", "health does not depend on Redis"),
    ("USE_DOG_STATSD_MOGRIFIERS", "", "statistics have the names of StatsD"),
    ("PROMETHEUS_MAPPER_YAML", "", "the names are those of the default mapping"),
    ("PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS", "false", "times are in seconds"),
    (
        "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL",
        "",
        "the pauses of XDS_CLIENT_BACKOFF_.. are for connections too",
    ),
    ("XDS_CLIENT_BACKOFF_RANDOM_FACTOR", "0.5", JITTER),
    ("XDS_CLIENT_BACKOFF_JITTER", "true", JITTER),
    ("MEMCACHE_HOST_PORT", "", COUNTS),
    ("MEMCACHE_SRV", "", COUNTS),
    ("MEMCACHE_SRV_REFRESH", "", COUNTS),
    ("MEMCACHE_MAX_IDLE_CONNS", "", COUNTS),
    ("MEMCACHE_TLS", "false", COUNTS),
    ("MEMCACHE_TLS_CACERT", "", COUNTS),
    ("MEMCACHE_TLS_CLIENT_CERT", "", COUNTS),
    ("MEMCACHE_TLS_CLIENT_KEY", "", COUNTS),
    ("MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION", "false", COUNTS),
];

const CONNECTION: &str = "one connection carries all commands to a Redis";
const STARTS: &str = "the server also starts while Redis is away, and calls it again";
const NO_TRACES: &str = "there are no traces";
const JITTER: &str = "up to half of a pause is left out at random";
const COUNTS: &str = "counts are in Redis, or in the memory of this server";

/// Variables that change who is admitted or who may ask, with the one value that can be honoured, and why no other can.
const ONLY: [(&str, &str, &str); 1] = [("BACKEND_TYPE", "redis", COUNTS)];

/// The options of a Redis, of a cluster, and of sentinels.
const OPTIONS: [&str; 3] = ["--redis", "--redis-cluster", "--redis-sentinels"];

/// The same for limits of a second.
const OPTIONS_PER_SECOND: [&str; 3] =
    ["--redis-per-second", "--redis-per-second-cluster", "--redis-per-second-sentinels"];

/// The environment as options.
#[derive(Debug, Default)]
struct Translation {
    options: Vec<(&'static str, Option<String>)>,
    notices: Vec<String>,
}

impl Translation {
    fn new(read: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let variables = Variables(read);
        for (name, value, why) in ONLY {
            if variables.differs(name, value) {
                return Err(format!("{name}: {why}, expected {value}"));
            }
        }
        let mut translation = Self::default();
        translation.ports(&variables)?;
        translation.counting(&variables)?;
        translation.deciding(&variables)?;
        for (name, value, instead) in INSTEAD {
            if variables.differs(name, value) {
                translation.notices.push(format!("{name} has no effect: {instead}"));
            }
        }
        Ok(translation)
    }

    fn option(&mut self, name: &'static str, value: impl Into<String>) {
        self.options.push((name, Some(value.into())));
    }

    fn ports(&mut self, variables: &Variables<'_>) -> Result<(), String> {
        self.option("--http", variables.address("HOST", "PORT", 8080)?);
        match variables.get("GRPC_UDS") {
            Some(_) if !cfg!(unix) => {
                return Err("GRPC_UDS: this system has no Unix sockets".to_owned());
            }
            Some(file) => {
                self.option("--grpc", "off");
                self.option("--grpc-socket", file);
            }
            None => self.option("--grpc", variables.address("GRPC_HOST", "GRPC_PORT", 8081)?),
        }
        let debug = variables.address("DEBUG_HOST", "DEBUG_PORT", 6070)?;
        let is_guarded = variables.get("SLUICEGATE_ADMIN_TOKEN").is_some();
        let is_local = variables.host("DEBUG_HOST")?.is_loopback();
        if is_guarded || is_local {
            self.option("--admin", debug);
        } else {
            let (_, port) = debug.rsplit_once(':').unwrap_or_default();
            self.option("--admin", format!("127.0.0.1:{port}"));
            self.notices.push(
                "DEBUG_HOST: the debug port is open to this host alone, because SLUICEGATE_ADMIN_TOKEN is not set"
                    .to_owned(),
            );
        }
        // gRPC takes an age of 0 for none.
        let age = variables.duration("GRPC_MAX_CONNECTION_AGE", "24h")?.as_secs();
        if (1..=LONGEST).contains(&age) {
            let grace = variables.duration("GRPC_MAX_CONNECTION_AGE_GRACE", "1h")?.as_secs();
            let grace = if grace == 0 { LONGEST } else { grace.min(LONGEST) };
            self.option("--connection-age", age.to_string());
            self.option("--connection-grace", grace.to_string());
        }
        let mut client_name = variables.get("GRPC_CLIENT_TLS_SAN");
        if variables.flag("GRPC_SERVER_USE_TLS")? {
            for (name, option) in [
                ("GRPC_SERVER_TLS_CERT", "--tls-certificate"),
                ("GRPC_SERVER_TLS_KEY", "--tls-key"),
            ] {
                let file = variables.get(name);
                self.option(option, file.ok_or(format!("{name}: expected a file in PEM"))?);
            }
            if let Some(file) = variables.get("GRPC_CLIENT_TLS_CACERT") {
                self.option("--tls-clients", file);
                if let Some(name) = client_name.take() {
                    self.option("--tls-client-name", name);
                }
            }
            self.options.push(("--tls-grpc-only", None));
        }
        if client_name.is_some() {
            // As in that service.
            let what = "clients have no certificates without GRPC_CLIENT_TLS_CACERT and TLS";
            self.notices.push(format!("GRPC_CLIENT_TLS_SAN has no effect: {what}"));
        }
        Ok(())
    }

    fn counting(&mut self, variables: &Variables<'_>) -> Result<(), String> {
        let timeout = variables.duration("REDIS_TIMEOUT", "10s")?.as_millis();
        self.option("--deadline-ms", timeout.clamp(1, 60_000).to_string());
        let Some(url) = variables.get("REDIS_URL") else {
            if variables.get("SLUICEGATE_REDIS").is_none() {
                let what = "REDIS_URL is not set: this server counts in its memory";
                self.notices.push(what.to_owned());
            }
            return Ok(());
        };
        let mut has_tls = self.redis(variables, url, "REDIS", OPTIONS)?;
        if variables.flag("REDIS_PERSECOND")? {
            let url = variables.get("REDIS_PERSECOND_URL");
            let url = url.ok_or("REDIS_PERSECOND_URL: expected a Redis for REDIS_PERSECOND")?;
            has_tls |= self.redis(variables, url, "REDIS_PERSECOND", OPTIONS_PER_SECOND)?;
        }
        if has_tls {
            for (name, option) in [
                ("REDIS_TLS_CACERT", "--redis-authorities"),
                ("REDIS_TLS_CLIENT_CERT", "--redis-certificate"),
                ("REDIS_TLS_CLIENT_KEY", "--redis-key"),
            ] {
                if let Some(file) = variables.get(name) {
                    self.option(option, file);
                }
            }
            if variables.flag("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION")? {
                self.options.push(("--redis-any-host", None));
            }
        }
        if let Some(prefix) = variables.get("CACHE_KEY_PREFIX") {
            self.option("--redis-prefix", format!("sluicegate:{prefix}"));
        }
        Ok(())
    }

    /// A Redis at `url`, by variables that begin with this name, in these options. Returns whether it has TLS.
    fn redis(
        &mut self,
        variables: &Variables<'_>,
        url: String,
        name: &str,
        [option, cluster, sentinels_option]: [&'static str; 3],
    ) -> Result<bool, String> {
        let named = |rest: &str| format!("{name}_{rest}");
        let has_tls = variables.flag(&named("TLS"))? || url.split(',').any(redis_url::asks_for_tls);
        let secret = variables.text(&named("AUTH"), "");
        let user = redis_url::credentials(&secret);
        let is_socket = variables.text(&named("SOCKET_TYPE"), "unix") == "unix";
        match &*variables.text(&named("TYPE"), "SINGLE").to_ascii_uppercase() {
            "SINGLE" if redis_url::is_of_socket(&url) || is_socket && !url.contains("://") => {
                if has_tls {
                    let what = "a Unix socket has no TLS, expected";
                    return Err(format!("{name}_TLS: {what} {name}_SOCKET_TYPE=tcp"));
                }
                self.option(option, redis_url::of_socket(&url, &secret));
            }
            "SINGLE" => self.option(option, redis_url::of_server(&url, &user, has_tls)),
            "CLUSTER" => {
                let nodes: Vec<_> =
                    url.split(',').map(|node| redis_url::of_server(node, &user, has_tls)).collect();
                self.option(option, nodes.join(","));
                self.options.push((cluster, None));
            }
            "SENTINEL" => {
                let (master, sentinels) = url.split_once(',').ok_or(format!(
                    "{name}_URL: expected the name of the master and the sentinels, such as main,host:26379"
                ))?;
                let auth = redis_url::credentials(&variables.text(&named("SENTINEL_AUTH"), ""));
                let sentinels: Vec<_> = sentinels
                    .split(',')
                    .map(|host| redis_url::of_server(host, &auth, has_tls))
                    .collect();
                self.option(option, redis_url::of_server(master, &user, has_tls));
                self.option(sentinels_option, sentinels.join(","));
            }
            other => {
                let what = "is not known, expected SINGLE, SENTINEL or CLUSTER";
                return Err(format!("{name}_TYPE: `{other}` {what}"));
            }
        }
        Ok(has_tls)
    }

    fn management(&mut self, variables: &Variables<'_>) -> Result<(), String> {
        let server = variables.text("CONFIG_GRPC_XDS_SERVER_URL", "localhost:18000");
        let has_tls = variables.flag("CONFIG_GRPC_XDS_SERVER_USE_TLS")?;
        self.option("--xds", format!("http{}://{server}", if has_tls { "s" } else { "" }));
        if has_tls {
            for (name, option) in [
                ("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "--xds-certificate"),
                ("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", "--xds-key"),
                ("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", "--xds-authorities"),
                ("CONFIG_GRPC_XDS_SERVER_TLS_SAN", "--xds-server-name"),
            ] {
                if let Some(value) = variables.get(name) {
                    self.option(option, value);
                }
            }
        }
        self.option("--xds-node", variables.text("CONFIG_GRPC_XDS_NODE_ID", "default"));
        if let Some(metadata) = variables.get("CONFIG_GRPC_XDS_NODE_METADATA") {
            self.option("--xds-metadata", object(&metadata));
        }
        if let Some(headers) = variables.pairs("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS")? {
            self.option("--xds-headers", headers);
        }
        let pauses = [
            ("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", "10s"),
            ("XDS_CLIENT_BACKOFF_MAX_INTERVAL", "60s"),
        ];
        if pauses.iter().any(|(name, _)| variables.get(name).is_some()) {
            let [first, longest] = pauses.map(|(name, default)| variables.duration(name, default));
            let millis = |time: Duration| time.as_millis().clamp(1, 3_600_000);
            self.option("--xds-backoff-ms", format!("{},{}", millis(first?), millis(longest?)));
        }
        if let Some(bytes) = variables.get("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES") {
            self.option("--xds-message-size", bytes);
        }
        if variables.flag("FORCE_START_WITHOUT_INITIAL_CONFIG")? {
            self.options.push(("--xds-no-wait", None));
        }
        Ok(())
    }

    fn statistics(&mut self, variables: &Variables<'_>) -> Result<(), String> {
        self.option("--envoy-statistics", variables.text("NEAR_LIMIT_RATIO", "0.8"));
        let is_asked = !variables.flag("USE_PROMETHEUS")?;
        if !is_asked {
            let address = variables.text("PROMETHEUS_ADDR", ":9090");
            // Go takes an address without a host for all of this machine.
            let host = if address.starts_with(':') { "0.0.0.0" } else { "" };
            self.option("--metrics-port", format!("{host}{address}"));
            self.option("--metrics-path", variables.text("PROMETHEUS_PATH", "/metrics"));
        }
        let protocol = match variables.flag("USE_DOG_STATSD")? {
            true => "dogstatsd".to_owned(),
            false
                if is_asked
                    && (variables.get("USE_STATSD").is_none()
                        || variables.flag("USE_STATSD")?) =>
            {
                variables.text("STATSD_PROTOCOL", "tcp")
            }
            false => return Ok(()),
        };
        let host = variables.text("STATSD_HOST", "localhost");
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let port = variables.text("STATSD_PORT", "8125");
        self.option("--statsd", format!("{protocol}://{host}:{port}"));
        if let Some(tags) = variables.pairs("EXTRA_TAGS")? {
            self.option("--statsd-tags", tags);
        }
        let interval = variables.duration("STATS_FLUSH_INTERVAL", "10s")?.as_millis();
        self.option("--statsd-interval", interval.clamp(1, 3_600_000).to_string());
        Ok(())
    }

    fn deciding(&mut self, variables: &Variables<'_>) -> Result<(), String> {
        match &*variables.text("CONFIG_TYPE", "FILE").to_ascii_uppercase() {
            "FILE" => {
                let root = variables.text("RUNTIME_ROOT", "/srv/runtime_data/current");
                let folder = Path::new(&root)
                    .join(inside(&variables.text("RUNTIME_SUBDIRECTORY", "")))
                    .join(inside(&variables.text("RUNTIME_APPDIRECTORY", "config")));
                self.option("--envoy", folder.to_string_lossy());
                if variables.flag("FORCE_START_WITHOUT_INITIAL_CONFIG")? {
                    self.notices.push(
                        "FORCE_START_WITHOUT_INITIAL_CONFIG has no effect: the server starts with valid files"
                            .to_owned(),
                    );
                }
            }
            "GRPC_XDS_SOTW" => self.management(variables)?,
            other => {
                let what = "is not known, expected FILE or GRPC_XDS_SOTW";
                return Err(format!("CONFIG_TYPE: `{other}` {what}"));
            }
        }
        if variables.flag("SHADOW_MODE")? {
            self.options.push(("--shadow", None));
        }
        if variables.flag("MERGE_DOMAIN_CONFIG")? {
            self.options.push(("--envoy-merge", None));
        }
        if variables.flag("RESPONSE_DYNAMIC_METADATA")? {
            self.options.push(("--envoy-metadata", None));
        }
        let is_apart = !variables.flag("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT")?;
        let is_quota = variables.flag("QUOTA_MODE")?;
        match (is_apart, is_quota) {
            (false, true) => {
                let what = "expected no QUOTA_MODE, in which each descriptor is counted by itself";
                return Err(format!("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: {what}"));
            }
            (false, false) => {}
            (true, is_quota) => {
                self.options.push(("--envoy-counting", None));
                self.options.extend(is_quota.then_some(("--envoy-quotas", None)));
            }
        }
        if !variables.flag("DISABLE_STATS")? {
            self.statistics(variables)?;
        }
        if variables.flag("LIMIT_RESPONSE_HEADERS_ENABLED")? {
            self.option("--fields", "three");
            let names = [
                ("LIMIT_LIMIT_HEADER", "RateLimit-Limit"),
                ("LIMIT_REMAINING_HEADER", "RateLimit-Remaining"),
                ("LIMIT_RESET_HEADER", "RateLimit-Reset"),
            ];
            let names = names.map(|(name, usual)| variables.text(name, usual));
            self.option("--field-names", names.join(","));
        }
        if variables.get("SLUICEGATE_LOG").is_none() {
            let level = variables.text("LOG_LEVEL", "warn").to_ascii_lowercase();
            self.option(
                "--log-level",
                match &*level {
                    "warning" => "warn",
                    "panic" | "fatal" => "error",
                    level => level,
                },
            );
        }
        self.option("--log", variables.text("LOG_FORMAT", "text").to_ascii_lowercase());
        Ok(())
    }
}

/// The longest age of a connection, in seconds: a year.
const LONGEST: u64 = 31_536_000;

/// `name=value,..` as a JSON object of texts. The service passes over what is no such pair.
fn object(pairs: &str) -> String {
    let pairs = pairs.split(',').filter_map(|pair| pair.split_once('='));
    let fields: serde_json::Map<_, _> =
        pairs.map(|(name, value)| (name.to_owned(), value.into())).collect();
    serde_json::Value::Object(fields).to_string()
}

/// A folder inside another one: a `/` at the beginning means nothing, as in the service.
fn inside(folder: &str) -> &str {
    folder.trim_start_matches('/')
}

#[cfg(test)]
mod tests;
