use http::HeaderName;

use super::*;

fn read(status: u16, fields: &[(&str, &str)]) -> Signal {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, value.parse().unwrap());
    }
    // 2025-01-01, an hour behind the dates below.
    Signal::read(
        StatusCode::from_u16(status).unwrap(),
        &headers,
        Duration::from_secs(1_735_689_600),
    )
}

fn retry_after(fields: &[(&str, &str)]) -> Option<u64> {
    read(429, fields).retry_after.map(|time| time.as_secs())
}

#[test]
fn retry_after_is_seconds_or_a_date_relative_to_the_date_of_the_response() {
    assert_eq!(retry_after(&[("retry-after", "120")]), Some(120));
    let date = ("date", "Wed, 01 Jan 2025 01:00:00 GMT");
    let later = ("retry-after", "Wed, 01 Jan 2025 01:02:00 GMT");
    assert_eq!(retry_after(&[date, later]), Some(120));
    // Without a date, by the clock of this machine.
    assert_eq!(retry_after(&[later]), Some(3_720));
    let earlier = ("retry-after", "Mon, 01 Jan 2024 01:02:00 GMT");
    assert_eq!(retry_after(&[date, earlier]), Some(0));
}

#[test]
fn a_malformed_retry_after_is_ignored() {
    for text in
        ["", "-1", "+5", "1.5.0", ".5", "soon", "0x10", "Wed, 32 Jan 2025 01:02:00 GMT", "10 10"]
    {
        assert_eq!(retry_after(&[("retry-after", text)]), None, "{text}");
    }
    assert_eq!(retry_after(&[("retry-after", &"9".repeat(99))]), Some(u64::MAX));
}

/// Shopify writes `2.0`.
#[test]
fn a_part_of_a_second_is_waited_for() {
    for (name, text, micros) in [
        ("retry-after", "2.0", 2_000_000),
        ("retry-after", "1.5", 1_500_000),
        ("retry-after", "0.5, 2.5", 2_500_000),
        ("retry-after-ms", "812.5", 812_500),
        ("retry-after-ms", "812", 812_000),
    ] {
        let signal = read(503, &[(name, text)]);
        assert!(signal.refused, "{text}");
        assert_eq!(signal.retry_after, Some(Duration::from_micros(micros)), "{text}");
    }
}

#[test]
fn of_several_times_to_come_back_the_latest_holds() {
    let lines = |texts: &[&'static str]| {
        let mut headers = HeaderMap::new();
        headers.insert("date", "Wed, 01 Jan 2025 01:00:00 GMT".parse().unwrap());
        for text in texts {
            headers.append("retry-after", text.parse().unwrap());
        }
        let signal = Signal::read(StatusCode::TOO_MANY_REQUESTS, &headers, Duration::ZERO);
        signal.retry_after.map(|time| time.as_secs())
    };
    let in_two_minutes = "Wed, 01 Jan 2025 01:02:00 GMT";
    assert_eq!(lines(&["1", "2"]), Some(2));
    assert_eq!(lines(&["2", "1", "0"]), Some(2));
    assert_eq!(lines(&["5", in_two_minutes]), Some(120));
    assert_eq!(lines(&["300", in_two_minutes]), Some(300));
    // Lines that cannot be read say nothing.
    assert_eq!(lines(&["7", "-9", "soon", ""]), Some(7));
    assert_eq!(lines(&["-9", "soon"]), None);
    assert_eq!(lines(&["3", &"9".repeat(99).leak()[..]]), Some(u64::MAX));
    // A proxy has joined them.
    assert_eq!(lines(&["5, 10"]), Some(10));
    assert_eq!(lines(&["5, Wed, 01 Jan 2025 01:02:00 GMT, 9"]), Some(120));
    assert_eq!(lines(&["5, soon"]), Some(5));
    assert_eq!(lines(&[",,", ","]), None);
}

#[test]
fn a_403_is_a_refusal_if_it_says_when_to_come_back_or_nothing_is_left() {
    assert!(!read(403, &[]).refused);
    assert!(read(403, &[("retry-after", "60")]).refused);
    let left = |left| {
        let fields = [("x-ratelimit-remaining", left), ("x-ratelimit-reset", "60")];
        read(403, &fields)
    };
    assert!(!left("7").refused);
    assert!(left("0").refused);
    assert_eq!(left("0").wait(), Some(Duration::from_secs(60)));
}

