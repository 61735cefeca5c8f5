//! The messages of the protocol as JSON.

use super::http::{post, send};
use super::server::{start, start_with};
use sluicegate_server::Fields;

const ONE: &str = "domain: edge
descriptors:
- key: user
  rate_limit: { unit: hour, requests_per_unit: 1 }
";

#[tokio::test]
async fn the_json_of_the_protocol_gets_the_same_answer() {
    let mut server = start(ONE).await;
    let body = r#"{"domain":"edge","descriptors":[{"entries":[{"key":"user","value":"a"}]}]}"#;
    let (status, answer) = post(&server.http, "/json", body).await;
    assert_eq!(status, 200);
    let until_reset = answer["statuses"][0]["durationUntilReset"].as_str().expect("a time");
    assert!(until_reset.ends_with('s'), "{answer}");
    assert_eq!(answer["overallCode"], "OK");
    assert_eq!(answer["statuses"][0]["currentLimit"]["unit"], "HOUR");
    assert_eq!(answer["statuses"][0]["currentLimit"]["requestsPerUnit"], 1);
    let (status, answer) = post(&server.http, "/json", body).await;
    assert_eq!((status, &answer["overallCode"]), (429, &"OVER_LIMIT".into()));
    assert!(server.is_over(&[("user", "a")]).await);
}

#[tokio::test]
async fn json_has_the_fields_that_envoy_is_told_to_add() {
    let server = start_with(ONE, |service| service.fields(Fields::Three)).await;
    let body = r#"{"domain":"edge","descriptors":[{"entries":[{"key":"user","value":"a"}]}]}"#;
    let (_, answer) = post(&server.http, "/json", body).await;
    let field = |at: usize| {
        let field = &answer["responseHeadersToAdd"][at];
        (field["key"].as_str().expect("a name"), field["value"].as_str().expect("a value"))
    };
    assert_eq!([field(0), field(1)], [("RateLimit-Limit", "1"), ("RateLimit-Remaining", "0")]);
    assert_eq!(field(2).0, "RateLimit-Reset");
}

#[tokio::test]
async fn json_that_makes_no_sense_is_refused_as_such() {
    let server = start(ONE).await;
    for body in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"domain":"edge"}"#,
        r#"{"domain":"","descriptors":[{}]}"#,
        r#"{"domain":"edge","descriptors":[{"hitsAddend":"-1"}]}"#,
        r#"{"domain":"edge","descriptors":null}"#,
        r#"{"domain":"edge","descriptors":[null]}"#,
        r#"{"domain":"edge","descriptors":[[]]}"#,
        r#"{"domain":"edge","descriptors":{}}"#,
        r#"{"domain":"edge","descriptors":[{"entries":[[]]}]}"#,
        r#"{"domain":"edge","descriptors":[{"entries":[["user","a"]]}]}"#,
        r#"{"domain":"edge","descriptors":[{"limit":[]}]}"#,
        r#"{"domain":"edge","descriptors":[{"limit":{}}]}"#,
        r#"{"domain":"edge","descriptors":[{"limit":{"unit":0}}]}"#,
        r#"{"domain":"edge","descriptors":[{"limit":{"unit":7}}]}"#,
        r#"{"domain":"edge","descriptors":[{"hitsAddend":1,"hits_addend":1}]}"#,
        r#"{"domain":"edge","hitsAddend":4294967296,"descriptors":[{}]}"#,
        r#"{"domain":"edge","descriptor":[{}]}"#,
        r#"{"domain":"edge","descriptors":[{"limit":{"unit":"FORTNIGHT"}}]}"#,
    ] {
        let (status, _) = post(&server.http, "/json", body).await;
        assert_eq!(status, 400, "{body}");
    }
    let long = format!(r#"{{"domain":"{}"}}"#, "x".repeat(100_000));
    assert_eq!(post(&server.http, "/json", &long).await.0, 413);
}

#[tokio::test]
async fn every_form_of_a_message_that_the_protocol_permits_means_the_same() {
    let mut server = start(&ONE.replace("unit: 1 }", "unit: 1000000 }")).await;
    let mut left = 1_000_000;
    // Numbers as texts and with exponents, names in both forms, units by number, and `null` for what is not there.
    for descriptor in [
        r#"{"entries":[{"key":"user","value":"a"}],"hitsAddend":100}"#,
        r#"{"entries":[{"key":"user","value":"a"}],"hits_addend":"100"}"#,
        r#"{"entries":[{"key":"user","value":"a"}],"hitsAddend":1e2,"isNegativeHits":null}"#,
        r#"{"entries":[{"key":"user","value":"a"}],"hitsAddend":"1E2","is_negative_hits":false}"#,
        r#"{"entries":[{"key":"user","value":"a"}],"hitsAddend":100.0,"limit":null}"#,
        r#"{"entries":[{"key":"user","value":"a"}],"hitsAddend":null,"limit":null}"#,
    ] {
        let body =
            format!(r#"{{"domain":"edge","descriptors":[{descriptor}],"hitsAddend":"1e2"}}"#);
        let (status, answer) = post(&server.http, "/json", &body).await;
        left -= 100;
        assert_eq!(
            (status, &answer["statuses"][0]["limitRemaining"]),
            (200, &left.into()),
            "{body}"
        );
    }
    for unit in ["1", "\"SECOND\""] {
        for count in ["\"7\"", "7", "7e0"] {
            let limit = format!(r#"{{"unit":{unit},"requests_per_unit":{count}}}"#);
            let body = format!(
                r#"{{"domain":"edge","descriptors":[{{"entries":[{{"key":"other","value":null}}],"limit":{limit}}}],"hitsAddend":null}}"#
            );
            let (_, answer) = post(&server.http, "/json", &body).await;
            let limit = &answer["statuses"][0]["currentLimit"];
            assert_eq!((&limit["unit"], &limit["requestsPerUnit"]), (&"SECOND".into(), &7.into()));
        }
    }
    assert!(!server.is_over(&[("user", "a")]).await);
}

#[tokio::test]
async fn a_number_that_makes_no_sense_is_named_in_words() {
    let server = start(ONE).await;
    for number in [
        "-1",
        "1e308",
        "\"1x\"",
        "\"\"",
        "\"inf\"",
        "\"+1\"",
        "\" 1\"",
        "\"1e-1\"",
        "2.5",
        "true",
        "[]",
        "18446744073709551616",
    ] {
        let body = format!(r#"{{"domain":"edge","descriptors":[{{}}],"hitsAddend":{number}}}"#);
        let head = format!(
            "POST /json HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let (status, _, said) = send(&server.http, &(head + &body)).await;
        assert_eq!(status, 400, "{number}");
        assert!(said.contains("expected a whole number"), "{number}: {said}");
        assert!(!said.contains("-1.0"), "{number}: {said}");
    }
}
