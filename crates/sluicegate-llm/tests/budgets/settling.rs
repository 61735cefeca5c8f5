//! What is charged when the answer has ended, in whatever way.

use http::{Request, Response};
use http_body_util::BodyExt;
use sluicegate::adapter::Hold;
use sluicegate::{Global, Limit, ManualClock, Memory, RateLimitLayer};
use sluicegate_llm::{Count, EstimatedTokens, TokenUsage, Usage, UsageLayer, tokens, used_tokens};
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

/// A client that stops reading where the answer says that nothing follows.
#[tokio::test]
async fn a_stream_that_has_said_what_it_used_is_settled_before_its_body_ends() {
    let model = Model::new();
    model.streams(openai(20, 300));
    let mut body = model.ask(ASKS_FOR_1_000).await.into_body();
    for _ in 0..2 {
        body.frame().await.unwrap().unwrap();
    }
    assert_eq!(model.spent(), 1_000);
    body.frame().await.unwrap().unwrap();
    assert_eq!(model.spent(), 320);
    drop(body);
    assert_eq!(model.spent(), 320);
}

/// Servers of HTTP/1.1 drop a body once it has as many bytes as its response declares.
#[tokio::test]
async fn a_body_that_is_dropped_behind_its_declared_length_is_settled() {
    let stream = "data: {\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":300}}\n\n";
    for (media, text) in [
        ("text/event-stream", stream),
        ("application/json", r#"{"usage":{"prompt_tokens":20,"completion_tokens":300}}"#),
    ] {
        for piece in [1, 7, 1_000] {
            let model = Model::new();
            let pieces: Vec<_> = text.as_bytes().chunks(piece).collect();
            let pieces: Vec<_> = pieces.iter().map(|p| std::str::from_utf8(p).unwrap()).collect();
            model.answers(200, media, Stream::of(&pieces));
            model.declares(text.len());
            let mut body = model.ask(ASKS_FOR_1_000).await.into_body();
            for left in (0..pieces.len()).rev() {
                body.frame().await.unwrap().unwrap();
                assert_eq!(model.spent() == 320, left == 0, "{media}, {left} of {piece}");
            }
            drop(body);
            assert_eq!(model.spent(), 320, "{media}");
        }
    }
}

#[tokio::test]
async fn answers_whose_usage_is_not_read_are_counted() {
    let model = Model::new();
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n";
    let silent = Stream::of(&[text, "data: [DONE]\n\n"]);
    let zero = "data: {\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":0}}\n\n";
    let liar = Stream::of(&[zero, &text.repeat(100), "data: [DONE]\n\n"]);
    for (at, (media, answer)) in [
        ("text/event-stream", silent),
        ("text/html", Stream::of(&["<p>"])),
        ("text/event-stream", liar),
    ]
    .into_iter()
    .enumerate()
    {
        model.answers(200, media, answer);
        model.ask_and_read(ASKS_FOR_1_000).await;
        assert_eq!((model.spent(), model.unread()), (1_000, at as u64 + 1), "{media}");
        model.clock.advance(MINUTE);
    }
    model.answers(500, "text/html", Stream::of(&["no"]));
    model.ask_and_read(ASKS_FOR_1_000).await;
    model.streams(openai(20, 300));
    model.ask_and_read(ASKS_FOR_1_000).await;
    assert_eq!(model.unread(), 3);
    drop(model.ask(ASKS_FOR_1_000).await);
    assert_eq!(model.unread(), 4);
}

/// The usage is at the end of the body, and such a layer settles with the head.
#[tokio::test]
async fn answers_that_are_settled_before_their_usage_are_counted() {
    let rule = Limit::per_minute(10_000).by(Global).cost(10).settle_by(used_tokens(Count::All));
    let layer = RateLimitLayer::new(rule).hold_until(Hold::Head);
    let service = layer.layer(UsageLayer::new().layer(service_fn(|_: Request<()>| async {
        let answer = Response::builder().header("content-type", "text/event-stream");
        Ok::<_, std::convert::Infallible>(answer.body(openai(20, 300)).unwrap())
    })));
    let response = service.oneshot(Request::new(())).await.unwrap();
    response.into_body().collect().await.unwrap();
    assert_eq!(layer.counts().unread, 1);
}

#[tokio::test]
async fn a_layer_without_anybody_who_reads_the_usage_counts_its_answers() {
    let rule = Limit::per_minute(10_000).by(Global).cost(10).settle_by(used_tokens(Count::All));
    let layer = RateLimitLayer::new(rule);
    let service = layer.layer(service_fn(|_: Request<()>| async {
        Ok::<_, std::convert::Infallible>(Response::new(String::new()))
    }));
    service.oneshot(Request::new(())).await.unwrap();
    assert_eq!(layer.counts().unread, 1);
}

#[tokio::test]
async fn a_cost_that_a_handler_reports_with_an_error_is_charged() {
    let store = Memory::builder().clock(ManualClock::new()).build();
    let rule = Limit::per_minute(1_000).by(Global).cost(10).settle_by(used_tokens(Count::All));
    let layer = RateLimitLayer::new(rule).store(store);
    let service = layer.layer(service_fn(|_: Request<()>| async {
        let failed = Response::builder().status(500).extension(sluicegate::Cost(1_000));
        Ok::<_, std::convert::Infallible>(failed.body(String::new()).unwrap())
    }));
    for status in [500, 429] {
        let response = service.clone().oneshot(Request::new(())).await.unwrap();
        assert_eq!(response.status(), status);
    }
}