#[test]
fn retry_after_on_a_response_that_was_served_is_not_for_the_next_request() {
    assert_eq!(read(202, &[("retry-after", "120")]), Signal::default());
    assert_eq!(read(301, &[("retry-after", "120")]), Signal::default());
    assert!(read(503, &[("retry-after", "120")]).refused);
    assert!(!read(503, &[]).refused);
}

#[test]
fn retry_after_in_milliseconds_comes_first() {
    let both = [("retry-after", "2"), ("retry-after-ms", "1250")];
    assert_eq!(read(429, &both).retry_after, Some(Duration::from_millis(1_250)));
    let garbled = [("retry-after", "2"), ("retry-after-ms", "soon")];
    assert_eq!(read(429, &garbled).retry_after, Some(Duration::from_secs(2)));
}

#[test]
fn the_fields_of_anthropic_name_points_in_time() {
    let signal = read(
        200,
        &[
            ("date", "Wed, 01 Jan 2025 01:00:00 GMT"),
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2025-01-01T01:00:02Z"),
            ("anthropic-ratelimit-output-tokens-limit", "8000"),
            ("anthropic-ratelimit-output-tokens-remaining", "0"),
            ("anthropic-ratelimit-output-tokens-reset", "2025-01-01T01:01:00Z"),
            ("anthropic-ratelimit-unified-5h-reset", "1765944000"),
        ],
    );
    let [requests, output] = signal.quotas[..] else { panic!("{signal:?}") };
    assert_eq!((requests.remaining, requests.reset), (49, Some(Duration::from_secs(2))));
    assert_eq!((output.remaining, output.reset), (0, Some(Duration::from_secs(60))));
    assert_eq!(output.limit, Some(8_000));
    assert!(requests.counts_requests && !output.counts_requests);
}

/// What a layer of this project writes, in a `dialect` and nothing else.
async fn written(dialect: sluicegate_llm::Dialect) -> Signal {
    use sluicegate::{Fields, Global, Limit, ManualClock, Memory, RateLimitLayer};
    use tower::{Layer, ServiceExt};
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(1_735_689_600));
    let rule = (
        Limit::per_minute(60).named("requests").by(Global),
        Limit::per_minute(6_000).named("tokens").by(Global).cost(1_500),
    );
    let layer = RateLimitLayer::new(rule)
        .store(Memory::builder().clock(&clock).build())
        .fields(Fields::NONE)
        .dialect(dialect);
    let service = layer.layer(tower::service_fn(async |_: http::Request<()>| {
        Ok::<_, std::convert::Infallible>(http::Response::new(String::new()))
    }));
    let response = service.oneshot(http::Request::new(())).await.unwrap();
    let since_epoch = Duration::from_micros(sluicegate::clock::Clock::from(&clock).now());
    Signal::read(response.status(), response.headers(), since_epoch)
}

#[tokio::test]
async fn what_the_layers_write_in_a_dialect_is_understood() {
    use sluicegate_llm::Dialect;
    for dialect in [Dialect::openai(), Dialect::anthropic()] {
        let signal = written(dialect.requests("requests").tokens("tokens")).await;
        let [requests, tokens] = signal.quotas[..] else { panic!("{signal:?}") };
        assert_eq!((requests.limit, requests.remaining), (Some(60), 59));
        assert_eq!(requests.reset, Some(Duration::from_secs(1)));
        assert_eq!((tokens.limit, tokens.remaining), (Some(6_000), 4_500));
        assert_eq!(tokens.reset, Some(Duration::from_secs(15)));
        assert!(requests.counts_requests && !tokens.counts_requests);
    }
}

