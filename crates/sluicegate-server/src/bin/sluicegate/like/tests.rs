use std::ffi::OsString;

use clap::Parser as _;

use super::*;
use crate::Cli;

/// An environment with these variables.
fn set_to(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
    move |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    }
}

fn translated(variables: &[(&str, &str)]) -> Result<Translation, String> {
    Translation::new(&set_to(variables))
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
    let options: Vec<_> = options.iter().map(|(name, value)| (*name, value.as_deref())).collect();
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
            ("--envoy-counting", None),
            ("--envoy-statistics", Some("0.8")),
            ("--statsd", Some("tcp://localhost:8125")),
            ("--statsd-interval", Some("10000")),
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
        #[cfg(unix)]
        (&[("GRPC_UDS", "/run/rl.sock")], &["--grpc=off", "--grpc-socket=/run/rl.sock"]),
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
                ("GRPC_CLIENT_TLS_SAN", "edge"),
            ],
            &[
                "--tls-certificate=/c",
                "--tls-key=/k",
                "--tls-clients=/a",
                "--tls-client-name=edge",
                "--tls-grpc-only",
            ],
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
            &[
                tcp,
                ("REDIS_URL", "r:1"),
                ("REDIS_TLS", "T"),
                ("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", "true"),
            ],
            &["--redis=rediss://r:1", "--redis-any-host"],
        ),
        (
            &[
                tcp,
                ("REDIS_URL", "r:1"),
                ("REDIS_PERSECOND", "true"),
                ("REDIS_PERSECOND_SOCKET_TYPE", "tcp"),
                ("REDIS_PERSECOND_URL", "s:1"),
                ("REDIS_PERSECOND_AUTH", "p"),
            ],
            &["--redis=redis://r:1", "--redis-per-second=redis://:p@s:1"],
        ),
        (
            &[
                tcp,
                ("REDIS_URL", "r:1"),
                ("REDIS_PERSECOND", "1"),
                ("REDIS_PERSECOND_TYPE", "CLUSTER"),
                ("REDIS_PERSECOND_URL", "a:1,b:2"),
                ("REDIS_PERSECOND_TLS", "1"),
            ],
            &[
                "--redis=redis://r:1",
                "--redis-per-second=rediss://a:1,rediss://b:2",
                "--redis-per-second-cluster",
            ],
        ),
        (&[("REDIS_URL", "redis://r:1/3")], &["--redis=redis://r:1/3"]),
        (&[("REDIS_URL", "redis://:t@r:1")], &["--redis=redis://:t@r:1"]),
        (
            &[tcp, ("REDIS_URL", "redis://r:1"), ("REDIS_AUTH", "s"), ("REDIS_TLS", "true")],
            &["--redis=rediss://:s@r:1"],
        ),
        (
            &[("REDIS_URL", "rediss://a:b@r:1"), ("REDIS_AUTH", "c:d"), ("REDIS_TLS_CACERT", "/a")],
            &["--redis=rediss://c:d@r:1", "--redis-authorities=/a"],
        ),
        (&[("REDIS_URL", "valkey://:t@r:1"), ("REDIS_TLS", "true")], &["--redis=rediss://:t@r:1"]),
        (
            &[("REDIS_URL", "redis+unix:///r?db=2"), ("REDIS_AUTH", "s")],
            &["--redis=redis+unix:///r?db=2&pass=s"],
        ),
        (
            &[("REDIS_TYPE", "CLUSTER"), ("REDIS_URL", "redis://a:1,b:2"), ("REDIS_AUTH", "s")],
            &["--redis=redis://:s@a:1,redis://:s@b:2", "--redis-cluster"],
        ),
        (
            &[("REDIS_TYPE", "CLUSTER"), ("REDIS_URL", "a:1,rediss://:t@b:2")],
            &["--redis=rediss://a:1,rediss://:t@b:2", "--redis-cluster"],
        ),
        (
            &[
                ("REDIS_TYPE", "SENTINEL"),
                ("REDIS_URL", "main,redis://a:1,redis://:u@b:2"),
                ("REDIS_AUTH", "s"),
                ("REDIS_TLS", "true"),
            ],
            &["--redis=rediss://:s@main", "--redis-sentinels=rediss://a:1,rediss://:u@b:2"],
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
                ("RUNTIME_ROOT", "/data"),
                ("RUNTIME_SUBDIRECTORY", "/ratelimit"),
                ("RUNTIME_APPDIRECTORY", "/limits"),
            ],
            &["--envoy=/data/ratelimit/limits"],
        ),
        (
            &[
                ("CONFIG_TYPE", "grpc_xds_sotw"),
                ("CONFIG_GRPC_XDS_SERVER_URL", "gateway:18001"),
                ("CONFIG_GRPC_XDS_NODE_METADATA", "zone=a,env=x=y,z"),
                ("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", "a:b,c:d:e"),
                ("FORCE_START_WITHOUT_INITIAL_CONFIG", "true"),
                ("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", "250ms"),
                ("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", "1000000"),
            ],
            &[
                "--xds=http://gateway:18001",
                "--xds-node=default",
                "--xds-metadata={\"env\":\"x=y\",\"zone\":\"a\"}",
                "--xds-headers=a=b,c=d:e",
                "--xds-backoff-ms=250,60000",
                "--xds-message-size=1000000",
                "--xds-no-wait",
            ],
        ),
        (&[("SHADOW_MODE", "true")], &["--shadow"]),
        (&[("QUOTA_MODE", "1")], &["--envoy-quotas"]),
        (&[("RESPONSE_DYNAMIC_METADATA", "true")], &["--envoy-metadata"]),
        (&[("NEAR_LIMIT_RATIO", "0.5")], &["--envoy-statistics=0.5"]),
        (&[("DISABLE_STATS", "true"), ("NEAR_LIMIT_RATIO", "0.5"), ("STATSD_HOST", "x")], &[]),
        (
            &[("USE_STATSD", "t"), ("STATSD_HOST", "::1"), ("STATSD_PORT", "9125")],
            &["--statsd=tcp://[::1]:9125"],
        ),
        (&[("STATSD_PROTOCOL", "udp")], &["--statsd=udp://localhost:8125"]),
        (
            &[("USE_DOG_STATSD", "true"), ("USE_STATSD", "false"), ("EXTRA_TAGS", "a:b,c:")],
            &["--statsd=dogstatsd://localhost:8125", "--statsd-tags=a=b,c="],
        ),
        (&[("STATS_FLUSH_INTERVAL", "1m")], &["--statsd-interval=60000"]),
        (&[("USE_STATSD", "false"), ("EXTRA_TAGS", "a:b")], &[]),
        (
            &[("USE_PROMETHEUS", "true"), ("PROMETHEUS_ADDR", ":19001")],
            &["--metrics-port=0.0.0.0:19001", "--metrics-path=/metrics"],
        ),
        (
            &[("LIMIT_RESPONSE_HEADERS_ENABLED", "true"), ("LIMIT_RESET_HEADER", "X-Reset")],
            &["--fields=three", "--field-names=RateLimit-Limit,RateLimit-Remaining,X-Reset"],
        ),
        (&[("LIMIT_RESET_HEADER", "X-Reset"), ("MERGE_DOMAIN_CONFIG", "T")], &["--envoy-merge"]),
        (&[("LOG_LEVEL", "WARNING"), ("LOG_FORMAT", "JSON")], &["--log=json"]),
        (&[("LOG_LEVEL", "debug"), ("REDIS_URL", "")], &["--log-level=debug"]),
    ] {
        assert_eq!(options(variables), expected, "{variables:?}");
        let words = ["sluicegate", "serve", "--like", "envoy-ratelimit"].map(OsString::from);
        let words = completed(words.to_vec(), &set_to(variables)).expect("a command");
        let parsed = Cli::try_parse_from(words);
        assert!(parsed.is_ok(), "{variables:?}: {}", parsed.unwrap_err());
    }
    let ageless = translated(&[("GRPC_MAX_CONNECTION_AGE", "0")]);
    assert!(ageless.is_err_and(|what| what.contains("`0` is no duration")));
    let ageless = translated(&[("GRPC_MAX_CONNECTION_AGE", "0s")]).expect("no age").options;
    assert!(ageless.iter().all(|(name, _)| !name.starts_with("--connection")));
}

