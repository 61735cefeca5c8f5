//! What each format says, and what no log can do to the reader.

use std::io::{Read, Write as _};

use clap::Parser;
use proptest::prelude::*;

use super::*;

#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    log: LogFiles,
}

fn open(options: &[&str], texts: &[&[u8]]) -> (tempfile::TempDir, Result<Records, String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut words = vec!["sluicegate".to_owned()];
    words.extend(options.iter().map(|word| (*word).to_owned()));
    for (number, text) in texts.iter().enumerate() {
        let path = folder.path().join(format!("{number}.log"));
        std::fs::write(&path, text).expect("a file");
        words.push(path.to_str().expect("a path").to_owned());
    }
    let records = Options::parse_from(words).log.open().map_err(|error| error.to_string());
    (folder, records)
}

/// Each record as text: the milliseconds since the epoch, and what else is known.
fn read(options: &[&str], texts: &[&[u8]]) -> (Vec<String>, String) {
    let (_folder, records) = open(options, texts);
    let mut records = records.expect("a log");
    let mut lines = Vec::new();
    let mut last = i64::MIN;
    while let Some(record) = records.next().expect("records") {
        assert!(record.start >= last, "time goes on");
        last = record.start;
        lines.push(words(&record));
    }
    (lines, records.summary().to_string())
}

fn words(record: &Record<'_>) -> String {
    let mut words = vec![
        (record.start / 1_000_000).to_string(),
        record.method.to_owned(),
        record.path.to_owned(),
    ];
    words.extend(record.query.map(|query| format!("?{query}")));
    words.extend(record.host.map(str::to_owned));
    words.extend(record.status.map(|status| status.to_string()));
    words.extend(record.bytes.map(|bytes| format!("{bytes}B")));
    words.extend(record.duration.map(|duration| format!("{}us", duration / 1_000)));
    words.extend(record.peer.map(|peer| peer.to_string()));
    for name in ["user-agent", "referer", "x-forwarded-for", "x-api-key"] {
        words.extend(record.header(name).map(|value| format!("{name}={value}")));
    }
    words.join(" ")
}

fn one(options: &[&str], line: &str) -> String {
    let (lines, summary) = read(options, &[line.as_bytes()]);
    assert_eq!(lines.len(), 1, "{line} {summary}");
    lines.into_iter().next().expect("a record")
}

/// Copying all lines with each further one would take hours, and gigabytes.
#[test]
fn very_many_lines_of_a_header_are_read_once_each() {
    let lines = vec!["\"a\""; 200_000].join(",");
    let log = format!(
        "{{\"ts\":1764000000.5,\"request\":{{\"remote_ip\":\"10.0.0.1\",\"method\":\"GET\",\"host\":\"a.example\",\"uri\":\"/\",\
         \"headers\":{{\"User-Agent\":[\"b\"],\"X-Forwarded-For\":[{lines}],\"Referer\":[\"c\"]}}}},\"duration\":0.001,\"status\":200}}"
    );
    let found = one(&[], &log);
    assert!(found.ends_with("user-agent=b referer=c x-forwarded-for=a"), "{found:.300}");
}