/// What one limit holds is kept until the end of the body, and what another counts is settled before.
#[tokio::test]
async fn a_place_is_held_beyond_the_usage() {
    let store = Memory::builder().clock(ManualClock::new()).build();
    let place = Limit::concurrent(1).by(Global);
    let budget = Limit::per_minute(10_000).named("tokens").by(Global);
    let rule = (budget.cost(1_000).settle_by(used_tokens(Count::All)), place);
    let usage = TokenUsage::new();
    let left = usage.running_cost();
    let layer = RateLimitLayer::new(rule).store(store).extensions(true);
    let service = layer.layer(service_fn(move |_: Request<()>| {
        let mut response = Response::new(Stream::of(&["a", "b"]));
        response.extensions_mut().insert(left.clone());
        async { Ok::<_, std::convert::Infallible>(response) }
    }));
    let mut body = service.clone().oneshot(Request::new(())).await.unwrap().into_body();
    usage.report(Usage::new(20, 1));
    usage.finish();
    body.frame().await.unwrap().unwrap();
    let refused = service.clone().oneshot(Request::new(())).await.unwrap();
    assert_eq!(refused.status(), 429);
    let decision = refused
        .extensions()
        .get::<sluicegate::response::LazyDecision>()
        .map(|lazy| lazy.decision())
        .unwrap();
    let remaining: Vec<_> = decision.statuses().map(|status| status.remaining).collect();
    assert_eq!(remaining, [10_000 - 21, 0]);
    drop(body);
    let response = service.oneshot(Request::new(())).await.unwrap();
    let decision = response
        .extensions()
        .get::<sluicegate::response::LazyDecision>()
        .map(|lazy| lazy.decision())
        .unwrap();
    let remaining: Vec<_> = decision.statuses().map(|status| status.remaining).collect();
    assert_eq!(remaining, [10_000 - 21 - 1_000, 0]);
}

#[tokio::test]
async fn the_model_is_asked_for_an_answer_that_can_be_read() {
    let asked = service_fn(|request: Request<()>| async move {
        let asked = request.headers().get_all("accept-encoding").iter();
        let asked: Vec<_> = asked.map(|value| value.to_str().unwrap().to_owned()).collect();
        Ok::<_, std::convert::Infallible>(Response::new(asked.join(",")))
    });
    let request = Request::builder().header("accept-encoding", "gzip, br");
    let request = request.header("accept-encoding", "zstd").body(()).unwrap();
    let response = sluicegate_llm::UsageLayer::new().layer(asked).oneshot(request).await;
    let asked = response.unwrap().into_body().collect().await.unwrap().to_bytes();
    assert_eq!(asked, "identity");
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

/// Tokens are not the unit of other costs.
#[tokio::test]
async fn a_rule_that_settles_by_a_cost_does_not_take_tokens_for_it() {
    let rule = Limit::per_minute(10_000).by(Global).cost(500).settle_cost(|reply| reply.cost());
    let store = Memory::builder().clock(ManualClock::new()).build();
    let layer = RateLimitLayer::new(rule).store(store).extensions(true);
    let service =
        layer.layer(sluicegate_llm::UsageLayer::new().layer(service_fn(async |_: Request<()>| {
            let answer = r#"{"usage":{"total_tokens":21}}"#;
            let response = Response::builder().header("content-type", "application/json");
            response.body(Stream::of(&[answer]))
        })));
    service.clone().oneshot(Request::new(())).await.unwrap().into_body().collect().await.unwrap();
    let next = service.oneshot(Request::new(())).await.unwrap();
    let decision =
        next.extensions().get::<sluicegate::response::LazyDecision>().unwrap().decision();
    assert_eq!(decision.remaining(), Some(10_000 - 500 - 500));
}

#[tokio::test]
async fn a_handler_reports_its_usage_while_it_streams() {
    let clock = ManualClock::new();
    let store = Memory::builder().clock(&clock).build();
    let input = Limit::per_minute(10_000).named("input").by(Global);
    let output = Limit::per_minute(1_000).named("output").by(Global);
    let rule = (
        input.cost(tokens(Count::Input)).settle_by(used_tokens(Count::UncachedInput)),
        output.cost(tokens(Count::Output)).settle_by(used_tokens(Count::Output)),
    );
    let usage = TokenUsage::new();
    let left = usage.running_cost();
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
    usage.report(Usage::new(1_500, 100).cached(1_400));
    usage.finish();
    body.collect().await.unwrap();
    let next = service.oneshot(request()).await.unwrap();
    let decision = next
        .extensions()
        .get::<sluicegate::response::LazyDecision>()
        .map(|lazy| lazy.decision())
        .unwrap();
    let remaining: Vec<_> = decision.statuses().map(|status| status.remaining).collect();
    assert_eq!(remaining, [10_000 - 100 - 2_000, 1_000 - 100 - 900]);
}
