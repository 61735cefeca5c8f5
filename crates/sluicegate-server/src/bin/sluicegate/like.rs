//! `serve --like envoy-ratelimit`: options from the environment of another server.
//!
//! The variables become options of `serve`, so nothing else has to know of them. An option that is given itself wins.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use percent_encoding::{NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

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

/// The command line `arguments`, and the options for what the environment says, if there is `--like`.
///
/// # Errors
///
/// A sentence that names the variable that cannot be honoured.
pub(crate) fn completed(
    mut arguments: Vec<OsString>,
    read: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<OsString>, String> {
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
const INSTEAD: [(&str, &str, &str); 35] = [
    ("RUNTIME_WATCH_ROOT", "true", "a swapped link and a changed file are both noticed"),
    ("RUNTIME_IGNOREDOTFILES", "true", "files whose names begin with a dot are never read"),
    ("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", "true", "health begins when policies are read"),
    ("MERGE_DOMAIN_CONFIG", "false", "a domain in two files is an error"),
    ("RESPONSE_DYNAMIC_METADATA", "false", "the metadata of an answer name spent quotas alone"),
    ("NEAR_LIMIT_RATIO", "0.8", "a request is near its limit from 0.8 of it on"),
    ("LIMIT_LIMIT_HEADER", "RateLimit-Limit", "the field is `RateLimit-Limit`"),
    ("LIMIT_REMAINING_HEADER", "RateLimit-Remaining", "the field is `RateLimit-Remaining`"),
    ("LIMIT_RESET_HEADER", "RateLimit-Reset", "the field is `RateLimit-Reset`"),
    (
        "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT",
        "true",
        "what one limit refuses is charged to none",
    ),
    ("EXPIRATION_JITTER_MAX_SECONDS", "", "rows in Redis expire without jitter"),
    ("LOCAL_CACHE_SIZE_IN_BYTES", "0", "the store answers every request"),
    ("REDIS_PERSECOND", "false", "limits of a second are counted in the Redis of all others"),
    ("REDIS_PERSECOND_URL", "", "limits of a second are counted in the Redis of all others"),
    ("REDIS_POOL_SIZE", "", CONNECTION),
    ("REDIS_PIPELINE_WINDOW", "", CONNECTION),
    ("REDIS_PIPELINE_LIMIT", "", CONNECTION),
    ("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", "false", "health does not depend on Redis"),
    ("USE_STATSD", "false", METRICS),
    ("STATSD_HOST", "", METRICS),
    ("STATSD_PORT", "", METRICS),
    ("STATS_FLUSH_INTERVAL", "", METRICS),
    ("USE_DOG_STATSD", "false", METRICS),
    ("EXTRA_TAGS", "", METRICS),
    ("DISABLE_STATS", "false", METRICS),
    ("USE_PROMETHEUS", "false", METRICS),
    ("PROMETHEUS_ADDR", "", METRICS),
    ("PROMETHEUS_PATH", "/metrics", METRICS),
    ("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", "", PAUSES),
    ("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", "", PAUSES),
    ("XDS_CLIENT_BACKOFF_MAX_INTERVAL", "", PAUSES),
    ("XDS_CLIENT_BACKOFF_RANDOM_FACTOR", "", PAUSES),
    ("XDS_CLIENT_BACKOFF_JITTER", "true", PAUSES),
    ("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", "", "messages may have 64 MiB"),
    ("MEMCACHE_HOST_PORT", "", "counts are in Redis, or in the memory of this server"),
];

const CONNECTION: &str = "one connection carries all commands to a Redis";
const PAUSES: &str = "the management server is called again after 0.5 to 15 seconds";
const METRICS: &str = "counts are at `/metrics` of the debug port, for Prometheus";

/// Variables that change who is admitted or who may ask, with the one value that can be honoured, and why no other can.
const ONLY: [(&str, &str, &str); 6] = [
    ("CONFIG_GRPC_XDS_SERVER_USE_TLS", "false", "the management server is called without TLS"),
    ("BACKEND_TYPE", "redis", "counts are in Redis, or in the memory of this server"),
    ("GRPC_UDS", "", "the gRPC port is one of TCP"),
    ("GRPC_CLIENT_TLS_SAN", "", "names in the certificates of clients are not compared"),
    ("QUOTA_MODE", "false", "`quota_mode` is read from the files, at each descriptor"),
    ("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", "false", "the certificate of Redis is always checked"),
];

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
                let expected = if value.is_empty() { "no value" } else { value };
                return Err(format!("{name}: {why}, expected {expected}"));
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
        self.option("--grpc", variables.address("GRPC_HOST", "GRPC_PORT", 8081)?);
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
            }
            self.options.push(("--tls-grpc-only", None));
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
        let has_tls = variables.flag("REDIS_TLS")? || url.starts_with("rediss://");
        let scheme = if has_tls { "rediss" } else { "redis" };
        let user = credentials(&variables.text("REDIS_AUTH", ""));
        match &*variables.text("REDIS_TYPE", "SINGLE").to_ascii_uppercase() {
            "SINGLE" if url.contains("://") => self.option("--redis", url),
            "SINGLE" if variables.text("REDIS_SOCKET_TYPE", "unix") == "unix" => {
                if has_tls {
                    return Err(
                        "REDIS_TLS: a Unix socket has no TLS, expected REDIS_SOCKET_TYPE=tcp"
                            .to_owned(),
                    );
                }
                let secret = variables.text("REDIS_AUTH", "");
                let (user, password) = secret.split_once(':').unwrap_or(("", &secret));
                let mut query = String::new();
                for (name, value) in [("user", user), ("pass", password)] {
                    if !value.is_empty() {
                        let mark = if query.is_empty() { '?' } else { '&' };
                        query.push_str(&format!("{mark}{name}={}", escaped(value)));
                    }
                }
                self.option("--redis", format!("redis+unix://{url}{query}"));
            }
            "SINGLE" => self.option("--redis", format!("{scheme}://{user}{url}")),
            "CLUSTER" => {
                let nodes: Vec<_> =
                    url.split(',').map(|node| format!("{scheme}://{user}{node}")).collect();
                self.option("--redis", nodes.join(","));
                self.options.push(("--redis-cluster", None));
            }
            "SENTINEL" => {
                let (name, sentinels) = url.split_once(',').ok_or(
                    "REDIS_URL: expected the name of the master and the sentinels, such as main,host:26379",
                )?;
                let auth = credentials(&variables.text("REDIS_SENTINEL_AUTH", ""));
                let sentinels: Vec<_> =
                    sentinels.split(',').map(|host| format!("{scheme}://{auth}{host}")).collect();
                self.option("--redis", format!("{scheme}://{user}{name}"));
                self.option("--redis-sentinels", sentinels.join(","));
            }
            other => {
                return Err(format!(
                    "REDIS_TYPE: `{other}` is not known, expected SINGLE, SENTINEL or CLUSTER"
                ));
            }
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
        }
        if let Some(prefix) = variables.get("CACHE_KEY_PREFIX") {
            self.option("--redis-prefix", format!("sluicegate:{prefix}"));
        }
        Ok(())
    }

    fn management(&mut self, variables: &Variables<'_>) -> Result<(), String> {
        let server = variables.text("CONFIG_GRPC_XDS_SERVER_URL", "localhost:18000");
        self.option("--xds", format!("http://{server}"));
        self.option("--xds-node", variables.text("CONFIG_GRPC_XDS_NODE_ID", "default"));
        if let Some(metadata) = variables.get("CONFIG_GRPC_XDS_NODE_METADATA") {
            self.option("--xds-metadata", metadata);
        }
        if let Some(headers) = variables.get("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS") {
            self.option("--xds-headers", headers);
        }
        if variables.flag("FORCE_START_WITHOUT_INITIAL_CONFIG")? {
            self.options.push(("--xds-no-wait", None));
        }
        Ok(())
    }

    fn deciding(&mut self, variables: &Variables<'_>) -> Result<(), String> {
        match &*variables.text("CONFIG_TYPE", "FILE").to_ascii_uppercase() {
            "FILE" => {
                let root = variables.text("RUNTIME_ROOT", "/srv/runtime_data/current");
                let folder = Path::new(&root)
                    .join(variables.text("RUNTIME_SUBDIRECTORY", ""))
                    .join(variables.text("RUNTIME_APPDIRECTORY", "config"));
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
        if variables.flag("LIMIT_RESPONSE_HEADERS_ENABLED")? {
            self.option("--fields", "three");
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

/// The environment. A variable that is empty is not set.
struct Variables<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    fn text(&self, name: &str, default: &str) -> String {
        self.get(name).unwrap_or_else(|| default.to_owned())
    }

    /// Whether a variable is set to something else than `value`.
    fn differs(&self, name: &str, value: &str) -> bool {
        let is_boolean = matches!(value, "true" | "false");
        self.get(name).is_some_and(|given| match flag(&given) {
            Some(given) if is_boolean => given.to_string() != value,
            _ => !given.eq_ignore_ascii_case(value),
        })
    }

    fn flag(&self, name: &str) -> Result<bool, String> {
        let Some(given) = self.get(name) else { return Ok(false) };
        flag(&given).ok_or(format!("{name}: `{given}` is no boolean, expected true or false"))
    }

    fn host(&self, name: &str) -> Result<IpAddr, String> {
        let host = self.text(name, "0.0.0.0");
        if host == "localhost" {
            return Ok(Ipv4Addr::LOCALHOST.into());
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare.parse().map_err(|_| format!("{name}: `{host}` is no IP address"))
    }

    fn address(&self, host: &str, port: &str, default: u16) -> Result<String, String> {
        let number = self.text(port, &default.to_string());
        let number = number.parse::<u16>().map_err(|_| format!("{port}: `{number}` is no port"))?;
        Ok(std::net::SocketAddr::new(self.host(host)?, number).to_string())
    }

    fn duration(&self, name: &str, default: &str) -> Result<Duration, String> {
        let given = self.text(name, default);
        duration(&given).ok_or(format!(
            "{name}: `{given}` is no duration, expected one such as 10s, 1h30m or 500ms"
        ))
    }
}

/// A boolean as Go reads it.
fn flag(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// A duration as Go writes it, in whole milliseconds: numbers with units, such as `1h30m`.
fn duration(mut text: &str) -> Option<Duration> {
    let mut millis = 0.0;
    while !text.is_empty() {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|&at| at > 0)?;
        let (number, rest) = text.split_at(digits);
        let units = [("ms", 1.0), ("s", 1e3), ("m", 6e4), ("h", 36e5), ("us", 1e-3), ("ns", 1e-6)];
        let (unit, factor) = units.into_iter().find(|(unit, _)| rest.starts_with(unit))?;
        millis += number.parse::<f64>().ok()? * factor;
        text = &rest[unit.len()..];
    }
    Duration::try_from_secs_f64(millis / 1e3).ok()
}

/// What stands in a URL before the host: `password` or `user:password`.
fn credentials(auth: &str) -> String {
    match auth.split_once(':') {
        _ if auth.is_empty() => String::new(),
        None => format!(":{}@", escaped(auth)),
        Some((user, password)) => format!("{}:{}@", escaped(user), escaped(password)),
    }
}

fn escaped(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, NON_ALPHANUMERIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(variables: &[(&str, &str)]) -> Result<Translation, String> {
        let read = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Translation::new(&read)
    }

    /// The options of an environment beside those of an empty one.
    fn options(variables: &[(&str, &str)]) -> Vec<String> {
        let usual = translated(&[]).expect("defaults").options;
        let options = translated(variables).expect("a translation").options;
        let other = options.into_iter().filter(|option| !usual.contains(option));
        other
            .map(|(name, value)| value.map_or(name.to_owned(), |value| format!("{name}={value}")))
            .collect()
    }

    #[test]
    fn an_empty_environment_has_the_defaults_of_the_service() {
        let options = translated(&[]).expect("defaults").options;
        let options: Vec<_> =
            options.iter().map(|(name, value)| (*name, value.as_deref())).collect();
        assert_eq!(
            options,
            [
                ("--http", Some("0.0.0.0:8080")),
                ("--grpc", Some("0.0.0.0:8081")),
                ("--admin", Some("127.0.0.1:6070")),
                ("--connection-age", Some("86400")),
                ("--connection-grace", Some("3600")),
                ("--deadline-ms", Some("10000")),
                ("--envoy", Some("/srv/runtime_data/current/config")),
                ("--log-level", Some("warn")),
                ("--log", Some("text")),
            ]
        );
    }

    #[test]
    fn variables_become_options() {
        let tcp = ("REDIS_SOCKET_TYPE", "tcp");
        for (variables, expected) in [
            (&[("HOST", "::"), ("PORT", "80")][..], &["--http=[::]:80"][..]),
            (&[("GRPC_HOST", "localhost"), ("GRPC_PORT", "9")], &["--grpc=127.0.0.1:9"]),
            (&[("DEBUG_PORT", "7000")], &["--admin=127.0.0.1:7000"]),
            (&[("SLUICEGATE_ADMIN_TOKEN", "x")], &["--admin=0.0.0.0:6070"]),
            (&[("DEBUG_HOST", "127.0.0.2")], &["--admin=127.0.0.2:6070"]),
            (&[("GRPC_MAX_CONNECTION_AGE", "1h30m0s")], &["--connection-age=5400"]),
            (&[("GRPC_MAX_CONNECTION_AGE_GRACE", "0s")], &["--connection-grace=31536000"]),
            (
                &[
                    ("GRPC_SERVER_USE_TLS", "true"),
                    ("GRPC_SERVER_TLS_CERT", "/c"),
                    ("GRPC_SERVER_TLS_KEY", "/k"),
                    ("GRPC_CLIENT_TLS_CACERT", "/a"),
                ],
                &["--tls-certificate=/c", "--tls-key=/k", "--tls-clients=/a", "--tls-grpc-only"],
            ),
            (&[("REDIS_TIMEOUT", "250ms")], &["--deadline-ms=250"]),
            (&[("REDIS_URL", "/run/redis.sock")], &["--redis=redis+unix:///run/redis.sock"]),
            (
                &[("REDIS_URL", "/r"), ("REDIS_AUTH", "me:p&q")],
                &["--redis=redis+unix:///r?user=me&pass=p%26q"],
            ),
            (&[tcp, ("REDIS_URL", "redis:6379")], &["--redis=redis://redis:6379"]),
            (
                &[tcp, ("REDIS_URL", "r:1"), ("REDIS_AUTH", "p/@:"), ("REDIS_TLS", "1")],
                &["--redis=rediss://p%2F%40:@r:1"],
            ),
            (
                &[tcp, ("REDIS_URL", "r:1"), ("REDIS_TLS", "T"), ("REDIS_TLS_CACERT", "/a")],
                &["--redis=rediss://r:1", "--redis-authorities=/a"],
            ),
            (
                &[("REDIS_TYPE", "cluster"), ("REDIS_URL", "a:1,b:2"), ("REDIS_AUTH", "s")],
                &["--redis=redis://:s@a:1,redis://:s@b:2", "--redis-cluster"],
            ),
            (
                &[
                    ("REDIS_TYPE", "SENTINEL"),
                    ("REDIS_URL", "main,a:1,b:2"),
                    ("REDIS_AUTH", "s"),
                    ("REDIS_SENTINEL_AUTH", "t"),
                ],
                &["--redis=redis://:s@main", "--redis-sentinels=redis://:t@a:1,redis://:t@b:2"],
            ),
            (
                &[tcp, ("REDIS_URL", "r:1"), ("CACHE_KEY_PREFIX", "edge_")],
                &["--redis=redis://r:1", "--redis-prefix=sluicegate:edge_"],
            ),
            (
                &[("RUNTIME_ROOT", "/data"), ("RUNTIME_SUBDIRECTORY", "ratelimit")],
                &["--envoy=/data/ratelimit/config"],
            ),
            (
                &[
                    ("CONFIG_TYPE", "grpc_xds_sotw"),
                    ("CONFIG_GRPC_XDS_SERVER_URL", "gateway:18001"),
                    ("CONFIG_GRPC_XDS_NODE_METADATA", "{}"),
                    ("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", "a=b,c=d"),
                    ("FORCE_START_WITHOUT_INITIAL_CONFIG", "true"),
                ],
                &[
                    "--xds=http://gateway:18001",
                    "--xds-node=default",
                    "--xds-metadata={}",
                    "--xds-headers=a=b,c=d",
                    "--xds-no-wait",
                ],
            ),
            (&[("SHADOW_MODE", "true")], &["--shadow"]),
            (&[("LIMIT_RESPONSE_HEADERS_ENABLED", "true")], &["--fields=three"]),
            (&[("LOG_LEVEL", "WARNING"), ("LOG_FORMAT", "JSON")], &["--log=json"]),
            (&[("LOG_LEVEL", "debug"), ("REDIS_URL", "")], &["--log-level=debug"]),
        ] {
            assert_eq!(options(variables), expected, "{variables:?}");
        }
        let ageless = translated(&[("GRPC_MAX_CONNECTION_AGE", "0")]);
        assert!(ageless.is_err_and(|what| what.contains("`0` is no duration")));
        let ageless = translated(&[("GRPC_MAX_CONNECTION_AGE", "0s")]).expect("no age").options;
        assert!(ageless.iter().all(|(name, _)| !name.starts_with("--connection")));
    }

    #[test]
    fn what_cannot_be_honoured_stops_the_start_with_a_sentence() {
        for (name, value) in [
            ("CONFIG_TYPE", "GRPC_XDS_DELTA"),
            ("CONFIG_GRPC_XDS_SERVER_USE_TLS", "true"),
            ("BACKEND_TYPE", "memcache"),
            ("GRPC_UDS", "/run/ratelimit.sock"),
            ("GRPC_CLIENT_TLS_SAN", "spiffe://edge"),
            ("QUOTA_MODE", "1"),
            ("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", "true"),
            ("PORT", "http"),
            ("HOST", "here"),
            ("SHADOW_MODE", "yes"),
            ("GRPC_SERVER_USE_TLS", "true"),
            ("REDIS_TIMEOUT", "10"),
        ] {
            let what = translated(&[(name, value)]).expect_err(name);
            assert!(what.starts_with(name) || what.starts_with("GRPC_SERVER_TLS_CERT"), "{what}");
        }
        let redis = [("REDIS_URL", "main"), ("REDIS_TYPE", "SENTINEL")];
        assert!(translated(&redis).is_err_and(|what| what.starts_with("REDIS_URL")));
        let redis = [("REDIS_URL", "/r"), ("REDIS_TLS", "true")];
        assert!(translated(&redis).is_err_and(|what| what.starts_with("REDIS_TLS")));
    }

    #[test]
    fn what_has_no_effect_is_named_once() {
        let notices =
            |variables: &[(&str, &str)]| translated(variables).expect("a translation").notices;
        let tcp = [("REDIS_URL", "r:1"), ("REDIS_SOCKET_TYPE", "tcp"), ("DEBUG_HOST", "::1")];
        assert_eq!(notices(&tcp), Vec::<String>::new());
        assert_eq!(notices(&[]).len(), 2, "the memory, and the debug port");
        for (name, value, _) in INSTEAD {
            let other = if value == "true" { "F" } else { "1" };
            let told = notices(&[&tcp[..], &[(name, other)]].concat());
            assert!(told.len() == 1 && told[0].starts_with(name), "{told:?}");
            assert_eq!(notices(&[&tcp[..], &[(name, value)]].concat()), Vec::<String>::new());
        }
    }

    #[test]
    fn the_guide_names_every_variable_that_is_read() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/for-any-language.md");
        let page = std::fs::read_to_string(page).expect("the guide");
        let read = std::cell::RefCell::new(Vec::new());
        for (kind, config) in
            [("SINGLE", "FILE"), ("CLUSTER", "GRPC_XDS_SOTW"), ("SENTINEL", "FILE")]
        {
            let all = |name: &str| {
                read.borrow_mut().push(name.to_owned());
                let known = [
                    ("REDIS_TYPE", kind),
                    ("CONFIG_TYPE", config),
                    ("REDIS_URL", "a,b"),
                    ("REDIS_SOCKET_TYPE", "tcp"),
                ];
                let flags = ["REDIS_TLS", "GRPC_SERVER_USE_TLS"].map(|name| (name, "true"));
                let files =
                    ["GRPC_SERVER_TLS_CERT", "GRPC_SERVER_TLS_KEY"].map(|name| (name, "/f"));
                let set =
                    known.iter().chain(&flags).chain(&files).find(|(known, _)| *known == name);
                set.map(|(_, value)| (*value).to_owned())
            };
            Translation::new(&all).expect("a translation");
        }
        let read = read.into_inner();
        assert!(read.len() > 100);
        for name in read {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn an_option_that_is_given_wins() {
        let complete = |arguments: &[&str]| {
            let read = |name: &str| match name {
                "REDIS_URL" => Some("/run/redis.sock".to_owned()),
                _ => None,
            };
            let arguments = ["sluicegate"].iter().chain(arguments).map(OsString::from).collect();
            let completed = completed(arguments, &read).expect("a command line");
            completed
                .into_iter()
                .map(|argument| argument.into_string().expect("text"))
                .collect::<Vec<_>>()
        };
        let like = ["serve", "--like", "envoy-ratelimit"];
        let all = complete(&like);
        assert!(all.contains(&"--grpc=0.0.0.0:8081".to_owned()));
        assert!(all.contains(&"--redis=redis+unix:///run/redis.sock".to_owned()));
        let own = complete(&[&like[..], &["--grpc", "off", "--keys=9"]].concat());
        assert!(!own.iter().any(|argument| argument.starts_with("--grpc=")));
        assert!(!own.iter().any(|argument| argument.starts_with("--redis")));
        assert_eq!(complete(&["serve", "--rules", "x"]).len(), 4);
        assert_eq!(complete(&["check", "--like", "envoy-ratelimit"]).len(), 4);
    }
}