#[test]
fn each_format_is_known_by_its_lines() {
    for (line, expected) in [
        // The examples of the servers' own documentation.
        (
            r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif?a=b HTTP/1.0" 200 2326 "http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)""#,
            "971211336000 GET /apache_pb.gif ?a=b 200 2326B 127.0.0.1 user-agent=Mozilla/4.08 [en] (Win98; I ;Nav) referer=http://www.example.com/start.html",
        ),
        (
            r#"2001:db8::7 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 304 -"#,
            "971186136000 GET / 304 2001:db8::7",
        ),
        (
            r#"www.example.com:443 192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 5 "-" "curl""#,
            "971186136000 GET / www.example.com:443 200 5B 192.0.2.7 user-agent=curl",
        ),
        (
            r#"10.0.0.1 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 5 "-" "curl" "192.0.2.7, 10.0.0.2" 0.005"#,
            "971186136000 GET / 200 5B 10.0.0.1 user-agent=curl x-forwarded-for=192.0.2.7, 10.0.0.2",
        ),
        (
            r#"127.0.0.1 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 5 "-" "\"quoted\" agent" 12 "router" "http://10.0.0.1" 3ms"#,
            r#"971186136000 GET / 200 5B 127.0.0.1 user-agent=\"quoted\" agent"#,
        ),
        (
            r#"https 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://www.example.com:443/a?b=c HTTP/1.1" "curl/7.46.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067 "Root=1-58337281-1d84f3d73c47ec4e58577259" "www.example.com" "arn:aws:acm:us-east-2:123456789012:certificate/12345678-1234-1234-1234-123456789012" 1 2018-07-02T22:22:48.364000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200" "-" "-""#,
            "1530570168364 GET /a ?b=c www.example.com:443 200 57B 171000us 192.168.131.39 user-agent=curl/7.46.0",
        ),
        (
            r#"[2016-04-15T20:17:00.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "tcp://10.0.2.1:80""#,
            "1460751420310 POST /api/v1/locations locations 204 0B 226000us user-agent=nsq2http x-forwarded-for=10.0.35.28",
        ),
        (
            r#"[2020-11-25T21:26:18.409Z] "GET /status/418 HTTP/1.1" 418 - via_upstream - "-" 0 135 3 1 "-" "curl/7.73.0-DEV" "84961386-6d84-929d-98bd-c5aee93b5c88" "httpbin:8000" "127.0.0.1:80" inbound|8000|| 127.0.0.1:41854 10.44.1.27:80 10.44.1.23:37652 outbound_.8000_._.httpbin.foo.svc.cluster.local default"#,
            "1606339578409 GET /status/418 httpbin:8000 418 135B 3000us 10.44.1.23 user-agent=curl/7.73.0-DEV",
        ),
        (
            r#"Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1""#,
            "1233922454655 GET /index.html 200 2750B 109000us 10.0.1.2",
        ),
        (
            r#"2001:db8::1234:5678:9abc:def0:8080 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET /index.html HTTP/1.1""#,
            "1233922454655 GET /index.html 200 2750B 109000us 2001:db8::1234:5678:9abc:def0",
        ),
        (
            r#"::1:33317 [06/Feb/2009:12:14:14.655] http-in~ static/<NOSRV> 10/-1/-1/-1/+10 503 2750 - - SC-- 1/1/1/1/0 0/0 "GET /index.html HTTP/1.1""#,
            "1233922454655 GET /index.html 503 2750B 10000us ::1",
        ),
        (
            r#"{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"127.0.0.1","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a?b=c","headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*"]}},"bytes_read":0,"user_id":"","duration":0.500929675,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}"#,
            "1646861401023 GET /a ?b=c localhost 200 10900B 500929us 127.0.0.1 user-agent=curl/7.82.0",
        ),
        (
            r#"{"ClientAddr":"10.0.0.9:54321","ClientHost":"10.0.0.9","ClientPort":"54321","ClientUsername":"-","DownstreamContentSize":23,"DownstreamStatus":200,"Duration":2500000,"RequestHost":"example.com","RequestMethod":"GET","RequestPath":"/a?b=c","RequestProtocol":"HTTP/1.1","StartUTC":"2023-01-02T03:04:05.123456789Z","level":"info","msg":"","time":"2023-01-02T03:04:06Z"}"#,
            "1672628645123 GET /a ?b=c example.com 200 23B 2500us 10.0.0.9",
        ),
        (
            r#"{"httpRequest":{"latency":"0.012s","remoteIp":"203.0.113.9","requestMethod":"GET","requestSize":"77","requestUrl":"https://example.com/a?b=c","responseSize":"1024","status":200,"userAgent":"curl"},"insertId":"x","timestamp":"2023-01-02T03:04:05.5Z"}"#,
            "1672628645500 GET /a ?b=c example.com 200 1024B 12000us 203.0.113.9 user-agent=curl",
        ),
        (
            r#"{"timeStamp":"2021-10-14T22:17:11+02:00","resourceId":"/S","operationName":"ApplicationGatewayAccess","properties":{"clientIP":"203.0.113.9","clientPort":34248,"httpMethod":"GET","requestUri":"/a","requestQuery":"b=c","userAgent":"curl","httpStatus":200,"receivedBytes":184,"sentBytes":466,"timeTaken":0.5,"host":"example.com"}}"#,
            "1634242630500 GET /a ?b=c example.com 200 466B 500000us 203.0.113.9 user-agent=curl",
        ),
        (
            r#"{"start_time":"2023-01-02T03:04:05.250Z","method":"GET","path":"/a","response_code":200,"bytes_sent":5,"duration":4,"authority":"h","downstream_remote_address":"[2001:db8::1]:1234","user_agent":"c","x_forwarded_for":null}"#,
            "1672628645250 GET /a h 200 5B 4000us 2001:db8::1 user-agent=c",
        ),
        (
            r#"{"time_local":"02/Jan/2023:03:04:05 +0000","remote_addr":"10.0.0.1","request":"GET /a\u002fb HTTP/1.1","status":"200","body_bytes_sent":"5","request_time":"0.250","http_user_agent":"a \"b\""}"#,
            r#"1672628644750 GET /a/b 200 5B 250000us 10.0.0.1 user-agent=a "b""#,
        ),
    ] {
        assert_eq!(one(&[], line), expected, "{line}");
    }
}