/// The environment that Envoy Gateway gives to the service, without its Redis.
#[test]
fn the_deployment_of_envoy_gateway_has_a_translation() {
    let options = options(&[
        ("RUNTIME_ROOT", "/data"),
        ("RUNTIME_SUBDIRECTORY", "ratelimit"),
        ("RUNTIME_IGNOREDOTFILES", "true"),
        ("RUNTIME_WATCH_ROOT", "false"),
        ("LOG_LEVEL", "info"),
        ("USE_STATSD", "false"),
        ("CONFIG_TYPE", "GRPC_XDS_SOTW"),
        ("CONFIG_GRPC_XDS_SERVER_URL", "envoy-gateway:18001"),
        ("CONFIG_GRPC_XDS_NODE_ID", "envoy-ratelimit"),
        ("GRPC_SERVER_USE_TLS", "true"),
        ("GRPC_SERVER_TLS_CERT", "/certs/tls.crt"),
        ("GRPC_SERVER_TLS_KEY", "/certs/tls.key"),
        ("GRPC_SERVER_TLS_CA_CERT", "/certs/ca.crt"),
        ("CONFIG_GRPC_XDS_SERVER_USE_TLS", "true"),
        ("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "/certs/tls.crt"),
        ("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", "/certs/tls.key"),
        ("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", "/certs/ca.crt"),
        ("FORCE_START_WITHOUT_INITIAL_CONFIG", "true"),
    ]);
    let expected = [
        "--tls-certificate=/certs/tls.crt",
        "--tls-key=/certs/tls.key",
        "--tls-grpc-only",
        "--xds=https://envoy-gateway:18001",
        "--xds-certificate=/certs/tls.crt",
        "--xds-key=/certs/tls.key",
        "--xds-authorities=/certs/ca.crt",
        "--xds-node=envoy-ratelimit",
        "--xds-no-wait",
        "--log-level=info",
    ];
    assert_eq!(options, expected);
    let named = [
        ("CONFIG_TYPE", "GRPC_XDS_SOTW"),
        ("CONFIG_GRPC_XDS_SERVER_USE_TLS", "true"),
        ("CONFIG_GRPC_XDS_SERVER_TLS_SAN", "gateway"),
    ];
    assert!(self::options(&named).contains(&"--xds-server-name=gateway".to_owned()));
}

#[test]
fn under_the_name_of_the_services_program_nothing_has_to_be_said() {
    let arguments = |words: &[&str]| {
        let words = words.iter().map(OsString::from).collect();
        completed(words, &|_| None).expect("defaults")
    };
    let said = arguments(&["/bin/ratelimit"]);
    assert_eq!(said[..3], ["/bin/ratelimit", "serve", "--like=envoy-ratelimit"]);
    assert_eq!(said[3..], arguments(&["sluicegate", "serve", "--like=envoy-ratelimit"])[3..]);
    assert_eq!(arguments(&["/bin/ratelimit/sluicegate"]), ["/bin/ratelimit/sluicegate"]);
}

#[test]
fn what_cannot_be_honoured_stops_the_start_with_a_sentence() {
    for (name, value) in [
        ("CONFIG_TYPE", "GRPC_XDS_DELTA"),
        ("BACKEND_TYPE", "memcache"),
        ("PORT", "http"),
        ("EXTRA_TAGS", "a=b"),
        ("USE_STATSD", "no"),
        ("HOST", "here"),
        ("SHADOW_MODE", "yes"),
        ("GRPC_SERVER_USE_TLS", "true"),
        ("REDIS_TIMEOUT", "10"),
    ] {
        let what = translated(&[(name, value)]).expect_err(name);
        assert!(what.starts_with(name) || what.starts_with("GRPC_SERVER_TLS_CERT"), "{what}");
    }
    let all_or_none = ("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", "true");
    let options = translated(&[all_or_none]).expect("a translation").options;
    assert!(options.iter().all(|(name, _)| *name != "--envoy-counting"));
    assert!(translated(&[all_or_none, ("QUOTA_MODE", "true")]).is_err());
    let redis = [("REDIS_URL", "main"), ("REDIS_TYPE", "SENTINEL")];
    assert!(translated(&redis).is_err_and(|what| what.starts_with("REDIS_URL")));
    let redis = [("REDIS_URL", "/r"), ("REDIS_PERSECOND", "true")];
    assert!(translated(&redis).is_err_and(|what| what.starts_with("REDIS_PERSECOND_URL")));
    let redis = [("REDIS_URL", "/r"), ("REDIS_TLS", "true")];
    assert!(translated(&redis).is_err_and(|what| what.starts_with("REDIS_TLS")));
    let redis = [("REDIS_URL", "redis+unix:///r"), ("REDIS_TLS", "true")];
    assert!(translated(&redis).is_err_and(|what| what.starts_with("REDIS_TLS")));
}

#[test]
fn what_has_no_effect_is_named_once() {
    let notices =
        |variables: &[(&str, &str)]| translated(variables).expect("a translation").notices;
    let tcp = [("REDIS_URL", "r:1"), ("REDIS_SOCKET_TYPE", "tcp"), ("DEBUG_HOST", "::1")];
    assert_eq!(notices(&tcp), Vec::<String>::new());
    assert_eq!(notices(&[]).len(), 2, "the memory, and the debug port");
    let unnamed = notices(&[&tcp[..], &[("GRPC_CLIENT_TLS_SAN", "edge")]].concat());
    assert!(unnamed.len() == 1 && unnamed[0].starts_with("GRPC_CLIENT_TLS_SAN"), "{unnamed:?}");
    for (name, value, _) in INSTEAD {
        let other = if value == "true" { "F" } else { "9" };
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
    for (kind, config) in [("SINGLE", "FILE"), ("CLUSTER", "GRPC_XDS_SOTW"), ("SENTINEL", "FILE")] {
        let all = |name: &str| {
            read.borrow_mut().push(name.to_owned());
            let known = [
                ("REDIS_TYPE", kind),
                ("CONFIG_TYPE", config),
                ("REDIS_URL", "a,b"),
                ("REDIS_SOCKET_TYPE", "tcp"),
                ("REDIS_PERSECOND_TYPE", kind),
                ("REDIS_PERSECOND_URL", "a,b"),
            ];
            let flags = [
                "REDIS_PERSECOND",
                "REDIS_TLS",
                "GRPC_SERVER_USE_TLS",
                "LIMIT_RESPONSE_HEADERS_ENABLED",
                "CONFIG_GRPC_XDS_SERVER_USE_TLS",
            ];
            let flags = flags.map(|name| (name, "true"));
            let files = ["GRPC_SERVER_TLS_CERT", "GRPC_SERVER_TLS_KEY"].map(|name| (name, "/f"));
            let set = known.iter().chain(&flags).chain(&files).find(|(known, _)| *known == name);
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
