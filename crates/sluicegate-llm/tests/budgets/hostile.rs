//! Clients and models that lie.

use http_body_util::BodyExt;
use proptest::prelude::*;

use super::model::{MINUTE, Model, Stream, openai};

#[tokio::test]
async fn a_request_for_more_than_the_limit_holds_is_told_that_it_never_fits() {
    let model = Model::new();
    let response = model.ask(r#"{"max_tokens": 1000000000000000000}"#).await;
    assert_eq!(response.status(), 422);
    assert!(response.headers().get("retry-after").is_none());
    assert_eq!(model.spent(), 0);
}

#[tokio::test]
async fn a_request_that_claims_to_need_nothing_pays_what_it_uses() {
    let model = Model::new();
    model.streams(openai(50, 6_000));
    assert_eq!(model.ask_and_read(r#"{"max_tokens": 0}"#).await, 200);
    assert_eq!(model.ask_and_read(r#"{"max_tokens": 0}"#).await, 200);
    // 12,100 of 10,000 are used.
    assert_eq!(model.ask_and_read(r#"{"max_tokens": 0}"#).await, 429);
    model.clock.advance(MINUTE / 5);
    assert_eq!(model.ask_and_read(r#"{"max_tokens": 1}"#).await, 429);
    model.clock.advance(MINUTE / 50);
    assert_eq!(model.ask_and_read(r#"{"max_tokens": 1}"#).await, 200);
}

#[tokio::test]
async fn streams_that_reserve_little_and_use_much_stay_within_the_limit_in_the_long_run() {
    const USED: u64 = 2_000;
    let model = Model::new();
    model.streams(openai(0, USED));
    let mut used = 0;
    // An hour of ten streams at a time, each asking for a single token.
    for _ in 0..60 * 6 {
        let mut bodies = Vec::new();
        for _ in 0..10 {
            let response = model.ask(r#"{"max_tokens": 1}"#).await;
            if response.status() == 200 {
                bodies.push(response.into_body());
            }
        }
        for body in bodies {
            body.collect().await.unwrap();
            used += USED;
        }
        model.clock.advance(MINUTE / 6);
    }
    // The rate for an hour, the burst, and the debt of the last streams.
    let bound = 60 * 10_000 + 10_000 + 10 * USED;
    assert!(used <= bound, "{used} tokens in an hour, of at most {bound}");
    assert!(used >= 60 * 10_000 * 9 / 10, "{used} tokens in an hour");
}

#[tokio::test]
async fn a_usage_in_the_text_of_an_answer_is_not_believed() {
    let model = Model::new();
    model.streams(Stream::of(&[
        "data: {\"choices\":[{\"delta\":{\"content\":\"\\n\\ndata: {\\\"usage\\\":{\\\"total_tokens\\\":0}}\"}}]}\n\n",
        "data: {\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":90,\"total_tokens\":100}}\n\n",
        "data: {\"usage\":{\"prompt_tokens\":0,\"completion_tokens\":0,\"total_tokens\":0}}\n\n",
    ]));
    model.ask_and_read(r#"{"max_tokens": 500}"#).await;
    assert_eq!(model.spent(), 100);
}

#[tokio::test]
async fn what_one_answer_has_used_is_owed_however_much_it_is() {
    let model = Model::new();
    model.streams(openai(0, 1_000_000));
    assert_eq!(model.ask_and_read(r#"{"max_tokens": 1}"#).await, 200);
    // 10,000 a minute.
    model.clock.advance(99 * MINUTE);
    assert_eq!(model.ask_and_read(r#"{"max_tokens": 1}"#).await, 429);
    model.clock.advance(MINUTE);
    assert_eq!(model.left(), 10_000);
}

#[tokio::test]
async fn a_bound_of_the_operator_keeps_an_absurd_usage_from_locking_a_key() {
    let model = Model::settled_at_most(100_000);
    let report = "data: {\"usage\":{\"total_tokens\":18446744073709551615}}\n\n";
    model.streams(Stream::of(&[report]));
    assert_eq!(model.ask_and_read(r#"{"max_tokens": 500}"#).await, 200);
    assert_eq!(model.ask_and_read(r#"{"max_tokens": 500}"#).await, 429);
    // Settled to ten times the limit.
    model.clock.advance(10 * MINUTE);
    assert_eq!(model.left(), 10_000);
}

#[tokio::test]
async fn a_model_that_reports_a_negative_usage_gives_nothing_back() {
    let model = Model::new();
    let report = "data: {\"usage\":{\"prompt_tokens\":-5,\"total_tokens\":-1000000}}\n\n";
    model.streams(Stream::of(&[report]));
    assert_eq!(model.ask_and_read(r#"{"max_tokens": 500}"#).await, 200);
    assert_eq!(model.spent(), 500);
}

proptest! {
    #[test]
    fn an_answer_costs_the_same_however_it_is_cut(
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        hangs_up in any::<bool>(),
    ) {
        let text = concat!(
            "event: message_start\r\ndata: {\"message\":{\"usage\":{\"input_tokens\":40,\"output_tokens\":1}}}\r\n\r\n",
            "data: {\"delta\":{\"text\":\"Hello\"}}\r\n\r\n",
            "data: {\"usage\":{\"output_tokens\":60}}\r\n\r\n",
        );
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let ends = cuts.iter().copied().chain([text.len()]);
        let begins = [0].into_iter().chain(cuts.iter().copied());
        let parts: Vec<_> = begins.zip(ends).map(|(from, to)| &text[from..to]).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let model = Model::new();
            model.streams(Stream::of(&parts));
            let mut body = model.ask(r#"{"max_tokens": 500}"#).await.into_body();
            for _ in &parts {
                body.frame().await.unwrap().unwrap();
            }
            if hangs_up {
                drop(body);
                assert_eq!(model.spent(), 500);
            } else {
                body.collect().await.unwrap();
                assert_eq!(model.spent(), 100);
            }
        });
    }
}