/// Lines that nginx 1.22, Caddy 2.6, HAProxy 2.6 and Envoy 1.40 wrote about a request with quotes, and about bytes that were no
/// request.
#[test]
fn what_servers_write_about_odd_requests_is_read() {
    for (lines, expected) in [
        (
            r#"[2026-11-27T13:47:12.617Z] "GET /a/b?c=d1&e=%20" HTTP/1.1" 200 - 0 2 0 - "-" "agent "quoted" a" "5b2c3a42-0330-48dd-bd74-ee3872e66600" "127.0.0.1:18476" "-"
[2026-11-27T13:47:12.719Z] "- - HTTP/1.1" 400 DPE 0 11 0 - "-" "-" "-" "-" "-""#,
            r#"1795787232617 GET /a/b ?c=d1&e=%20" 127.0.0.1:18476 200 2B 0us user-agent=agent "quoted" a"#,
        ),
        (
            r#"{"authority":"127.0.0.1:18476","bytes_sent":2,"downstream_remote_address":"127.0.0.1:39420","duration":0,"method":"GET","path":"/a/b?c=d1&e=%20\"","response_code":200,"start_time":"2026-11-27T13:47:12.617Z","user_agent":"agent \"quoted\""}
{"authority":null,"bytes_sent":11,"downstream_remote_address":"127.0.0.1:39436","duration":0,"method":null,"path":null,"response_code":400,"start_time":"2026-11-27T13:47:12.719Z","user_agent":null}"#,
            r#"1795787232617 GET /a/b ?c=d1&e=%20" 127.0.0.1:18476 200 2B 0us 127.0.0.1 user-agent=agent "quoted""#,
        ),
        (
            r#"127.0.0.1:56062 [27/Nov/2026:13:47:12.492] web app/s1 0/0/0/0/0 200 124 - - ---- 1/1/0/0/0 0/0 "GET /a/b?c=d1&e=%20#22 HTTP/1.1"
127.0.0.1:56108 [27/Nov/2026:13:47:12.592] web web/<NOSRV> -1/-1/-1/-1/0 400 0 - - PR-- 1/1/0/0/0 0/0 "<BADREQ>""#,
            "1795787232492 GET /a/b ?c=d1&e=%20#22 200 124B 0us 127.0.0.1",
        ),
        (
            r#"127.0.0.1 - - [27/Nov/2026:13:47:12 +0000] "GET /a/b?c=d1&e=%20\x22 HTTP/1.1" 200 2 "-" "agent \x22quoted\x22 \xC3\xBC"
127.0.0.1 - - [27/Nov/2026:13:47:12 +0000] "\x16\x03\x01\x02\x00garbage" 400 157 "-" "-""#,
            r"1795787232000 GET /a/b ?c=d1&e=%20\x22 200 2B 127.0.0.1 user-agent=agent \x22quoted\x22 \xC3\xBC",
        ),
        (
            r#"{"msec":1795787232.237,"time_local":"27/Nov/2026:13:47:12 +0000","remote_addr":"127.0.0.1","request":"GET http://other/x?y HTTP/1.1","status":200,"body_bytes_sent":2,"request_time":0.000,"http_user_agent":"curl","host":""}
{"time_local":"27/Nov/2026:13:47:12 +0000","msec":1795787232.339,"remote_addr":"127.0.0.1","request":"\u0016\u0003\u0001\u0002\u0000garbage","status":400,"body_bytes_sent":157,"request_time":0.000,"http_user_agent":"","host":""}"#,
            "1795787232237 GET /x ?y other 200 2B 0us 127.0.0.1 user-agent=curl",
        ),
    ] {
        let (records, summary) = read(&[], &[lines.as_bytes()]);
        assert_eq!(records, [expected], "{lines}");
        assert!(
            summary.ends_with("\nlines that were no requests of HTTP, and are left out: 1"),
            "{summary}"
        );
    }
}

