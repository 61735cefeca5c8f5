//! The messages of the protocol as JSON.

use crate::http::{post, send};
use crate::server::start;

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
        r#"{"domain":"edge","descriptors":[{"hitsAddend":1e3}]}"#,
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
async fn a_number_that_makes_no_sense_is_named_in_words() {
    let server = start(ONE).await;
    for number in ["-1", "1e308", "\"1x\"", "\"\"", "2.5", "true"] {
        let body = format!(r#"{{"domain":"edge","descriptors":[{{}}],"hitsAddend":{number}}}"#);
        let head = format!(
            "POST /json HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let (status, _, said) = send(&server.http, &(head + &body)).await;
        assert_eq!(status, 400, "{number}");
        assert!(said.contains("expected a whole number"), "{number}: {said}");
    }
}
