//! What is charged when the answer has ended, in whatever way.

use http::{Request, Response};
use http_body_util::BodyExt;
use sluicegate::cost::llm::{Count, EstimatedTokens, TokenUsage, Usage, tokens};
use sluicegate::{Global, Limit, ManualClock, Memory, RateLimitLayer};
use tower::{Layer, ServiceExt, service_fn};

use super::model::{MINUTE, Model, Stream, openai};

const ASKS_FOR_1_000: &str = r#"{"stream": true, "max_tokens": 1000}"#;

#[tokio::test]
async fn a_stream_is_charged_what_it_used() {
    let model = Model::new();
    model.streams(openai(20, 300));
    let response = model.ask(ASKS_FOR_1_000).await;
    assert_eq!(model.spent(), 1_000);
    response.into_body().collect().await.unwrap();
    assert_eq!(model.spent(), 320);
}

#[tokio::test]
async fn a_document_is_charged_what_it_used() {
    let model = Model::new();
    let answer = Stream::of(&[r#"{"usage": {"input_tokens": 5, "#, r#""output_tokens": 7}}"#]);
    model.answers(200, "application/json", answer);
    assert_eq!(model.ask_and_read(ASKS_FOR_1_000).await, 200);
    assert_eq!(model.spent(), 12);
}

#[tokio::test]
async fn a_client_that_hangs_up_before_the_usage_is_charged_what_was_reserved() {
    let model = Model::new();
    model.streams(openai(20, 300));
    let mut body = model.ask(ASKS_FOR_1_000).await.into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    assert_eq!(model.spent(), 1_000);
}

#[tokio::test]
async fn a_client_that_reserves_little_and_hangs_up_late_is_charged_what_it_saw() {
    let model = Model::new();
    let words = "word ".repeat(800);
    let text = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{words}\"}}}}]}}\n\n");
    model.streams(Stream::of(&[&text, "data: {\"usage\":{\"total_tokens\":1000}}\n\n"]));
    let mut body = model.ask(r#"{"max_tokens": 1}"#).await.into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    assert_eq!(model.spent(), 1_000);
}

#[tokio::test]
async fn a_stream_that_breaks_is_charged_what_was_reserved() {
    let model = Model::new();
    model.streams(Stream::of(&["data: {}\n\n"]).broken());
    assert_eq!(model.ask_and_read(ASKS_FOR_1_000).await, 200);
    assert_eq!(model.spent(), 1_000);
}

#[tokio::test]
async fn a_model_that_reports_nothing_is_charged_what_was_reserved() {
    let model = Model::new();
    for media in ["text/event-stream", "application/json", "text/html"] {
        model.answers(200, media, Stream::of(&["{}"]));
        assert_eq!(model.ask_and_read(ASKS_FOR_1_000).await, 200);
        assert_eq!(model.spent(), 1_000, "{media}");
        model.clock.advance(MINUTE);
    }
}

#[tokio::test]
async fn an_error_without_usage_costs_no_tokens() {
    let model = Model::new();
    for status in [400, 401, 429, 500, 503] {
        model.answers(status, "application/json", Stream::of(&[r#"{"error": {}}"#]));
        assert_eq!(model.ask_and_read(ASKS_FOR_1_000).await, status);
        assert_eq!(model.spent(), 0, "{status}");
        model.answers(status, "text/plain", Stream::of(&["no"]));
        assert_eq!(model.ask_and_read(ASKS_FOR_1_000).await, status);
        assert_eq!(model.spent(), 0, "{status}");
    }
}

#[tokio::test]
async fn a_stream_that_is_longer_than_the_window_is_charged_in_the_end() {
    let model = Model::new();
    model.streams(openai(0, 5_000));
    let body = model.ask(ASKS_FOR_1_000).await.into_body();
    model.clock.advance(3 * MINUTE);
    assert_eq!(model.spent(), 0);
    body.collect().await.unwrap();
    // 1,000 were paid for, and have come back.
    assert_eq!(model.spent(), 4_000);
}

#[tokio::test]
async fn a_handler_reports_its_usage_while_it_streams() {
    let clock = ManualClock::new();
    let store = Memory::builder().clock(&clock).build();
    let input = Limit::per_minute(10_000).named("input").by(Global);
    let output = Limit::per_minute(1_000).named("output").by(Global);
    let rule = (
        input.cost(tokens(Count::Input)).settle_tokens(Count::UncachedInput),
        output.cost(tokens(Count::Output)).settle_tokens(Count::Output),
    );
    let usage = TokenUsage::new();
    let left = usage.clone();
    let handler = service_fn(move |_: Request<()>| {
        let mut response = Response::new(Stream::of(&["a", "b"]));
        response.extensions_mut().insert(left.clone());
        async { Ok::<_, std::convert::Infallible>(response) }
    });
    let layer = RateLimitLayer::new(rule).store(store).extensions(true);
    let service = layer.layer(handler);
    let request = || {
        let mut request = Request::new(());
        request.extensions_mut().insert(EstimatedTokens::new(2_000, 900));
        request
    };

    let body = service.clone().oneshot(request()).await.unwrap().into_body();
    usage.report(Usage { input: 1_500, output: 100, cached: 1_400 });
    usage.finish();
    body.collect().await.unwrap();
    let next = service.oneshot(request()).await.unwrap();
    let decision = next.extensions().get::<sluicegate::Decision>().unwrap();
    let remaining: Vec<_> = decision.statuses().map(|status| status.remaining).collect();
    assert_eq!(remaining, [10_000 - 100 - 2_000, 1_000 - 100 - 900]);
}