#[test]
fn several_quotas_are_read_with_their_policies() {
    let signal = read(
        200,
        &[
            (
                "ratelimit-policy",
                r#""burst";q=100;w=60, "daily";q=1000;w=86400;qu="content-bytes""#,
            ),
            ("ratelimit", r#""burst";r=50;t=30;x=?1"#),
            ("ratelimit", r#""daily";r=7"#),
        ],
    );
    let [burst, daily] = signal.quotas[..] else { panic!("{signal:?}") };
    assert_eq!((burst.limit, burst.remaining), (Some(100), 50));
    assert_eq!(burst.window, Some(Duration::from_secs(60)));
    assert_eq!(burst.reset, Some(Duration::from_secs(30)));
    assert!(burst.counts_requests && !daily.counts_requests);
    assert_eq!((daily.limit, daily.remaining, daily.reset), (Some(1000), 7, None));
}

#[test]
fn partition_keys_tell_quotas_of_one_policy_apart() {
    let signal = read(
        200,
        &[
            ("ratelimit-policy", r#""a";q=10;w=1;pk=:YWxpY2U=:, "a";q=20;w=1;pk=:Ym9i:"#),
            ("ratelimit", r#""a";pk=:Ym9i:;r=5;t=1"#),
        ],
    );
    assert_eq!(signal.quotas[0].limit, Some(20));
}

#[test]
fn places_are_no_quota() {
    let fields = [
        ("ratelimit-policy", r#""open";q=10;qu="concurrent-requests""#),
        ("ratelimit", r#""open";r=0"#),
    ];
    assert!(read(200, &fields).quotas.is_empty());
}

#[test]
fn a_malformed_field_is_ignored_whole() {
    for text in [
        "default;r=0;t=5",
        r#""a";r=-1"#,
        r#""a";r=0.5"#,
        r#""a";r="1""#,
        r#""a";r=1;t=x"#,
        r#""a";r=1,"#,
        r#""a";r=1 "b""#,
        r#"("a");r=1"#,
        r#""a";r=9999999999999999"#,
        r#""a";r=0;t=1, b"#,
        "\"a;r=0",
        "42",
        "",
    ] {
        assert!(read(200, &[("ratelimit", text)]).quotas.is_empty(), "{text}");
    }
    // The policy alone is malformed: what remains is still told.
    let fields = [("ratelimit-policy", "q=1"), ("ratelimit", r#""a";r=3;t=1"#)];
    assert_eq!(read(200, &fields).quotas[0].limit, None);
}

#[test]
fn a_field_with_thousands_of_items_is_read_as_far_as_its_bound() {
    let text = vec![r#""a";r=1"#; 5_000].join(",");
    assert_eq!(read(200, &[("ratelimit", &text)]).quotas.len(), MAX_QUOTAS);
}

#[test]
fn fields_of_a_cached_response_are_ignored() {
    let refusal = [("retry-after", "9"), ("ratelimit", r#""a";r=0;t=9"#), ("age", "3")];
    // Until then, the cache answers the same request with the same response.
    let rest = Some(Duration::from_secs(6));
    assert_eq!(read(429, &refusal), Signal { retry_after: rest, ..Signal::default() });
    assert_eq!(read(200, &refusal), Signal::default());
    assert!(read(429, &[("retry-after", "9"), ("age", "0")]).refused);
    assert!(read(429, &[("retry-after", "9"), ("age", "old")]).refused);
}

#[test]
fn the_dialects_of_large_services_are_read() {
    let github = read(
        403,
        &[
            ("x-ratelimit-limit", "60"),
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "1735689660"),
        ],
    );
    assert_eq!(github.quotas[0].reset, Some(Duration::from_secs(60)));
    let openai = read(
        200,
        &[
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-requests", "1s"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ],
    );
    let [requests, tokens] = openai.quotas[..] else { panic!("{openai:?}") };
    assert_eq!((requests.remaining, requests.reset), (59, Some(Duration::from_secs(1))));
    assert_eq!((tokens.remaining, tokens.reset), (149_984, Some(Duration::from_secs(360))));
    assert!(requests.counts_requests && !tokens.counts_requests);
    let older = read(200, &[("x-rate-limit-remaining", "3"), ("x-rate-limit-limit", "9, 9;w=60")]);
    assert_eq!((older.quotas[0].remaining, older.quotas[0].limit), (3, Some(9)));
    for text in ["-3", "3.5", "many", ""] {
        assert!(read(200, &[("x-ratelimit-remaining", text)]).quotas.is_empty(), "{text}");
    }
}

#[test]
fn the_dictionary_of_the_seventh_draft_is_understood() {
    let policy = ("ratelimit-policy", "100;w=60");
    let signal = read(429, &[("ratelimit", "limit=100, remaining=0, reset=30"), policy]);
    let [quota] = signal.quotas[..] else { panic!("{signal:?}") };
    assert_eq!((quota.limit, quota.remaining), (Some(100), 0));
    assert_eq!(
        (quota.reset, signal.wait()),
        (Some(Duration::from_secs(30)), Some(Duration::from_secs(30)))
    );
    assert!(quota.counts_requests);
    for text in [
        "limit=100, reset=30",
        "remaining=-1",
        "remaining=1.5",
        "remaining=\"1\"",
        "remaining=(1)",
        "remaining=1,",
    ] {
        assert!(read(200, &[("ratelimit", text), policy]).quotas.is_empty(), "{text}");
    }
}

#[test]
fn the_draft_is_preferred_to_older_fields() {
    let fields = [("ratelimit", r#""a";r=3;t=1"#), ("x-ratelimit-remaining", "0")];
    assert_eq!(read(200, &fields).quotas.len(), 1);
}

#[test]
fn pushback_of_grpc_is_a_wait_or_a_no() {
    let pushback = |text| read(200, &[("grpc-status", "14"), ("grpc-retry-pushback-ms", text)]);
    assert_eq!(pushback("250").retry_after, Some(Duration::from_millis(250)));
    assert!(pushback("250").refused && !pushback("250").never_retry);
    for text in ["-1", "soon", ""] {
        assert!(pushback(text).never_retry, "{text}");
        assert_eq!(pushback(text).retry_after, None, "{text}");
    }
    // The field is there, but it says nothing that can be read.
    let twice = [("grpc-status", "14"), ("grpc-retry-pushback-ms", "1, 2")];
    assert!(read(200, &twice).never_retry);
    // Programs may retry other statuses, too.
    let aborted = |text| read(200, &[("grpc-status", "10"), ("grpc-retry-pushback-ms", text)]);
    assert!(aborted("-1").never_retry && !aborted("-1").refused);
    assert_eq!(aborted("9").retry_after, Some(Duration::from_millis(9)));
    assert!(!aborted("9").refused);
    assert!(read(200, &[("grpc-status", "8")]).refused);
    assert!(!read(200, &[("grpc-status", "14")]).refused);
    assert!(!read(200, &[("grpc-status", "0"), ("grpc-retry-pushback-ms", "9")]).refused);
}

#[test]
#[cfg(feature = "grpc")]
fn retry_info_of_grpc_is_read() {
    // google.rpc.Status { code: 8, details: [RetryInfo { retry_delay: 2.5 s }] }
    let mut info = vec![0x0a, 0x06, 0x08, 0x02, 0x10];
    prost::encoding::encode_varint(500_000_000, &mut info);
    info[1] = (info.len() - 2) as u8;
    let url = b"type.googleapis.com/google.rpc.RetryInfo";
    let mut any = vec![0x0a, url.len() as u8];
    any.extend(url);
    any.extend([0x12, info.len() as u8]);
    any.extend(&info);
    let mut status = vec![0x08, 0x08, 0x1a, any.len() as u8];
    status.extend(&any);
    use base64::Engine;
    for text in [
        base64::engine::general_purpose::STANDARD.encode(&status),
        base64::engine::general_purpose::STANDARD_NO_PAD.encode(&status),
    ] {
        let signal = read(200, &[("grpc-status", "8"), ("grpc-status-details-bin", &text)]);
        assert_eq!(signal.retry_after, Some(Duration::from_millis(2_500)), "{text}");
    }
    for text in ["", "!!!", "AAAA"] {
        let signal = read(200, &[("grpc-status", "8"), ("grpc-status-details-bin", text)]);
        assert_eq!(signal.retry_after, None, "{text}");
    }
}

#[test]
fn a_pushback_that_is_there_twice_is_a_no() {
    let mut headers = HeaderMap::new();
    headers.insert("grpc-status", "14".parse().unwrap());
    for text in ["1", "2"] {
        headers.append("grpc-retry-pushback-ms", text.parse().unwrap());
    }
    let signal = Signal::read(StatusCode::OK, &headers, Duration::ZERO);
    assert!(signal.never_retry && signal.retry_after.is_none());
}
