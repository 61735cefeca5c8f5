//! The bodies of refusals.

use serde_json::{Value, json};

use super::*;
use crate::admission::refusal::Refusal;
use crate::key::Missing;
use crate::limit::LimitError;
use crate::store::StoreError;

fn parsed(refusal: &Refusal) -> Value {
    serde_json::from_str(&refusal.problem()).expect("JSON")
}

#[test]
fn too_many_requests() {
    let limits = [
        Limit::per_hour(100),
        Limit::per_minute(2).named(r#"a "b\c""#),
        Limit::per_minute(2).named("other"),
    ];
    let refusal = Refusal::TooMany(Box::new(spent(&limits, 1, 3)));
    assert_eq!((refusal.status(), refusal.retry_after()), (429, Some(30)));
    let expected = json!({
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Too many requests",
        "status": 429,
        "detail": "try again in 30 s",
        "violated-policies": [r#"a "b\c""#, "other"],
    });
    assert_eq!(parsed(&refusal), expected);
}

#[test]
fn banned() {
    let limit = Limit::per_minute(60).burst(1).ban(SECOND * 10);
    let refusal = Refusal::TooMany(Box::new(spent(&[limit], 1, 2)));
    assert_eq!((refusal.status(), refusal.retry_after()), (429, Some(11)));
    let expected = json!({
        "type": "https://iana.org/assignments/http-problem-types#abnormal-usage-detected",
        "title": "Banned for exceeding a limit",
        "status": 429,
        "detail": "try again in 11 s",
        "violated-policies": ["60/minute"],
    });
    assert_eq!(parsed(&refusal), expected);
}

#[test]
fn nobody_can_tell_when() {
    let refusal = Refusal::TooMany(Box::new(spent(&[Limit::concurrent(1)], 1, 2)));
    assert_eq!((refusal.status(), refusal.retry_after()), (429, Some(1)));
    assert_eq!(parsed(&refusal)["detail"], "try again later");
}

#[test]
fn the_store_failed() {
    let reason = Limit::try_concurrent(0).expect_err("a count of 0");
    let errors = [
        StoreError::full(),
        StoreError::too_slow(),
        StoreError::unsupported(reason),
        StoreError::unavailable("connection refused: redis://user:secret@10.0.0.7"),
    ];
    for error in errors {
        let refusal = Refusal::Unavailable(error);
        assert_eq!((refusal.status(), refusal.retry_after()), (503, Some(1)));
        let expected = json!({
            "type":
                "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
            "title": "Temporarily reduced capacity",
            "status": 503,
            "detail": "the request could not be accounted for; try again",
        });
        assert_eq!(parsed(&refusal), expected);
    }
}

#[test]
fn the_client_left_something_out() {
    let refusal = Refusal::Incomplete(Missing::client("the \"x\ty\u{7f}\" – header\n"));
    assert_eq!((refusal.status(), refusal.retry_after()), (400, None));
    let expected = json!({
        "type": "about:blank",
        "title": "Bad request",
        "status": 400,
        "detail": "the request lacks the \"x\ty\u{7f}\" – header\n",
    });
    assert_eq!(parsed(&refusal), expected);
    let refusal = Refusal::Incomplete(Missing::ambiguous("exactly one `a` header"));
    assert_eq!(refusal.status(), 400);
}

/// Only a debug build tells the client what the operator has to fix.
#[test]
fn the_server_lacks_something() {
    let refusal = Refusal::Misconfigured(Missing::server("the peer's address", "call `secret()`"));
    assert_eq!((refusal.status(), refusal.retry_after()), (500, None));
    let body = refusal.problem();
    assert_eq!(body.contains("peer") && body.contains("secret"), cfg!(debug_assertions), "{body}");
    assert_eq!(parsed(&refusal)["type"], "about:blank");
    assert_eq!(parsed(&refusal)["status"], 500);
}

#[test]
fn a_store_s_error_says_what_it_is_and_why() {
    use std::error::Error;

    let reason: LimitError = Limit::try_concurrent(0).expect_err("a count of 0");
    let error = StoreError::unsupported(reason);
    assert!(error.is_unsupported() && !error.is_full() && !error.is_too_slow());
    assert_eq!(error.to_string(), "the store cannot keep this limit");
    assert_eq!(error.source().expect("the reason").to_string(), reason.to_string());

    let error = StoreError::unavailable("connection refused");
    assert!(!error.is_unsupported() && !error.is_full() && !error.is_too_slow());
    assert_eq!(error.to_string(), "the store is not available");
    assert_eq!(error.source().expect("the reason").to_string(), "connection refused");

    assert!(StoreError::full().is_full() && StoreError::full().source().is_none());
    assert!(StoreError::too_slow().is_too_slow());
}