#[test]
fn format_strings_of_the_servers_are_read_as_they_are() {
    for (format, line, expected) in [
        (
            r#"$remote_addr - [$msec] "$request" $status $request_time "$http_x_api_key""#,
            r#"10.0.0.1 - [1700000000.250] "POST /a HTTP/1.1" 201 0.050 "abc""#,
            "1700000000200 POST /a 201 50000us 10.0.0.1 x-api-key=abc",
        ),
        (
            "${time_iso8601}|$request_method|$uri|$args",
            "2023-01-02T03:04:05+00:00|GET|/a|b=c",
            "1672628645000 GET /a ?b=c",
        ),
        (
            r#"%h %l %u %t "%r" %>s %b %D "%{X-Api-Key}i" %{ms}T"#,
            r#"10.0.0.1 - - [02/Jan/2023:03:04:05 +0000] "GET /a HTTP/1.1" 200 - 1500 "abc" 0"#,
            "1672628645000 GET /a 200 1500us 10.0.0.1 x-api-key=abc",
        ),
        // nginx writes the name of a user as the client has sent it.
        (
            "combined",
            r#"127.0.0.1 - a [b [10/Oct/2001:00:00:00 +0000] [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 5 "-" "curl""#,
            "971186136000 GET / 200 5B 127.0.0.1 user-agent=curl",
        ),
        // Brackets around anything else.
        (
            r#"$remote_addr [$time_local] "$request" $status $request_time [$proxy_upstream_name] [$upstream_addr] [$request_id]"#,
            r#"10.0.0.1 [02/Jan/2023:03:04:05 +0000] "GET /a HTTP/1.1" 200 0.010 [default-web-80] [10.0.0.7:80] [7f3a]"#,
            "1672628644990 GET /a 200 10000us 10.0.0.1",
        ),
        // One duration in two units is one duration.
        (
            r#"%h %t "%r" %D %T"#,
            r#"10.0.0.1 [02/Jan/2023:03:04:05 +0000] "GET /a HTTP/1.1" 2000000 2"#,
            "1672628645000 GET /a 2000000us 10.0.0.1",
        ),
        (
            r#"%h %t "%r" %T %D"#,
            r#"10.0.0.1 [02/Jan/2023:03:04:05 +0000] "GET /a HTTP/1.1" 2 2000001"#,
            "1672628645000 GET /a 2000001us 10.0.0.1",
        ),
        // As the configuration has them between quotes.
        (
            r#"%h %l %u %t \"%r\" %>s %b \"%{Referer}i\""#,
            r#"10.0.0.1 - - [02/Jan/2023:03:04:05 +0000] "GET /a HTTP/1.1" 200 5 "-""#,
            "1672628645000 GET /a 200 5B 10.0.0.1",
        ),
        (
            r#"[%START_TIME%] \"%REQ(:METHOD)% %REQ(:PATH)%\"\t%RESPONSE_CODE%\n"#,
            "[2023-01-02T03:04:05.250Z] \"GET /a\"\t200",
            "1672628645250 GET /a 200",
        ),
        (
            "%{usec}t %a %m %U%q %!200,304s",
            "1672628645123456 ::1 GET /a?b=c 200",
            "1672628645123 GET /a ?b=c 200 ::1",
        ),
        (
            "%{%Y-%m-%d %H:%M:%S}t.%{msec_frac}t %a \"%r\"",
            "2023-01-02 03:04:05.250 ::1 \"GET / HTTP/1.1\"",
            "1672628645250 GET / ::1",
        ),
        // The zone may be a part of its own, as in Apache's manual.
        (
            r#"%h [%{%d/%b/%Y:%T}t.%{msec_frac}t %{%z}t] \"%r\""#,
            r#"10.0.0.1 [02/Jan/2023:03:04:05.250 +0000] "GET / HTTP/1.1""#,
            "1672628645250 GET / 10.0.0.1",
        ),
        (
            r#"%h [%{%d/%b/%Y:%T}t.%{msec_frac}t %{%z}t] \"%r\""#,
            r#"10.0.0.1 [02/Jan/2023:03:04:05.250 +0530] "GET / HTTP/1.1""#,
            "1672608845250 GET / 10.0.0.1",
        ),
        // What frameworks drop, and what HAProxy alone would have written for another byte.
        (
            "combined",
            r#"10.0.0.1 - - [02/Jan/2023:03:04:05 +0000] "GET /login#ab HTTP/1.1" 200 1 "-" "-""#,
            "1672628645000 GET /login 200 1B 10.0.0.1",
        ),
        (
            r#"%START_TIME(%s.%3f)% %REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %DURATION% %DOWNSTREAM_REMOTE_ADDRESS% %REQ(X-API-KEY):10%"#,
            "1672628645.250 GET /a 12 10.0.0.1:555 abc",
            "1672628645250 GET /a 12000us 10.0.0.1 x-api-key=abc",
        ),
    ] {
        assert_eq!(one(&["--format", format], line), expected, "{format}");
    }
    let log = br#"10.0.0.1 [02/Jan/2023:03:04:05.250 -0100] "GET / HTTP/1.1""#;
    let format = r#"%h [%{%d/%b/%Y:%T}t.%{msec_frac}t %{%z}t] \"%r\""#;
    let (_folder, records) = open(&["--format", format, "--time-zone", "Asia/Tokyo"], &[log]);
    let mut records = records.expect("a log");
    let record = records.next().expect("a record").expect("a line");
    assert_eq!((record.start / 1_000_000, record.resolution), (1_672_632_245_250, 1_000_000));
    for (format, expected) in [
        ("%{%d/%b/%Y:%T}t %{%Z}t \"%r\"", "has the zone of"),
        ("combine", "neither the name of a format (combined, main, common,"),
        ("$remote_addr", "has no time"),
        ("[$time_local]", "has no path"),
        ("$time_local$request", "nothing tells where the first one ends"),
        ("%t %r %", "without a letter"),
        ("%{%Y-%m-%d}t %{%T}t %r", "`%{%Y-%m-%d}t` and `%{%T}t` are parts of one time"),
        ("%{%T}t %{%d/%b/%Y}t %r", "parts of one time"),
        ("%START_TIME", "without its last"),
    ] {
        let (_folder, records) = open(&["--format", format], &[b"a line"]);
        let error = records.err().expect("an error");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_the_request_says_counts_more_than_what_the_server_makes_of_it() {
    let expected = "1700000000000 GET /a ?b=c example.com 192.0.2.7";
    let fields = [
        (r#""$request""#, r#""GET /a?b=c HTTP/1.1""#),
        ("$uri", "/index.php"),
        ("$host", "example.com"),
        ("$server_name", "_"),
        ("$remote_addr", "192.0.2.7"),
        ("$realip_remote_addr", "10.0.0.1"),
        ("$msec", "1700000000.000"),
    ];
    let (format, line) = (fields.map(|(name, _)| name), fields.map(|(_, value)| value));
    assert_eq!(one(&["--format", &format.join(" ")], &line.join(" ")), expected);
    let reversed = |mut words: [&str; 7]| {
        words.reverse();
        words.join(" ")
    };
    assert_eq!(one(&["--format", &reversed(format)], &reversed(line)), expected);
    let json = r#"{"msec":1700000000,"request":"GET /a?b=c HTTP/1.1","uri":"/index.php","http_host":"example.com","server_name":"_","remote_addr":"192.0.2.7"}"#;
    assert_eq!(one(&[], json), expected);
    for (format, line) in [
        (
            "%{sec}t %a %{c}a \"%r\" %U %v",
            "1700000000 192.0.2.7 10.0.0.1 \"GET /a?b=c HTTP/1.1\" /b example.com",
        ),
        ("%{sec}t %{c}a %a %m %U%q %v", "1700000000 10.0.0.1 192.0.2.7 GET /a?b=c example.com"),
        (
            "%START_TIME(%s.%3f)% %DOWNSTREAM_REMOTE_ADDRESS% %DOWNSTREAM_DIRECT_REMOTE_ADDRESS% %REQ(:METHOD)% %REQ(:PATH)% %REQ(:AUTHORITY)%",
            "1700000000.000 192.0.2.7:5 10.0.0.1:5 GET /a?b=c example.com",
        ),
    ] {
        assert_eq!(one(&["--format", format], line), expected, "{format}");
    }
    // They are better than nothing.
    let line = "/a example.com 10.0.0.1 1700000000.000";
    let format = "$uri $server_name $realip_remote_addr $msec";
    assert_eq!(one(&["--format", format], line), "1700000000000 GET /a example.com 10.0.0.1");
}

#[test]
fn values_have_names_of_ones_own() {
    let names = "when=time,client.addr=remote_addr,verb=request_method,target=request_uri,took=request_time_ms,k=http_x_api_key";
    let line = r#"{"when":1700000000250,"client":{"addr":"10.0.0.1"},"verb":"PUT","target":"/a","took":50,"k":"abc"}"#;
    let expected = "1700000000200 PUT /a 50000us 10.0.0.1 x-api-key=abc";
    assert_eq!(one(&["--fields", names], line), expected);
    // Numbers are as good as text where a text is meant.
    let number = line.replace("\"abc\"", "9007199254740993").replace("\"/a\"", "7");
    let expected_number = "1700000000200 PUT 7 50000us 10.0.0.1 x-api-key=9007199254740993";
    assert_eq!(one(&["--fields", names], &number), expected_number);
    let csv = "k,verb,\"target\",when,client.addr,took\nabc,PUT,\"/a\",1700000000.25,10.0.0.1,50\n";
    assert_eq!(one(&["--fields", names], csv), expected);
    let csv =
        "Time,Client IP,Method,URI,Status\n2023-01-02 03:04:05,10.0.0.1,GET,\"/a,\"\"b\",200\n";
    assert_eq!(
        one(&["--time-zone", "Europe/Berlin"], csv),
        "1672625045000 GET /a,\"b 200 10.0.0.1"
    );
    let (_folder, records) = open(&["--fields", "a=remote_adr"], &[b"{}"]);
    assert!(records.err().expect("an error").contains("`remote_adr` is not known"));
}

/// Local times without a zone, as HAProxy writes them. In Berlin, the hour from two to three came twice on this day.
#[test]
fn an_hour_that_comes_twice_is_read_as_two() {
    let times = [
        "01:59:59", "02:10:00", "02:30:00", "02:58:00", // The next request took 27 minutes.
        "02:31:00", "02:59:00", "02:05:00", "02:59:10", "02:30:00", "02:50:00", "03:10:00",
    ];
    let lines = |begins: &str, ends: &str| {
        times.map(|time| format!("{begins}2025-10-26 {time}{ends}\n")).concat()
    };
    let csv = format!("time,method,uri\n{}", lines("", ",GET,/"));
    let apache = lines("[", "] \"GET / HTTP/1.1\"");
    let zone = ["--time-zone", "Europe/Berlin"];
    let format = ["--format", "[%{%Y-%m-%d %H:%M:%S}t] \"%r\""];
    for (options, text) in [(zone.to_vec(), csv), ([zone, format].concat(), apache)] {
        let (lines, summary) = read(&options, &[text.as_bytes()]);
        let seconds = lines.iter().filter_map(|line| line.split("000 ").next()?.parse().ok());
        let begins = 1_761_436_799_u64;
        let minutes: Vec<u64> = seconds.map(|second: u64| (second - begins) / 60).collect();
        assert_eq!(minutes, [0, 10, 30, 31, 58, 59, 59, 65, 90, 110, 130], "{summary}");
    }
}

fn line(second: u32, path: &str) -> String {
    let (minute, second) = (second / 60, second % 60);
    format!(
        "10.0.0.1 - - [10/Oct/2000:13:{minute:02}:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 5\n"
    )
}

fn paths(texts: &[&[u8]]) -> (String, String) {
    let (lines, summary) = read(&[], texts);
    let paths: Vec<_> = lines.iter().filter_map(|line| line.split(' ').nth(2)).collect();
    (paths.join(" "), summary)
}

#[test]
fn rotated_and_compressed_logs_in_any_order_are_one() {
    let gzip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).expect("gzip");
        encoder.finish().expect("gzip")
    };
    let zstd = |text: &str| zstd::encode_all(text.as_bytes(), 0).expect("zstd");
    let newest = line(900, "/6") + &line(901, "/7");
    // Two members, and two frames, one behind the other.
    let middle = [gzip(&line(600, "/4")), gzip(&line(601, "/5"))].concat();
    // What parallel compressors write before, between and behind them.
    let skipped =
        |kind: u8| [&[kind, 0x2a, 0x4d, 0x18, 4, 0, 0, 0][..], b"skip".as_slice()].concat();
    let (first, second) = (zstd(&line(1, "/1")), zstd(&line(3, "/3")));
    let oldest = [skipped(0x50), first, skipped(0x5e), skipped(0x5f), second, skipped(0x51)];
    let oldest = oldest.concat();
    let other = line(2, "/2") + &line(902, "/8");
    let (paths, summary) = paths(&[newest.as_bytes(), &middle, other.as_bytes(), b"", &oldest]);
    assert_eq!(paths, "/1 /2 /3 /4 /5 /6 /7 /8");
    assert_eq!(summary, "\nformat: common");
}

#[test]
fn lines_are_sorted_by_when_their_requests_came() {
    let format = ["--format", r#"[$msec] "$request" $request_time"#];
    let log = "[1700000010.0] \"GET /2 HTTP/1.1\" 1.0\n[1700000012.0] \"GET /1 HTTP/1.1\" 10\n[1700000013.5] \"GET /3 HTTP/1.1\" 0.25\n";
    let (lines, _) = read(&format, &[log.as_bytes()]);
    let starts: Vec<_> = lines.iter().map(|line| &line[8..15]).collect();
    assert_eq!(starts, ["02000 G", "09000 G", "13250 G"]);
}

#[test]
fn a_clock_that_jumps_moves_no_other_line() {
    let lines =
        |seconds: std::ops::Range<u32>| seconds.map(|second| line(second, "/")).collect::<String>();
    let starts = |log: &str| {
        let (lines, summary) = read(&[], &[log.as_bytes()]);
        let milliseconds = lines.iter().filter_map(|line| line.split(' ').next()?.parse().ok());
        let starts: Vec<i64> = milliseconds.map(|at: i64| at / 1_000).collect();
        (starts.iter().map(|start| start - starts[0]).collect::<Vec<_>>(), summary)
    };
    let future = line(0, "/").replace("2000", "2099");
    // One line, also the first one, is from another century.
    let (seconds, summary) = starts(&(lines(0..10) + &future + &lines(10..20)));
    assert_eq!(
        seconds,
        [&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9][..], &(10..20).collect::<Vec<_>>()].concat()
    );
    assert!(
        summary.contains(
            "lines with a time far from those around them, which take the time of those: 1"
        ),
        "{summary}"
    );
    let (seconds, _) = starts(&(future.clone() + &lines(0..10)));
    assert_eq!(seconds, [&[0][..], &(0..10).collect::<Vec<_>>()].concat());
    // The clock is set back by a quarter of an hour.
    let (seconds, summary) = starts(&(lines(900..920) + &lines(0..20)));
    assert_eq!(seconds, [(0..20).collect::<Vec<_>>(), (19..39).collect()].concat());
    assert!(
        summary.contains("times that the clock of a log went back, and what followed was moved: 1"),
        "{summary}"
    );
    // A night without requests is none of that.
    let (seconds, summary) = starts(&(lines(0..10) + &lines(1800..1810)));
    assert_eq!(seconds, [(0..10).collect::<Vec<_>>(), (1800..1810).collect()].concat());
    assert_eq!(summary, "\nformat: common");
}

/// Kibana, CloudWatch and Loki show the newest line first, and so do their exports.
#[test]
fn a_log_with_its_newest_line_first_is_refused_with_a_sentence() {
    let turned = |seconds: std::ops::Range<u32>| -> String {
        seconds.rev().map(|second| line(second / 2, "/")).collect()
    };
    let (_folder, records) = open(&[], &[turned(0..1_000).as_bytes()]);
    let error = records.err().expect("an error");
    assert!(error.contains("its lines are newest first"), "{error}");
    assert!(error.contains("`tac FILE`"), "{error}");
    // Where the first lines are in order, the others tell.
    let later = |second: u32| line(second, "/").replace(":13:", ":14:");
    let first: String = (1_800..2_000).map(later).collect();
    let log = first + &turned(0..3_000);
    let (_folder, records) = open(&[], &[log.as_bytes()]);
    let mut records = records.expect("a log");
    while records.next().expect("records").is_some() {}
    let error = records.summary().check().expect_err("no order");
    assert!(error.contains("newest first"), "{error}");
    // Many pieces of a log, each older than the one before, are none of that.
    let pieces = (0..20_u32)
        .rev()
        .map(|piece| (0..90).map(|second| line(90 * piece + second, "/")).collect::<String>());
    let (_folder, records) = open(&[], &[pieces.collect::<String>().as_bytes()]);
    let mut records = records.expect("a log");
    while records.next().expect("records").is_some() {}
    assert_eq!(records.summary().check(), Ok(()));
}

#[test]
fn a_restart_that_ends_long_requests_is_no_clock_that_was_set_back() {
    // Apache writes when requests came. Tunnels that were open for up to an hour end together.
    let mut log: String = (0..3_000).step_by(10).map(|second| line(second, "/")).collect();
    for number in 0..500_u32 {
        log += &line(number.wrapping_mul(2_654_435_761) % 2_900, "/tunnel");
    }
    log += &(3_000..3_100).map(|second| line(second, "/")).collect::<String>();
    let (records, summary) = read(&["--format", "%h %l %u %t \"%r\" %>s %b"], &[log.as_bytes()]);
    let seconds =
        |at: usize| records[at].split(' ').next()?.parse::<u64>().ok().map(|at| at / 1_000);
    assert_eq!(seconds(records.len() - 1), seconds(0).map(|first| first + 3_099));
    assert!(!summary.contains("clock"), "{summary}");
    // With how long they took, they are where they belong, as far as a minute.
    let log = "[2026-11-27T13:00:00.000Z] GET /1 1000\n[2026-11-27T13:00:30.000Z] GET /3 1000\n[2026-11-27T13:00:10.000Z] GET /2 25000\n";
    let format = "[%START_TIME%] %REQ(:METHOD)% %REQ(:PATH)% %DURATION%";
    let (records, summary) = read(&["--format", format], &[log.as_bytes()]);
    let paths: Vec<_> = records.iter().filter_map(|record| record.split(' ').nth(2)).collect();
    assert_eq!((paths, summary.lines().count()), (vec!["/1", "/2", "/3"], 2));
}

#[test]
fn lines_that_cannot_be_read_are_counted_and_shown_without_their_secrets() {
    let good: String = (0..100).map(|second| line(second, "/")).collect();
    let bad = "\u{1b}[2J what is this?token=SECRET&b\n10.0.0.1 - - [nonsense] \"GET / HTTP/1.1\" 200 5\n\n# a comment\n";
    let tls = line(99, "/").replace("GET / HTTP/1.1", r"\x16\x03\x01");
    let (_folder, records) = open(&[], &[(good.clone() + bad + &tls).as_bytes()]);
    let mut records = records.expect("a log");
    let mut count = 0;
    while records.next().expect("records").is_some() {
        count += 1;
    }
    assert_eq!(count, 100);
    let summary = records.summary();
    assert_eq!(summary.check(), Ok(()));
    let words = summary.to_string();
    assert!(words.contains("lines that could not be read: 2\n"), "{words}");
    assert!(words.contains("lines that were no requests of HTTP, and are left out: 1"), "{words}");
    assert!(words.contains("\\u{1b}[2J what is this?") && !words.contains("SECRET"), "{words}");
    let (_folder, records) = open(&[], &[(good + &"nonsense\n".repeat(6)).as_bytes()]);
    let mut records = records.expect("a log");
    while records.next().expect("records").is_some() {}
    let error = records.summary().check().expect_err("too many");
    assert!(error.starts_with("6 of 106 lines could not be read, more than 5 %"), "{error}");
}

#[test]
fn what_is_no_log_is_refused_with_a_sentence() {
    let binary: Vec<u8> =
        (0..3_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let long = vec![b'a'; 3 << 20];
    for (text, expected) in [
        (&binary[..], "its format is unknown"),
        (&long, "its lines are longer than 1048576 bytes"),
        (b"hello\nworld\n", "The first line is `hello`"),
        (b"", "the logs have no lines"),
        (b"\x1f\x8b\x08broken", "0.log: "),
        (b"\x28\xb5\x2f\xfdbroken", "0.log: "),
    ] {
        let (_folder, records) = open(&[], &[text]);
        let error = records.err().expect("an error");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_compressed_log_that_was_cut_off_is_named() {
    // More than the part that is looked at first.
    let text: String =
        (0..60_000).map(|number| line(number / 30, &format!("/{}", number * number))).collect();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).expect("gzip");
    let whole = encoder.finish().expect("gzip");
    let (_folder, records) = open(&[], &[&whole[..whole.len() - 100]]);
    let mut records = records.expect("a log");
    let error = loop {
        match records.next() {
            Ok(record) => assert!(record.is_some(), "an error before the end"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("0.log: "), "{error}");
}

#[test]
fn a_line_without_an_end_takes_no_memory() {
    /// Lines, and then one of 300 MB.
    struct Endless(u64);

    impl Read for Endless {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let count = out.len().min(usize::try_from(self.0).unwrap_or(usize::MAX));
            out[..count].fill(b'x');
            self.0 -= count as u64;
            Ok(count)
        }
    }

    let lines = std::io::Cursor::new(line(1, "/1") + &line(2, "/2"));
    let behind = std::io::Cursor::new(format!("\n{}", line(3, "/3")));
    let mut source = Source::of(Box::new(lines.chain(Endless(300 << 20)).chain(behind)));
    let (mut text, mut too_long) = (String::new(), 0);
    while let Some(piece) = source.piece().expect("text") {
        assert!(piece.text.capacity() <= 1 << 20);
        text += &piece.text;
        too_long += piece.too_long;
    }
    assert_eq!((text, too_long), (line(1, "/1") + &line(2, "/2") + &line(3, "/3"), 1));
}

proptest! {
    #[test]
    fn no_line_makes_the_reader_panic(
        lines in proptest::collection::vec("[\\x00-\\x7f]{0,60}|[0-9a-fZ:+./\\[\\]\" \\-]{0,80}|\\PC{0,20}", 0..20),
        cut in 0_usize..400,
    ) {
        let samples = [
            r#"127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a?b=c HTTP/1.0" 200 2326 "r" "a""#,
            r#"10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in s/s 10/0/30/69/109 200 2750 - "GET / HTTP/1.1""#,
            r#"{"ts":1646861401.5,"request":{"remote_ip":"::1","uri":"/"},"duration":1e300,"status":200}"#,
            r#"[2016-04-15T20:17:00.310Z] "POST /a HTTP/2" 204 - 154 0 226 100 "1" "n" "c" "l" "t""#,
        ];
        for sample in samples {
            let mut log = format!("{sample}\n").repeat(30);
            for line in &lines {
                log += line;
                log.push('\n');
                // A line whose middle is something else.
                let at = (0..=cut % (sample.len() + 1)).rev().find(|at| sample.is_char_boundary(*at)).unwrap_or(0);
                log += &format!("{}{line}{}\n", &sample[..at], &sample[at..]);
            }
            let (_folder, records) = open(&[], &[log.as_bytes()]);
            if let Ok(mut records) = records {
                while let Ok(Some(record)) = records.next() {
                    let _ = words(&record);
                }
                let _ = records.summary().to_string();
            }
        }
    }

    #[test]
    fn no_format_and_no_line_of_it_makes_the_reader_panic(
        parts in proptest::collection::vec(
            "\\$[a-z_]{0,12}|\\$\\{[a-z_]{0,8}\\}?|%[<>!0-9,]{0,3}(\\{[a-zA-Z_:%-]{0,8}\\}?)?[a-zA-Z]?|%[A-Z_]{2,12}(\\([A-Z?:-]{0,8}\\)?)?(:[0-9])?%?|[ \\[\\]\"|é-]{1,3}",
            0..8,
        ),
        lines in proptest::collection::vec("[0-9:./ \\[\\]\"|é+a-zA-Z?#%-]{0,60}", 1..8),
    ) {
        for format in [parts.concat(), format!("$msec {} $request_uri", parts.join(" ")), format!("%t {} %U", parts.join(" "))] {
            let mut headers = field::Headers::default();
            if let Ok(compiled) = template::compile(&format, &mut headers) {
                let mut times = TimeReader::new(TimeZone::UTC, compiled.pattern.clone());
                for line in &lines {
                    let mut copies = String::new();
                    let mut found = vec![None; headers.0.len()];
                    let mut draft = Draft::new(line, &mut copies, &mut times, &mut found);
                    let _ = compiled.template.read(line, &mut draft);
                    let _ = draft.finish(compiled.is_end);
                }
            }
        }
    }

    #[test]
    fn no_value_of_json_or_csv_makes_the_reader_panic(
        values in proptest::collection::vec("[0-9eE.+-]{1,22}|\"[^\"\\\\\\x00-\\x1f]{0,20}\"|null|\\[\\]|\\{\\}|\\[1,2\\]|true", 6),
    ) {
        let names = ["time", "remote_addr", "request", "status", "request_time", "http_user_agent"];
        let good = r#"{"time":1700000000,"remote_addr":"::1","request":"GET / HTTP/1.1","status":200}"#;
        let members: Vec<_> = names.iter().zip(&values).map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let json = format!("{}{{{}}}\n", format!("{good}\n").repeat(3), members.join(","));
        let csv = format!("{}\n1700000000,::1,GET / HTTP/1.1,200,1,x\n{}\n", names.join(","), values.join(","));
        for log in [json, csv] {
            let (_folder, records) = open(&[], &[log.as_bytes()]);
            let mut records = records.expect("a log");
            while let Ok(Some(record)) = records.next() {
                let _ = words(&record);
            }
        }
    }
}
