//! What is reserved for a request, and how its body is passed on.

use std::io::Write;

use bytes::Bytes;
use http_body_util::Full;
use sluicegate_llm::{Estimate, EstimatedTokens};

use super::model::{Model, Stream, request};

#[tokio::test]
async fn a_body_reaches_the_model_as_it_was_sent() {
    let model = Model::new();
    let text = " {\"max_tokens\" : 5,\r\n\t\"messages\": [{\"content\": \"日本\\u8a9e\"}]}\n";
    for text in [text, "not JSON", ""] {
        model.ask_and_read(text).await;
        assert_eq!(model.asked.lock().unwrap().pop().unwrap(), text);
    }
}

#[tokio::test]
async fn what_the_request_allows_is_reserved() {
    let model = Model::new();
    let _response = model.ask(r#"{"prompt": "12345678", "max_tokens": 70}"#).await;
    assert_eq!(model.spent(), 72);
}

/// Services read what a client sends, whatever its header says of it.
#[tokio::test]
async fn what_the_header_says_lowers_no_reservation() {
    let text = format!("{{\"prompt\": \"{}\", \"max_tokens\": 50}}", "four".repeat(2_000));
    for lines in [
        &[("content-encoding", "gzip")][..],
        &[("content-encoding", "x")],
        &[("content-encoding", "identity, identity")],
        &[("content-encoding", "identity"), ("content-encoding", "br")],
        &[("content-type", "application/json; charset=utf-16")],
    ] {
        let model = Model::with(Estimate::new().unknown(700));
        let mut asked = request(&text);
        for (name, value) in lines {
            asked.headers_mut().append(*name, value.parse().unwrap());
        }
        let _response = model.send(asked).await;
        assert_eq!(model.spent(), 2_050, "{lines:?}");
    }
}

#[tokio::test]
async fn an_estimate_of_the_services_own_is_used() {
    let model = Model::new();
    let mut request = request(r#"{"max_tokens": 5}"#);
    request.extensions_mut().insert(EstimatedTokens::new(300, 40));
    let _response = model.send(request).await;
    assert_eq!(model.spent(), 340);
}

#[tokio::test]
async fn a_request_with_an_estimate_is_passed_on_as_it_is() {
    let model = Model::new();
    for declared in [true, false] {
        let mut request = request("");
        // It is beyond the bound of what is read.
        let body = Bytes::from(vec![b' '; 100_001]);
        *request.body_mut() = Full::new(body.clone());
        if declared {
            request.headers_mut().insert("content-length", "100001".parse().unwrap());
        }
        request.extensions_mut().insert(EstimatedTokens::new(300, 40));
        assert_eq!(model.send(request).await.status(), 200);
        assert_eq!(model.asked.lock().unwrap().pop().unwrap(), body);
    }
}

#[tokio::test]
async fn a_body_beyond_the_bound_is_refused_and_charges_nothing() {
    let model = Model::new();
    for declared in [true, false] {
        let mut request = request("");
        *request.body_mut() = Full::new(Bytes::from(vec![b' '; 100_001]));
        if declared {
            request.headers_mut().insert("content-length", "100001".parse().unwrap());
        }
        assert_eq!(model.send(request).await.status(), 413);
    }
    assert_eq!(model.ask_and_read(&format!("{{{}}}", " ".repeat(99_998))).await, 200);
    assert_eq!(model.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_request_without_a_body_reserves_one_token() {
    let model = Model::new();
    model.answers(200, "application/json", Stream::of(&["{}"]));
    let _response = model.ask("").await;
    assert_eq!(model.spent(), 1);
}

#[tokio::test]
async fn a_compressed_body_reserves_what_it_holds_and_reaches_the_model_as_it_was_sent() {
    let text = format!("{{\"prompt\": \"{}\", \"max_tokens\": 50}}", "four".repeat(2_000));
    let mut packed = brotli::CompressorWriter::new(Vec::new(), 4_096, 5, 22);
    packed.write_all(text.as_bytes()).unwrap();
    let packed = Bytes::from(packed.into_inner());
    assert!(packed.len() < 100);
    let model = Model::with(Estimate::new().unknown(700));
    let mut asked = request("");
    asked.headers_mut().insert("content-encoding", "br".parse().unwrap());
    *asked.body_mut() = Full::new(packed.clone());
    let _response = model.send(asked).await;
    assert_eq!(model.spent(), 2_050);
    // UTF-7 hides what the body asks for, so no request in it fits.
    let mut hidden = request(r#"{"max+AF8-tokens": 50}"#);
    hidden.headers_mut().insert("content-type", "text/json; charset=utf-7".parse().unwrap());
    assert_eq!(model.send(hidden).await.status(), 422);
}
